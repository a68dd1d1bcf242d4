"""The loss scale over the recorded steps, and what does not fit into float16."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npuport.precision.operators.calls import Call, Step
from npuport.precision.overflow.origins import CHECKS, short_name
from npuport.precision.overflow.values import LARGEST, Values

_MANY = 0.05  # share of values that become zero
_NEAR = 4.0  # from here to the end of float16


@dataclass(frozen=True)
class Scaling:
    """One step of a loss scaler. ``is_skipped``: a gradient was not finite, and the optimizer's step was left out."""

    step: int
    scale: float
    is_skipped: bool


@dataclass(frozen=True)
class Underflow:
    """A cast to float16 that turns many values into zero."""

    call: Call
    share: float


def scalings(step: Step, values: Values) -> Iterator[Scaling]:
    """Each time a scaler looks at the gradients: of the operator's arguments the last is 1 / scale."""
    for call in step.calls:
        if short_name(call) != CHECKS[0] or len(call.inputs) < 2:
            continue
        found, inverse = call.inputs[-2:]
        factor = values.of(inverse).high
        broken = any(not values.of(ref).is_finite for ref in call.inputs) or values.of(found).high > 0
        yield Scaling(step.step, 1 / factor if factor else float("inf"), broken)


def underflows(step: Step, values: Values) -> list[Underflow]:
    """Casts to float16 of which many values become zero; the tensors are needed."""
    found = []
    for call in step.calls:
        if short_name(call) not in ("_to_copy", "copy_") or not step.has_tensors or not call.outputs:
            continue
        source, made = call.inputs[-1], call.outputs[0]
        is_narrower = made.dtype == "float16" and source.dtype in ("float32", "bfloat16")
        if not is_narrower or not {source.storage, made.storage} <= step.storages.keys():
            continue
        given, got = step.tensor(source), step.tensor(made)
        if given.shape == got.shape and values.of(source).largest > 0:
            share = float(((got == 0) & (given != 0)).sum()) / max(int((given != 0).sum()), 1)
            if share > _MANY:
                found.append(Underflow(call, share))
    return found


def nearest_to_the_end(step: Step, values: Values) -> tuple[Call, float] | None:
    """The call whose float16 result comes nearest to the end of float16, and how near, where that is near."""
    best: tuple[Call, float] | None = None
    for call in step.calls:
        for ref in call.outputs:
            if ref.dtype != "float16":
                continue
            largest = values.of(ref).largest
            if LARGEST["float16"] / _NEAR < largest < LARGEST["float16"] and (best is None or largest > best[1]):
                best = call, largest
    return best
