"""Whether a recorded step is one that is looked for: the first with a value that is no number, or a loss that jumps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from npuport.findings import Sentence, say
from npuport.precision.operators.calls import Call, Recorded, Step, TensorRef

_ENOUGH = 5  # losses that tell what is usual
_REMEMBERED = 50
_TIMES = 6  # deviations, by the median of the absolute deviations
_LEAST = 0.1  # a share of the loss: a curve that hardly moves makes no spike
# What these give back is memory that holds anything.
_UNSET = ("aten.empty", "aten.new_empty", "aten.resize")


class Condition:
    """Judges the steps of a run, one after the other."""

    def __init__(self, name: str) -> None:
        self._is_spike = name == "spike"
        self._losses: list[float] = []

    def met(self, step: Recorded, losses: list[float]) -> Sentence | None:
        """Why this step is one that is looked for; ``losses`` are the scalars that its backward passes began at."""
        return self._spike(losses) if self._is_spike else not_finite(step.decoded(), losses)

    def _spike(self, losses: list[float]) -> Sentence | None:
        if not losses:
            return None
        loss, before = sum(losses) / len(losses), self._losses[-_REMEMBERED:]
        self._losses.append(loss)
        if not math.isfinite(loss):
            return say("the loss is {loss}", loss=loss)
        if len(before) < _ENOUGH:
            return None
        usual = median(before)
        spread = max(1.4826 * median(abs(one - usual) for one in before), _LEAST * abs(usual) / _TIMES)
        if loss - usual <= _TIMES * spread:
            return None
        return say("the loss is {loss}, of the steps before {usual}", loss=f"{loss:.4g}", usual=f"{usual:.4g}")


def not_finite(step: Step, losses: list[float]) -> Sentence | None:
    """What is not finite in a step: a loss, a gradient, or the result of an operator that is NaN. Infinite results are
    none by themselves: masks are made of them."""
    for loss in losses:
        if not math.isfinite(loss):
            return say("the loss is {loss}", loss=loss)
    seen: set[TensorRef] = set()
    for call, ref in _results(step):
        if ref in seen:
            continue
        seen.add(ref)
        statistics = step.statistics_of(ref)
        name = step.names.get(ref.storage, "")
        if statistics is None or not (statistics.nans or (statistics.infs and name.startswith("gradient"))):
            continue
        what = name or (f"{call.operator} ({call.module})" if call.module else call.operator)
        return say("{what} is not finite", what=what)
    return None


def _results(step: Step) -> Iterator[tuple[Call, TensorRef]]:
    for call in step.calls:
        if not call.operator.startswith(_UNSET):
            for ref in call.outputs:
                if ref.dtype.startswith(("float", "bfloat", "complex")):
                    yield call, ref
