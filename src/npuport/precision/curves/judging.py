"""Whether two runs train alike: published criteria, the reference's own fluctuation, the kind of difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from npuport.facts import CurveCriterion, all_curve_criteria
from npuport.findings import Sentence, say
from npuport.precision.curves.curve import Pair, Run, pair_of

ENOUGH_STEPS = 1000
"""MindFormers' guide asks for 5,000 steps, and for 1,000 at least."""

_OWN = 1.5  # how much further than the reference is from itself the candidate may be
_SPIKE = 8.0  # deviations (scaled MAD) above the median of the steps before
_SPIKE_SHARE = 0.2  # and at least this share of it
_WINDOW = 20  # steps that a spike is compared with
_TINY = 1e-12


@dataclass(frozen=True)
class Measured:
    """A criterion and what was measured; ``own`` is the same between two runs of the reference, if there are two."""

    criterion: CurveCriterion
    absolute: float
    relative: float
    own: float | None

    @property
    def holds(self) -> bool:
        """Whether one of its limits is kept."""
        limits = ((self.absolute, self.criterion.absolute), (self.relative, self.criterion.relative))
        return any(limit is not None and value <= limit for value, limit in limits)

    @property
    def is_own_fluctuation(self) -> bool:
        """Whether the difference is no larger than what the reference shows against itself."""
        return self.own is not None and self.relative <= _OWN * self.own


@dataclass(frozen=True)
class Observation:
    """One thing seen in the curves; ``is_failure`` where it alone says that the runs do not agree."""

    name: str
    text: Sentence
    is_failure: bool
    step: int | None = None


@dataclass(frozen=True)
class Judgement:
    """``passes`` if every criterion holds or the reference's own fluctuation explains it, and nothing else fails."""

    passes: bool
    measured: tuple[Measured, ...]
    observations: tuple[Observation, ...]
    pairs: dict[str, Pair]


def judge(reference: Run, candidate: Run, again: Run | None = None) -> Judgement:
    """Judge a run by a reference, and by a second run of the reference if there is one."""
    pairs = {
        metric: pair
        for metric, curve in reference.curves.items()
        if metric in candidate.curves and (pair := pair_of(curve, candidate.curves[metric])) is not None
    }
    own = {
        metric: pair
        for metric, curve in reference.curves.items()
        if again is not None and metric in again.curves and (pair := pair_of(curve, again.curves[metric])) is not None
    }
    measured = tuple(_measured(pairs, own))
    observations = tuple(_observations(reference, candidate, pairs))
    fails = any(not one.holds and not one.is_own_fluctuation for one in measured)
    fails |= any(one.is_failure for one in observations)
    return Judgement(not fails and bool(measured), measured, observations, pairs)


def _measured(pairs: dict[str, Pair], own: dict[str, Pair]) -> Iterator[Measured]:
    for criterion in all_curve_criteria():
        pair = pairs.get(criterion.metric)
        found = _difference(pair, criterion) if pair is not None else None
        if found is not None:
            of_reference = _difference(own[criterion.metric], criterion) if criterion.metric in own else None
            yield Measured(criterion, *found, of_reference[1] if of_reference is not None else None)


def _difference(pair: Pair, criterion: CurveCriterion) -> tuple[float, float] | None:
    """(absolute, relative) difference by a criterion's measure; None without a step that it looks at."""
    whole = pair.finite()
    points = [
        (a, b)
        for step, a, b in zip(whole.steps, whole.reference, whole.candidate, strict=True)
        if step >= criterion.from_step
    ]
    if not points:
        return None
    if criterion.measure == "first":
        points = points[:1]
    return fmean(abs(b - a) for a, b in points), fmean(abs(b - a) / max(abs(a), _TINY) for a, b in points)


def _observations(reference: Run, candidate: Run, pairs: dict[str, Pair]) -> Iterator[Observation]:
    if not pairs:
        yield Observation("nothing-in-common", say("the two logs have no curve in common steps"), is_failure=True)
    for metric, curve in candidate.curves.items():
        bad = curve.first_bad()
        of_reference = reference.curves[metric].first_bad() if metric in reference.curves else None
        if bad is not None and (of_reference is None or of_reference > bad):
            text = say("{metric} is not finite from step {step} on", metric=metric, step=bad)
            yield Observation("not-finite", text, is_failure=True, step=bad)
    loss = pairs.get("loss")
    if loss is not None:
        yield from _of_loss(loss.finite(), reference, candidate)


def _of_loss(pair: Pair, reference: Run, candidate: Run) -> Iterator[Observation]:
    if pair.interpolated:
        text = say("the runs log different steps: the candidate is interpolated at those of the reference")
        yield Observation("interpolated", text, is_failure=False)
    last = reference.curves["loss"].steps[-1], candidate.curves["loss"].steps[-1]
    if last[1] < last[0] * 0.98:
        text = say(
            "the candidate ends at step {step}, the reference at {of_reference}", step=last[1], of_reference=last[0]
        )
        yield Observation("ends-early", text, is_failure=True, step=last[1])
    if pair.steps and pair.steps[-1] - pair.steps[0] < ENOUGH_STEPS - 1:
        steps = pair.steps[-1] - pair.steps[0] + 1
        text = say("{steps} steps: the criteria are meant for {enough} or more", steps=steps, enough=ENOUGH_STEPS)
        yield Observation("few-steps", text, is_failure=False)
    shift = _shift(pair)
    if shift is not None:
        text = say("moved by {steps} logged steps the curves agree: one of them counts differently", steps=shift)
        yield Observation("shifted", text, is_failure=False)
    for step in _spikes(pair.steps, pair.candidate, pair.reference):
        text = say("a spike at step {step} that the reference does not have", step=step)
        yield Observation("spike", text, is_failure=True, step=step)
    if shift is None:
        yield from _trend(pair)


def _trend(pair: Pair) -> Iterator[Observation]:
    """Where the curves part, and whether they do so to one side."""
    relative = [(b - a) / max(abs(a), _TINY) for a, b in zip(pair.reference, pair.candidate, strict=True)]
    parted = _parting(pair.steps, relative)
    if parted is not None:
        text = say("the curves part at step {step}", step=parted)
        yield Observation("parts", text, is_failure=False, step=parted)
    if len(relative) < 20:
        return
    quarter = len(relative) // 4
    early, late = fmean(map(abs, relative[:quarter])), fmean(map(abs, relative[-quarter:]))
    if late > max(3 * early, 0.002):
        text = say(
            "the difference grows: {early} in the first quarter, {late} in the last",
            early=f"{early:.2%}",
            late=f"{late:.2%}",
        )
        yield Observation("drifts", text, is_failure=False)
    side = sum(value > 0 for value in relative) / len(relative)
    bias = fmean(relative)
    if max(side, 1 - side) >= 0.9 and abs(bias) > 0.001:
        which = say("higher") if bias > 0 else say("lower")
        text = say(
            "the candidate is nearly always {which}: {bias} on average", which=which.template, bias=f"{bias:+.2%}"
        )
        yield Observation("biased", text, is_failure=False)


def _parting(steps: Sequence[int], relative: Sequence[float]) -> int | None:
    """The first step from which the difference stays above what it was in the beginning."""
    if len(relative) < 20:
        return None
    width = max(3, len(relative) // 50)
    smooth = [median(map(abs, relative[max(0, at - width) : at + width + 1])) for at in range(len(relative))]
    noise = max(5 * median(smooth[: max(10, len(smooth) // 10)]), 0.005)
    if smooth[-1] <= noise:
        return None
    last_quiet = max((at for at, value in enumerate(smooth) if value <= noise), default=-1)
    return steps[last_quiet + 1] if 0 <= last_quiet < len(steps) - 1 else None


def _shift(pair: Pair) -> int | None:
    """By how many logged steps the candidate must be moved to agree; None where that does not help."""
    length = len(pair.steps)
    if length < 20:
        return None
    unmoved = _mean_relative(pair.reference, pair.candidate)
    if unmoved < 0.002:
        return None
    moved = {
        by: _mean_relative(
            pair.reference[max(0, by) : length + min(0, by)], pair.candidate[max(0, -by) : length - max(0, by)]
        )
        for by in (-3, -2, -1, 1, 2, 3)
    }
    best = min(moved, key=lambda by: moved[by])
    return best if moved[best] < unmoved / 5 else None


def _mean_relative(reference: Sequence[float], candidate: Sequence[float]) -> float:
    return fmean(abs(b - a) / max(abs(a), _TINY) for a, b in zip(reference, candidate, strict=True))


def _spikes(steps: Sequence[int], candidate: Sequence[float], reference: Sequence[float]) -> Iterator[int]:
    """Steps where the candidate jumps up and the reference, two steps around, does not."""
    of_reference = _jumps(reference)
    previous = -_WINDOW
    for at in sorted(_jumps(candidate)):
        near = any(abs(at - other) <= 2 for other in of_reference)
        if not near and at - previous > 2:
            yield steps[at]
        previous = at


def _jumps(values: Sequence[float]) -> set[int]:
    found = set()
    for at in range(_WINDOW, len(values)):
        before = values[at - _WINDOW : at]
        middle = median(before)
        spread = 1.4826 * median(abs(value - middle) for value in before)
        if values[at] > middle + max(_SPIKE * spread, _SPIKE_SHARE * abs(middle)) and math.isfinite(values[at]):
            found.add(at)
    return found
