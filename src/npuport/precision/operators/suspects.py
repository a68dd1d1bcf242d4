"""Which calls of a run are wrong: by what they were given, by what stands in their place, and by their own error.

Three kinds of evidence, none of which an error that merely arrived with the inputs can make:

- the two runs do not do the same: other operators, other arguments, other dtypes;
- a tensor that no recorded call made (a parameter, a buffer, a batch, a mask) is not the same in both;
- a call's own error, replayed alone in float64, is larger than that of the same call of the reference by more than the
  errors of all other calls differ between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import Agreement
from npuport.precision.operators.alignment import Alignment, Difference, align, scalars
from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.causes import Causes
from npuport.precision.operators.dtypes import other_dtypes
from npuport.precision.operators.growth import Distances, suspects_without_replay
from npuport.precision.operators.own_errors import UsualErrors, measures_of, noise_of, own_errors, replayed_pairs
from npuport.precision.operators.renames import plain_path, summary
from npuport.precision.operators.sources import other_sources
from npuport.precision.operators.stretches import Judged, Stretches
from npuport.precision.operators.suspicion import Measure, Suspect
from npuport.precision.operators.threads import Advance, one_thread_each

# Operators that move values or fill with one; in a difference others are more telling.
_MOVING = (
    "clone", "_unsafe_view", "view", "copy", "_to_copy", "transpose", "expand", "contiguous", "npu_format_cast",
    "npu_transpose", "scalar_tensor", "zeros", "ones", "full", "fill", "empty", "new_", "arange", "where",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """What was compared, and the suspects in order of suspicion."""

    suspects: tuple[Suspect, ...]
    calls: int
    replayed: int
    noise: float  # the median error of the candidate's calls over that of the reference's
    random: Call | None  # the first call that gives other random numbers in both
    notes: tuple[Sentence, ...] = ()  # what the reader has to know beside the suspects
    inputs_apart: float | None = None  # of the first suspect
    alignment: Alignment | None = None
    measures: Mapping[int, Measure] = field(default_factory=dict)  # by the index of the candidate's call
    has_common_values: bool = True  # whether there is a call of which both have values that can be compared


def compare(
    reference: Step,
    candidate: Step,
    renames: Mapping[str, str] | None = None,
    advance: Advance | None = None,
) -> Comparison:
    """Find the calls of a step that break the numbers; of steps without tensors by their statistics. ``renames``: parts
    of the candidate's module paths and what the reference calls them. ``advance`` is told how many more calls were
    compared."""
    if not (_is_replayable(reference) and _is_replayable(candidate)):
        from npuport.precision.operators.by_statistics import compare_statistics

        return compare_statistics(reference, candidate, renames, advance)
    with one_thread_each():
        return _compare_replaying(reference, candidate, renames, advance)


def _compare_replaying(
    reference: Step, candidate: Step, renames: Mapping[str, str] | None, advance: Advance | None
) -> Comparison:
    alignment = align(reference, candidate, renames)
    distances = Distances(reference, candidate)
    replayed = replayed_pairs(alignment, reference, candidate, distances, advance)
    agreement = Agreement(alignment, distances.apart)
    stretches = Stretches(alignment, reference, candidate, noise_of(replayed))
    dtypes = other_dtypes(alignment, reference, candidate)
    usual = UsualErrors(replayed)
    own = list(own_errors(replayed, usual))
    causes = Causes(stretches, candidate, replayed, own)
    found = [
        *other_operators(alignment, agreement, stretches, causes),
        *other_arguments(alignment, stretches.come_to_the_same),
        *dtypes.suspects,
        *other_sources(alignment, reference, candidate, distances.apart),
        *own,
        *suspects_without_replay(alignment.pairs, distances, {one.call.index for one in replayed}),
    ]
    ratios = [one.candidate.relative / one.reference.relative for one in replayed if one.is_comparable]
    ordered = sorted(one_for_each_call(found), key=lambda one: (-one.score, one.call.index))
    calls = len({one.call.index for one in replayed})
    noise = median(ratios) if ratios else 1.0
    return Comparison(
        tuple(ordered),
        len(candidate.calls),
        calls,
        noise,
        agreement.random,
        (*rename_notes(alignment), *dtypes.notes),
        _inputs_apart(ordered[0], alignment, distances) if ordered else None,
        alignment,
        measures_of(alignment, replayed, usual, distances),
    )


def rename_notes(alignment: Alignment) -> list[Sentence]:
    """What is said of modules that were matched by what they do."""
    return [
        say(
            "Modules matched by what they do: {number}; {candidate} is {reference} of the reference.",
            number=one.modules,
            candidate=one.candidate or '""',
            reference=one.reference or '""',
        )
        for one in summary(alignment.renames)
    ]


def _inputs_apart(suspect: Suspect, alignment: Alignment, distances: Distances) -> float | None:
    pair = next((pair for pair in alignment.pairs if pair[1] is suspect.call), None)
    return distances.inputs(*pair) if pair is not None else None


def _is_replayable(step: Step) -> bool:
    return step.has_tensors and any(call.operator.startswith("aten.") for call in step.calls)


def one_for_each_call(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Of several reasons to suspect a call the surest."""
    best: dict[tuple[int, str], Suspect] = {}
    for one in suspects:
        key = (one.call.index, one.call.operator)
        if key not in best or one.score > best[key].score:
            best[key] = one
    return list(best.values())


def other_operators(
    alignment: Alignment, agreement: Agreement, stretches: Stretches | None = None, causes: Causes | None = None
) -> Iterator[Suspect]:
    """Calls that one run has and the other has not, if what they make differs: devices compose the same from other
    operators. The first such place leads to others: it is surest. Behind other random numbers nothing can be said
    unless the stretch itself can be judged. A call whose own error explains that a stretch is off comes before it."""
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
            yield Suspect(
                _telling(difference, judged),
                "operators",
                score,
                _operators_text(difference, judged),
                None,
                judged is not None and judged.is_sure,
            )
            cause = causes.of(difference, agreement.usual(place)) if causes and judged else None
            if cause is not None:
                yield replace(cause, score=score + 0.5)


def _telling(difference: Difference, judged: Judged | None) -> Call:
    """The call of a difference to name: the one that made what is off, or else the first that computes."""
    made = [call for call in difference.candidate if judged and judged.storage in {ref.storage for ref in call.outputs}]
    return min(made or difference.candidate or difference.reference, key=_only_moves)


def _operators_text(difference: Difference, judged: Judged | None) -> Sentence:
    has, had = _names(difference.candidate), _names(difference.reference)
    if judged is None or not judged.is_sure:
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
