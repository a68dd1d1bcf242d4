"""The calls of a step in which finite values become NaN or infinite, and whether that does harm.

A value that is infinite on purpose (masked_fill with -inf, a mask made of it) is none of these; neither is one that
nothing but a softmax sees. Harm is: to reach a loss or another single number, a gradient that is kept, the optimizer,
or the end of the step as NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from npuport.findings import Sentence, say
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.communication import is_collective
from npuport.precision.overflow.values import LARGEST, Values

_UNWRITTEN = ("empty", "new_empty", "resize")  # memory that holds anything
_SOFTMAX = ("softmax", "logsumexp", "scaled_dot_product", "flash_attention", "fusion_attention", "efficient_attention")
CHECKS = ("_amp_foreach_non_finite_check_and_unscale_", "_amp_foreach_non_finite_check", "_amp_non_finite_check")
_KEPT = ("parameter ", "gradient of ", "exp_avg", "shard of ")  # as the recorder names them


@dataclass(frozen=True)
class Origin:
    """A call in which finite values become NaN or infinite.

    ``kind``: "overflow", "NaN", "masked row", "saturated", "input" (a tensor that no recorded call made), "received"
    (by a collective from another rank). ``is_caught``: a loss scaler saw it and left the step out.
    """

    step: int
    rank: int
    call: Call
    kind: str
    text: Sentence
    is_caught: bool = False


def short_name(call: Call) -> str:
    return call.operator.partition(".")[2].partition(".")[0]


def origins(step: Step, values: Values) -> list[Origin]:
    """Where NaN and infinity begin in a step and do harm, in order."""
    flow = _Flow(step, values)
    found = list(flow.origins())
    skipped = [call.index for call in step.calls if short_name(call) in CHECKS and _found(call, values)]
    return [
        replace(one, is_caught=any(one.call.index < at for at in skipped))
        if one.call.phase == "backward" or one.kind == "received"
        else one
        for one in found
    ]


def _found(check: Call, values: Values) -> bool:
    """Whether the check of a loss scaler found a value that is not finite."""
    return any(not values.of(ref).is_finite for ref in check.inputs) or any(
        ref.shape in ((), (1,)) and values.of(ref).high > 0 for ref in check.outputs[-1:]
    )


class _Flow:
    """How values that are not finite go from call to call."""

    def __init__(self, step: Step, values: Values) -> None:
        self._step, self._values = step, values
        self._maker: dict[int, Call] = {}
        self._unwritten: set[int] = set()
        for call in step.calls:
            for ref in call.outputs:
                self._maker[ref.storage] = call
                if short_name(call).startswith(_UNWRITTEN):
                    self._unwritten.add(ref.storage)
        self._harmed = self._harm()

    def origins(self) -> Iterator[Origin]:
        seen: set[int] = set()
        for call in self._step.calls:
            if short_name(call).startswith(_UNWRITTEN):
                continue
            for ref in call.inputs:
                if ref.storage not in self._maker and ref.storage not in seen:
                    seen.add(ref.storage)
                    yield from self._from_outside(call, ref)
            yield from self._from_call(call)

    def _harm(self) -> set[int]:
        """The storages whose NaN or infinity does harm."""
        harmed: set[int] = set()
        used: set[int] = set()
        for call in reversed(self._step.calls):
            broken = [] if short_name(call).startswith(_UNWRITTEN) else self._broken(call.outputs)
            does_harm = short_name(call) in CHECKS or any(
                ref.storage in harmed
                or call.phase == "optimizer"
                or (ref.shape == () and not _is_meant(call))
                or (ref.storage not in used and (call.phase == "backward" or self._values.of(ref).nans > 0))
                for ref in broken
            )
            inputs = self._broken(call.inputs)
            if does_harm:
                harmed.update(ref.storage for ref in (*inputs, *broken))
            used.update(ref.storage for ref in call.inputs)
        return harmed

    def _broken(self, refs: list[TensorRef]) -> list[TensorRef]:
        """Those that hold NaN or infinity; memory that nothing was written to is not looked at."""
        return [ref for ref in refs if ref.storage not in self._unwritten and not self._values.of(ref).is_finite]

    def _from_outside(self, call: Call, ref: TensorRef) -> Iterator[Origin]:
        """A tensor that no recorded call made. One of -inf is a mask."""
        content = self._values.of(ref)
        name = self._step.names.get(ref.storage, "")
        is_mask = not content.nans and not content.positive and not name.startswith(_KEPT)
        if content.is_finite or is_mask or ref.storage not in self._harmed:
            return
        what = name or f"an input, {ref.dtype} {list(ref.shape)},"
        text = say("{what} holds NaN or infinite values that no recorded call made", what=what)
        yield Origin(self._step.step, self._step.rank, call, "input", text)

    def _from_call(self, call: Call) -> Iterator[Origin]:
        outputs = self._broken(call.outputs)
        given = call.inputs
        if _writes_elsewhere(call):
            given = given[len(call.outputs) :]  # where it writes comes first, and is overwritten
        inputs = self._broken(given)
        if any(ref.storage in self._harmed for ref in outputs):
            kind, text = self._kind(call, outputs, inputs)
            if text is not None:
                yield Origin(self._step.step, self._step.rank, call, kind, text)
        elif not outputs and not inputs:
            yield from self._saturated(call)

    def _kind(self, call: Call, outputs: list[TensorRef], inputs: list[TensorRef]) -> tuple[str, Sentence | None]:
        """What a call did that has results which are not finite; no text: it handed them on, or they are meant."""
        content = [self._values.of(ref) for ref in outputs]
        had_nan = any(self._values.of(ref).nans for ref in inputs)
        if is_collective(call.operator):
            return "received", None if inputs else say("NaN or infinite values come from other ranks")
        if any(one.nans for one in content) and not had_nan:
            hides = self._hides_everything(call, inputs) if inputs else False
            if hides is None:
                return "NaN", say("a softmax makes NaN: a row of its mask hides everything, or +inf came in "
                                  "(statistics do not tell which)")  # fmt: skip
            if hides:
                return "masked row", say("a row of the mask hides everything, and the softmax of nothing but -inf is "
                                         "NaN: let each row see one place (a padding row itself), or use a large "
                                         "negative number")  # fmt: skip
            if inputs and any(name in short_name(call) for name in _SOFTMAX):
                return "NaN", say("a softmax makes NaN although no row of its mask hides everything")
            if inputs:
                return "NaN", say("infinite inputs become NaN (inf - inf, or 0 x inf)")
            return "NaN", say("finite inputs become NaN")
        if any(one.infs for one in content) and not inputs and not _is_meant(call):
            largest = max((self._values.of(ref).largest for ref in call.inputs), default=0.0)
            dtype = outputs[0].dtype
            return "overflow", say("finite inputs (up to {largest}) become infinite; {dtype} ends at {end}",
                                   largest=f"{largest:.3g}", dtype=dtype,
                                   end=f"{LARGEST.get(dtype, math.inf):.5g}")  # fmt: skip
        return "", None

    def _hides_everything(self, call: Call, inputs: list[TensorRef]) -> bool | None:
        """Whether a softmax has a row of nothing but -inf; None where statistics do not tell. The mask of a fused
        attention is not looked at: if no +inf came in, nothing else makes NaN of it."""
        if not any(name in short_name(call) for name in _SOFTMAX):
            return False
        source = inputs[0]
        if source.storage not in self._step.storages:
            return None
        dim = call.arguments[1] if len(call.arguments) > 1 else None
        if not isinstance(dim, int) or "softmax" not in short_name(call):
            return not any(self._values.of(ref).positive for ref in inputs)
        return bool(self._step.tensor(source).isneginf().all(dim).any())

    def _saturated(self, call: Call) -> Iterator[Origin]:
        """Results that end at the largest number, which chips give in place of infinity that saturate."""
        for ref in call.outputs:
            end = LARGEST.get(ref.dtype)
            if end is None or self._values.of(ref).high < end:
                continue
            given = [self._values.of(one) for one in call.inputs if one.dtype == ref.dtype]
            if not _has_scalar(call, end) and all(one.largest < end for one in given):
                text = say("results end at {end}, the largest {dtype}: a chip that saturates gives it in place of "
                           "infinity", end=f"{end:.5g}", dtype=ref.dtype)  # fmt: skip
                yield Origin(self._step.step, self._step.rank, call, "saturated", text)
                return


def _writes_elsewhere(call: Call) -> bool:
    """Whether a collective writes into other tensors than those that it sends."""
    return any(word in call.operator for word in ("gather", "scatter", "alltoall")) and call.operator.startswith(
        "c10d."
    )


def _is_meant(call: Call) -> bool:
    """Whether a call has an infinite number among its arguments: a mask is made."""
    return _has_scalar(call, math.inf)


def _has_scalar(call: Call, least: float) -> bool:
    """Whether a number of the call's arguments is at least this large in magnitude."""
    return any(abs(one) >= least for one in _numbers((call.arguments, dict(call.keywords))))


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, float | int) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _numbers(one)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _numbers(one)
