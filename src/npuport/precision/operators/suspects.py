"""Which calls of a run are wrong: by what they were given, by what stands in their place, and by their own error.

Three kinds of evidence, none of which an error that merely arrived with the inputs can make:

- the two runs do not do the same: other operators, other arguments, other dtypes;
- a tensor that no recorded call made (a parameter, a buffer, a batch, a mask) is not the same in both;
- a call's own error, replayed alone in float64, is larger than that of the same call of the reference by more than the
  errors of all other calls differ between the two.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING, Agreement, Distance
from npuport.precision.operators.alignment import Alignment, Difference, align, scalars
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.dtypes import other_dtypes
from npuport.precision.operators.growth import Distances, suspects_without_replay
from npuport.precision.operators.renames import plain_path
from npuport.precision.operators.replay import CallError, errors_of
from npuport.precision.operators.stretches import Judged, Stretches
from npuport.precision.operators.suspicion import Suspect

_SUSPICIOUS = 7.0  # deviations from what other calls show
# Of the logarithm of a ratio, between two runs, of errors and of largest single errors: closer no healthy calls agree.
_SPREAD_OF_SIZES, _SPREAD_OF_PEAKS = 0.12, 0.4
# How far apart parameters and batches may be in the first step, and later: Adam makes full steps from gradients that
# are nothing but rounding, such as those of the bias of a key.
_SOURCE = (1e-4, 2e-2)
_ENOUGH = 8  # calls of an operator that tell what is usual for it
# Operators that move values or fill with one; in a difference others are more telling.
_MOVING = (
    "clone", "_unsafe_view", "view", "copy", "_to_copy", "transpose", "expand", "contiguous", "npu_format_cast",
    "npu_transpose", "scalar_tensor", "zeros", "ones", "full", "fill", "empty", "new_", "arange", "where",
)  # fmt: skip
_SCALE = 8.0  # standard errors that a result may be off as a whole


@dataclass(frozen=True)
class Comparison:
    """What was compared, and the suspects in order of suspicion."""

    suspects: tuple[Suspect, ...]
    calls: int
    replayed: int
    noise: float  # the median error of the candidate's calls over that of the reference's
    random: Call | None  # the first call that gives other random numbers in both
    notes: tuple[Sentence, ...] = ()  # what the reader has to know beside the suspects


def compare(reference: Step, candidate: Step) -> Comparison:
    """Find the calls of a step that break the numbers; of steps without tensors by their statistics."""
    if not (_is_replayable(reference) and _is_replayable(candidate)):
        from npuport.precision.operators.by_statistics import compare_statistics

        return compare_statistics(reference, candidate)
    alignment = align(reference.calls, candidate.calls)
    distances = Distances(reference, candidate)
    agreement = Agreement(alignment, distances.apart)
    replayed = tuple(_replayed(alignment, reference, candidate))
    stretches = Stretches(alignment, reference, candidate, _noise(replayed))
    dtypes = other_dtypes(alignment)
    found = [
        *other_operators(alignment, agreement, stretches),
        *other_arguments(alignment, stretches.come_to_the_same),
        *dtypes.suspects,
        *other_sources(alignment, reference, candidate, distances.apart),
        *_own_errors(replayed),
        *suspects_without_replay(alignment.pairs, distances, {one.call.index for one in replayed}),
    ]
    ratios = [one.candidate.relative / one.reference.relative for one in replayed if one.is_comparable]
    ordered = sorted(one_for_each_call(found), key=lambda one: (-one.score, one.call.index))
    calls = len({one.call.index for one in replayed})
    noise = median(ratios) if ratios else 1.0
    return Comparison(tuple(ordered), len(candidate.calls), calls, noise, agreement.random, dtypes.notes)


def _is_replayable(step: Step) -> bool:
    return step.has_tensors and any(call.operator.startswith("aten.") for call in step.calls)


@dataclass(frozen=True)
class _Replayed:
    """One floating result of a call, and its errors in both runs."""

    call: Call
    dtype: str
    of_reference: str  # its dtype there
    reference: CallError
    candidate: CallError

    @property
    def is_comparable(self) -> bool:
        return self.reference.relative > 0 and self.candidate.relative > 0

    @property
    def rounding(self) -> float:
        return ROUNDING[self.dtype]

    @property
    def size(self) -> float:
        """The logarithm of the ratio of the errors, each in roundings of its dtype; below a quarter two are equal."""
        own, other = self.candidate.relative / self.rounding, self.reference.relative / ROUNDING[self.of_reference]
        return math.log(max(own, 0.25) / max(other, 0.25))

    @property
    def peak(self) -> float:
        return math.log((self.candidate.peak + 1) / (self.reference.peak + 1))

    @property
    def chance(self) -> float:
        """Variance that ``size`` has by chance: errors are averaged over so many values only."""
        return 0.5 / self.reference.effective + 0.5 / self.candidate.effective


def _noise(replayed: Sequence[_Replayed]) -> tuple[float, float]:
    """The usual error of a call of the reference, and of the candidate."""
    if not replayed:
        return 0.0, 0.0
    return median(one.reference.relative for one in replayed), median(one.candidate.relative for one in replayed)


def _replayed(alignment: Alignment, reference: Step, candidate: Step) -> Iterator[_Replayed]:
    for one, other in alignment.pairs:
        before, after = errors_of(one, reference), errors_of(other, candidate)
        for position in before.keys() & after.keys():
            dtypes = other.outputs[position].dtype, one.outputs[position].dtype
            yield _Replayed(other, *dtypes, before[position], after[position])


def one_for_each_call(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Of several reasons to suspect a call the surest."""
    best: dict[tuple[int, str], Suspect] = {}
    for one in suspects:
        key = (one.call.index, one.call.operator)
        if key not in best or one.score > best[key].score:
            best[key] = one
    return list(best.values())


def other_operators(
    alignment: Alignment, agreement: Agreement, stretches: Stretches | None = None
) -> Iterator[Suspect]:
    """Calls that one run has and the other has not, if what they make differs: devices compose the same from other
    operators. The first such place leads to others: it is surest. Behind other random numbers nothing can be said
    unless the stretch itself can be judged."""
    for number, difference in enumerate(alignment.differences):
        place = (*difference.candidate, *difference.reference)[0]
        judged = stretches.judged(difference, agreement.usual(place)) if stretches is not None else None
        if judged is None:
            is_behind_random = agreement.random is not None and place.index >= agreement.random.index
            is_healthy = is_behind_random or not agreement.is_apart_behind(difference)
        else:
            is_healthy = judged.is_healthy
        if not is_healthy:
            score = 1000.0 - number if place.phase == "forward" else 500.0 - number
            yield Suspect(_telling(difference, judged), "operators", score, _operators_text(difference, judged))


def _telling(difference: Difference, judged: Judged | None) -> Call:
    """The call of a difference to name: the one that made what is off, or else the first that computes."""
    made = [call for call in difference.candidate if judged and judged.storage in {ref.storage for ref in call.outputs}]
    return min(made or difference.candidate or difference.reference, key=_only_moves)


def _operators_text(difference: Difference, judged: Judged | None) -> Sentence:
    has, had = _names(difference.candidate), _names(difference.reference)
    if judged is None:
        return say("other operators: {candidate} where the reference has {reference}", candidate=has, reference=had)
    error = judged.error
    is_whole = error.broken == 0 and abs(error.factor - 1) > 0.5 * error.relative
    off = f"{error.factor - 1:+.2%}" if is_whole else f"{error.relative:.1e}"
    if judged.is_reversed:
        return say(
            "{candidate} in float64 is {off} off from what the reference's {reference} gave for the same inputs",
            candidate=has, reference=had, off=off)  # fmt: skip
    return say(
        "{candidate} is {off} off from what the reference's {reference} give in float64 for the same inputs",
        candidate=has, reference=had, off=off)  # fmt: skip


def other_arguments(
    alignment: Alignment, is_same: Callable[[Call, Call], bool] = lambda _one, _other: False
) -> Iterator[Suspect]:
    """Arguments that are not the same; ``is_same`` knows of those that come to the same, such as two names of a
    dimension."""
    for number, (of_reference, of_candidate) in enumerate(alignment.pairs):
        if not of_candidate.inputs:
            continue  # it makes a tensor of some size, not a result of others: where that is used tells
        before, after = dict(scalars(of_reference)), dict(scalars(of_candidate))
        names = [name for name in sorted(before.keys() | after.keys()) if not _equal(before.get(name), after.get(name))]
        if names and not is_same(of_reference, of_candidate):
            text = say("argument {name} is {value}, of the reference {other}", name=names[0],
                       value=after.get(names[0]), other=before.get(names[0]))  # fmt: skip
            yield Suspect(of_candidate, "argument", 900.0 - number * 1e-3, text)


def other_sources(
    alignment: Alignment,
    reference: Step,
    candidate: Step,
    distance_of: Distance,
    at_least: Callable[[Call], float] = lambda _: 0.0,
) -> Iterator[Suspect]:
    """Tensors that came from outside of the recorded calls and are not the same; ``at_least`` says how far apart they
    have to be where they are used."""
    made = _made(reference), _made(candidate)
    seen: set[int] = set()
    differences: list[tuple[float, float, Call, TensorRef]] = []
    for of_reference, of_candidate in alignment.pairs:
        for one, other in zip(of_reference.inputs, of_candidate.inputs, strict=False):
            is_source = one.storage not in made[0] and other.storage not in made[1]
            if not is_source or other.storage in seen or one.shape != other.shape:
                continue
            seen.add(other.storage)
            rounding = (
                2 * max(ROUNDING.get(ref.dtype, 0.0) for ref in (one, other)) if one.dtype != other.dtype else 0.0
            )
            differences.append((distance_of(one, other), rounding, of_candidate, other))
    floating = [distance for distance, _, _, ref in differences if ref.dtype in ROUNDING and distance > 0]
    usual = median(floating) if len(floating) > 4 else 0.0
    for number, (distance, rounding, call, ref) in enumerate(differences):
        limit = max(8 * usual, rounding, _SOURCE[min(candidate.step, 1)] if ref.dtype in ROUNDING else 0.0)
        if distance > max(limit, at_least(call)):
            text = say("an input that no recorded operator made differs by {apart} ({dtype} {shape})",
                       apart=f"{distance:.2g}", dtype=ref.dtype, shape=list(ref.shape))  # fmt: skip
            yield Suspect(call, "input", 800.0 - number * 1e-3, text)


def _own_errors(replayed: Sequence[_Replayed]) -> Iterator[Suspect]:
    sizes, peaks = _Usual(_SPREAD_OF_SIZES), _Usual(_SPREAD_OF_PEAKS)
    for one in replayed:
        sizes.add(one.call.operator, one.size)
        peaks.add(one.call.operator, one.peak)
    for one in replayed:
        a, b = one.reference, one.candidate
        if b.broken > a.broken:
            text = say("{number} values are not finite (or finite where they should not be), given these inputs",
                       number=b.broken)  # fmt: skip
            yield Suspect(one.call, "not finite", 2000.0 - one.call.index * 1e-3, text)
            continue
        size = sizes.deviation(one.call.operator, one.size, one.chance)
        peak = peaks.deviation(one.call.operator, one.peak)
        is_off = abs(b.factor - 1) > 4 * one.rounding and b.scale > max(_SCALE, 4 * a.scale)
        score = max(size, peak, b.scale if is_off else 0.0)
        if score > _SUSPICIOUS and b.relative > 2 * one.rounding:
            yield Suspect(one.call, "error", score, _error_text(a, b, size, peak, b.scale if is_off else 0.0))


def _error_text(a: CallError, b: CallError, size: float, peak: float, whole: float) -> Sentence:
    if whole > max(size, peak):
        return say("its own result is {share} off as a whole; inputs are its own", share=f"{b.factor - 1:+.2%}")
    if peak > size:
        return say("single values of its own result are far off: {peak} x the usual error", peak=f"{b.peak:.0f}")
    return say(
        "its own error is {error}, of the reference {other}", error=f"{b.relative:.1e}", other=f"{a.relative:.1e}"
    )


class _Usual:
    """What healthy calls show: those of the same operator where there are enough of them, else all."""

    def __init__(self, smallest_spread: float) -> None:
        self._smallest_spread = smallest_spread
        self._values: dict[str, list[float]] = defaultdict(list)

    def add(self, operator: str, value: float) -> None:
        self._values[operator].append(value)
        self._values[""].append(value)

    def deviation(self, operator: str, value: float, chance: float = 0.0) -> float:
        """How many deviations a value is above what is usual."""
        of_operator = self._values[operator]
        values = of_operator if len(of_operator) >= _ENOUGH else self._values[""]
        middle = median(values)
        spread = max(1.4826 * median(abs(one - middle) for one in values), self._smallest_spread)
        return (value - middle) / math.hypot(spread, math.sqrt(chance))


def _made(step: Step) -> set[int]:
    """The storages that a recorded call made or wrote."""
    return {ref.storage for call in step.calls for ref in call.outputs}


def _equal(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-6) or (math.isnan(one) and math.isnan(other))
    return one == other


def _short(call: Call) -> str:
    return call.operator.removeprefix("aten.").rpartition(".")[0]


def _only_moves(call: Call) -> bool:
    """Whether a call makes no new values, or the same everywhere."""
    return _short(call).startswith(_MOVING)


def _names(calls: Sequence[Call]) -> str:
    """The operators of a stretch; those that only move and fill where there are no others."""
    if not calls:
        return "nothing"
    telling = [call for call in calls if not _only_moves(call)] or list(calls)
    names = ", ".join(map(_short, telling[:5])) + (", …" if len(telling) > 5 else "")
    modules = {plain_path(call.module) for call in calls}
    return f"{names} ({modules.pop()})" if len(modules) == 1 and "" not in modules else names
