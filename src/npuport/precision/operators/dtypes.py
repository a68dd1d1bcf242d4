"""Calls that compute in another dtype than those of the reference: on purpose, or by mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING
from npuport.precision.operators.alignment import Alignment
from npuport.precision.operators.calls import Call
from npuport.precision.operators.suspicion import Suspect

# Calls, and share of all, that change from one dtype to another in a run that does so on purpose.
_MANY, _SHARE = 8, 0.1
_FEW = 3  # calls of an operator that tell what is usual for it


@dataclass(frozen=True)
class OtherDtypes:
    """What of it is a suspicion, and what is said once because the whole run does it."""

    suspects: tuple[Suspect, ...]
    notes: tuple[Sentence, ...]


@dataclass(frozen=True)
class _Change:
    number: int
    call: Call
    reference: str
    candidate: str


def other_dtypes(alignment: Alignment) -> OtherDtypes:
    """A run that computes in another precision altogether is noted, and so are calls in a finer one: autocast's lists
    differ by device. Single calls in another dtype are suspects, also such calls of an operator of which most did not
    change."""
    changes = list(filter(None, (_change(number, *pair) for number, pair in enumerate(alignment.pairs))))
    floating = sum(any(ref.dtype in ROUNDING for ref in call.inputs) for _, call in alignment.pairs)
    kinds = Counter((one.reference, one.candidate) for one in changes)
    on_purpose = {
        kind: number
        for kind, number in kinds.items()
        if all(dtype in ROUNDING for dtype in kind) and (number >= max(_MANY, _SHARE * floating) or _is_finer(*kind))
    }
    calls = Counter(call.operator for _, call in alignment.pairs)
    changed = Counter(one.call.operator for one in changes)
    suspects = [
        _suspect(one)
        for one in changes
        if not _is_finer(one.reference, one.candidate)
        and (
            (one.reference, one.candidate) not in on_purpose
            or (calls[one.call.operator] > _FEW and changed[one.call.operator] < 0.5 * calls[one.call.operator])
        )
    ]
    return OtherDtypes(tuple(suspects), tuple(_notes(on_purpose)))


def _is_finer(reference: str, candidate: str) -> bool:
    """Whether the candidate's dtype rounds less than the reference's."""
    return candidate in ROUNDING and reference in ROUNDING and ROUNDING[candidate] < ROUNDING[reference]


def _change(number: int, of_reference: Call, of_candidate: Call) -> _Change | None:
    for one, other in zip(of_reference.inputs, of_candidate.inputs, strict=False):
        if one.dtype != other.dtype:
            return _Change(number, of_candidate, one.dtype, other.dtype)
    return None


def _suspect(one: _Change) -> Suspect:
    text = say("computed in {dtype}, of the reference in {other}", dtype=one.candidate, other=one.reference)
    return Suspect(one.call, "dtype", 400.0 - one.number * 1e-3, text)


def _notes(on_purpose: dict[tuple[str, str], int]) -> Sequence[Sentence]:
    return [
        say(
            "Calls that compute in {dtype} where the reference computes in {other}: {number}; each is judged by the "
            "roundings of its own dtype.",
            number=number,
            dtype=candidate,
            other=reference,
        )
        for (reference, candidate), number in on_purpose.items()
    ]
