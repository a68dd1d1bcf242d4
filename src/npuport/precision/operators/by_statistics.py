"""Which calls of a run are wrong, told without replaying them: from statistics, or from tensors of calls that are none
of PyTorch's operators, such as those in a dump of msprobe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import median

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import Agreement
from npuport.precision.operators.alignment import Alignment, align
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.drawing import holds_anything
from npuport.precision.operators.dtypes import other_dtypes
from npuport.precision.operators.growth import Distances, measured, own_errors
from npuport.precision.operators.levels import is_saturated
from npuport.precision.operators.sources import other_sources
from npuport.precision.operators.suspects import (
    Comparison,
    one_for_each_call,
    other_arguments,
    other_operators,
    rename_notes,
)
from npuport.precision.operators.suspicion import Suspect
from npuport.precision.operators.threads import Advance, in_threads, one_thread_each

_NOTE = say("Compared by statistics alone, which see large errors only; recorded tensors tell more.")


def compare_statistics(
    reference: Step, candidate: Step, renames: Mapping[str, str] | None = None, advance: Advance | None = None
) -> Comparison:
    """Find the calls of a step that break the numbers without replaying them. ``advance`` is told how many more calls
    were compared."""
    alignment = align(reference, candidate, renames)
    distances = Distances(reference, candidate)
    if reference.has_tensors and candidate.has_tensors:
        with one_thread_each():
            for _ in in_threads(lambda pair: distances.look_up(*pair), alignment.pairs, advance):
                pass
            return _compare(reference, candidate, alignment, distances)
    return _compare(reference, candidate, alignment, distances, advance)


def _compare(
    reference: Step, candidate: Step, alignment: Alignment, distances: Distances, advance: Advance | None = None
) -> Comparison:
    agreement = Agreement(alignment, distances.apart)
    results = measured(alignment.pairs, distances, advance)
    dtypes = other_dtypes(alignment, reference, candidate)
    # In dumps of msprobe a part of a result looks like a tensor that no call made.
    is_guessed = not any(call.operator.startswith("aten.") for call in candidate.calls)
    bits = list(_other_bits(alignment, distances))
    found = [
        *other_operators(alignment, agreement),
        *other_arguments(alignment),
        *other_sources(alignment, reference, candidate, distances.apart, agreement.beyond if is_guessed else _anything),
        *dtypes.suspects,
        *_not_finite(alignment, distances),
        *own_errors(results),
        *(() if results else bits),
    ]
    ordered = sorted(one_for_each_call(found), key=lambda one: (-one.score, one.call.index))
    noise = math.exp(median(one.growth for one in results)) if results else 1.0
    notes = (*rename_notes(alignment), *dtypes.notes, *(_bits_note(one.call) for one in bits if results))
    notes = notes if reference.has_tensors and candidate.has_tensors else (_NOTE, *notes)
    has_common_values = any(_has_common_values(distances, *pair) for pair in alignment.pairs)
    return Comparison(
        tuple(ordered),
        len(candidate.calls),
        0,
        noise,
        agreement.random,
        notes,
        has_common_values=has_common_values,
    )


def _has_common_values(distances: Distances, one: Call, other: Call) -> bool:
    """Whether of a tensor of two calls both values, both statistics or both checksums are there."""
    pairs = (*zip(one.inputs, other.inputs, strict=False), *zip(one.outputs, other.outputs, strict=False))
    return any(distances.is_known(*pair) for pair in pairs)


def _anything(_: Call) -> float:
    return 0.0


def _bits_note(call: Call) -> Sentence:
    return say(
        "the first call that makes other bits of the same inputs is {operator} ({place}): no error, unless both should "
        "be the same",
        operator=call.operator,
        place=call.module or call.phase,
    )


def _other_bits(alignment: Alignment, distances: Distances) -> Iterator[Suspect]:
    """By checksums: the first call that makes other bits from the same ones."""
    for one, other in alignment.pairs:
        if holds_anything(other):
            continue
        inputs, outputs = (
            [distances.statistics(a, b) for a, b in zip(before, after, strict=False)]
            for before, after in ((one.inputs, other.inputs), (one.outputs, other.outputs))
        )
        sums = [[(a.checksum, b.checksum) for a, b in pairs if a and b] for pairs in (inputs, outputs)]
        if all(a == b is not None for a, b in sums[0]) and any(a != b for a, b in sums[1]):
            yield Suspect(other, "bits", 1.0, say("the first call that makes other bits of the same inputs"))
            return


def _not_finite(alignment: Alignment, distances: Distances) -> Iterator[Suspect]:
    for one, other in alignment.pairs:
        if holds_anything(other) or any(
            _broken(distances, a, b) for a, b in zip(one.inputs, other.inputs, strict=False)
        ):
            continue
        number = sum(_broken(distances, a, b) for a, b in zip(one.outputs, other.outputs, strict=False))
        if number:
            text = say("values are not finite where those of the reference are; its inputs are finite alike")
            yield Suspect(other, "not finite", 2000.0 - other.index * 1e-3, text)


def _broken(distances: Distances, one: TensorRef, other: TensorRef) -> bool:
    a, b = distances.statistics(one, other)
    if a is None or b is None:
        return False
    infinite = 0 if is_saturated(a, one.dtype) or is_saturated(b, other.dtype) else b.infs - a.infs
    return b.nans - a.nans + infinite > 0
