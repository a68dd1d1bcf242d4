"""Checking a recorded call of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

import torch

from npuport.facts.precision_standards import standard_of
from npuport.findings import Sentence, say
from npuport.precision.checking.choices import is_same_choice
from npuport.precision.checking.errors import Second, as_real, real_dtype
from npuport.precision.checking.generating import generated
from npuport.precision.checking.judging import Reduced, Result, ResultCheck
from npuport.precision.checking.published import Measures, measures
from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.execution import NotExecutableError, execute

Status = Literal["pass", "fail", "not judged"]

# Formats to which devices round the inputs of float32 convolutions by default: bits of the fraction, without the first.
_REDUCED = {"npu": Reduced(2.0**-12, "HF32"), "cuda": Reduced(2.0**-11, "TF32")}

# Results that are a kernel's notes for its own backward pass; not all of the memory is written.
_NOTES = {"_ctc_loss": (1,), "_embedding_bag": (1, 2, 3)}


@dataclass(frozen=True)
class CallCheck:
    """The verdict on a call. ``reason`` says why it was not judged; ``again`` is the verdict on the same call executed
    again on a device."""

    call: Call
    status: Status
    results: tuple[ResultCheck, ...] = ()
    reason: Sentence | None = None
    again: tuple[ResultCheck, ...] = ()
    is_repeated: bool | None = None  # whether it gave the recorded bits again

    @property
    def times(self) -> float:
        """The worst error over what is allowed."""
        return max((one.times for one in (*self.results, *self.again) if not one.holds), default=0.0)


def short_name(operator: str) -> str:
    """An operator without namespace and overload: "addmm" of "aten.addmm.default"."""
    return operator.partition(".")[2].partition(".")[0]


def plain_name(operator: str) -> str:
    """An operator as people write it: "aten.addmm" of "aten.addmm.default"; other overloads stay."""
    return operator.removesuffix(".default")


def is_chosen(call: Call, pattern: str) -> bool:
    """Whether a pattern such as "addmm", "aten.mm.*", "layers.7.attn" (with all that is inside) or
    "layers.7.attn.softmax" means a call."""
    short = short_name(call.operator)
    plain = short.strip("_")
    names = [call.operator, short, plain, call.module, f"{call.module}.{short}", f"{call.module}.{plain}"]
    return call.module.startswith(pattern + ".") or any(fnmatchcase(name, pattern) for name in names)


def check_call(call: Call, step: Step, device: str = "", reference: tuple[Call, Step] | None = None) -> CallCheck:
    """The verdict on one call.

    With ``device`` the call is executed there again, and that result judged as well. ``reference`` is the same call of
    another device, such as a GPU. Of a step that has statistics only, the call is executed with values generated in the
    recorded range, and what ``device`` makes of them is judged.
    """
    if not call.outputs:
        return CallCheck(call, "not judged", reason=say("it gave no tensor"))
    try:
        recorded = _recorded(call, step) if step.has_tensors else []
        step = step if step.has_tensors else generated(call, step)
        truths = execute(call, step)
        again = [one.cpu() for one in execute(call, step, floating=None, device=device)] if device else []
    except NotExecutableError as error:
        return CallCheck(call, "not judged", reason=error.reason)
    others = _measured(*reference) if reference is not None else {}
    second = Second(call, step, truths)
    results = tuple(_checked(call, step, recorded, truths, second, others, step.device))
    repeated = tuple(_checked(call, step, again, truths, second, others, device))
    if not results and not repeated:
        return CallCheck(call, "not judged", reason=say("no result was recorded"))
    holds = all(one.holds for one in (*results, *repeated))
    same = all(_same_bits(a, b) for a, b in zip(recorded, again, strict=False)) if recorded and again else None
    return CallCheck(call, "pass" if holds else "fail", results, None, repeated, same)


def _recorded(call: Call, step: Step) -> list[torch.Tensor]:
    if any(ref.storage not in step.storages for ref in call.outputs):
        raise NotExecutableError(say("the values of a tensor were not recorded"))
    try:
        return [step.tensor(ref) for ref in call.outputs]
    except KeyError as error:
        raise NotExecutableError(say("the values of a tensor were not recorded")) from error


def _measured(call: Call, step: Step) -> dict[int, Measures]:
    """The errors of the reference's results, judged on its own inputs."""
    try:
        pairs = zip(_recorded(call, step), execute(call, step), strict=False)
        return {
            position: measures(as_real(got), as_real(truth), str(real_dtype(got.dtype)).removeprefix("torch."))
            for position, (got, truth) in enumerate(pairs)
            if got.shape == truth.shape and (got.is_floating_point() or got.is_complex())
        }
    except NotExecutableError:
        return {}


def _checked(
    call: Call,
    step: Step,
    results: list[torch.Tensor],
    truths: list[torch.Tensor],
    second: Second,
    others: Mapping[int, Measures],
    device: str,
) -> Iterator[ResultCheck]:
    short = short_name(call.operator)
    for position, (got, truth) in enumerate(zip(results, truths, strict=False)):
        if position in _NOTES.get(short, ()):
            continue
        is_reduced = "convolution" in short and got.dtype is torch.float32
        reduced = _REDUCED.get(device) if is_reduced else None
        one = Result(position, got, truth, second, standard_of(short), reduced, others.get(position)).check()
        if not one.holds and not got.is_floating_point() and is_same_choice(call, step, position, got, results):
            text = say("chose others among equal values")
            one = replace(one, holds=True, relative=0.0, times=0.0, text=text)
        yield one


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    is_alike = one.shape == other.shape and one.dtype == other.dtype
    return is_alike and bool(torch.equal(_bytes(one), _bytes(other)))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8)
