"""Calls that compute in another dtype than those of the reference: on purpose, or by mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING
from npuport.precision.operators.alignment import Alignment
from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.suspicion import Suspect

# Calls, and share of all, that change from one dtype to another in a run that does so on purpose.
_MANY, _SHARE = 8, 0.1
_FEW = 3  # calls of an operator that tell what is usual for it
_NAMED = 3  # operators that a note names
_CAST = "aten._to_copy."


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


def other_dtypes(alignment: Alignment, reference: Step, candidate: Step) -> OtherDtypes:
    """A run that computes in another precision altogether is noted, and so is what devices do by themselves: autocast's
    lists differ by device, and an NPU makes float32 of float64. Calls in a finer dtype are noted too. Single calls in
    another dtype are suspects, also such calls of an operator of which most did not change."""
    changes = list(filter(None, (_change(number, *pair) for number, pair in enumerate(alignment.pairs))))
    floating = sum(any(ref.dtype in ROUNDING for ref in call.inputs) for _, call in alignment.pairs)
    kinds = Counter((one.reference, one.candidate) for one in changes)
    by_device = {kind for kind in kinds if _is_finer(*kind) or _is_by_device(*kind, reference, candidate)}
    by_run = {
        kind
        for kind, number in kinds.items()
        if all(dtype in ROUNDING for dtype in kind) and number >= max(_MANY, _SHARE * floating)
    }
    calls = Counter(call.operator for _, call in alignment.pairs)
    changed = Counter(one.call.operator for one in changes)
    suspects = [
        _suspect(one)
        for one in changes
        if (one.reference, one.candidate) not in by_device
        and (
            (one.reference, one.candidate) not in by_run
            or (calls[one.call.operator] > _FEW and changed[one.call.operator] < 0.5 * calls[one.call.operator])
        )
    ]
    noted = [one for one in changes if (one.reference, one.candidate) in by_device | by_run]
    return OtherDtypes(tuple(suspects), tuple(_notes(noted)))


def _is_finer(reference: str, candidate: str) -> bool:
    """Whether the candidate's dtype rounds less than the reference's."""
    return candidate in ROUNDING and reference in ROUNDING and ROUNDING[candidate] < ROUNDING[reference]


def _is_by_device(dtype: str, other: str, reference: Step, candidate: Step) -> bool:
    """Whether devices explain that the candidate computes in ``other`` where the reference computes in ``dtype``."""
    if dtype == "float64":
        return candidate.device == "npu" != reference.device
    return other in _autocast_to(reference) & _autocast_to(candidate)


def _autocast_to(step: Step) -> set[str]:
    """The dtypes to which float32 parameters are cast for their use: what autocast does, and nobody by hand."""
    return {
        ref.dtype
        for call in step.calls
        if call.operator.startswith(_CAST)
        and any(step.names.get(one.storage, "").startswith("parameter ") for one in call.inputs)
        for ref in call.outputs
    }


def _change(number: int, of_reference: Call, of_candidate: Call) -> _Change | None:
    dtypes = [_computed_in(call) for call in (of_reference, of_candidate)]
    if dtypes[0] is None or dtypes[1] is None or dtypes[0] == dtypes[1]:
        return None
    return _Change(number, of_candidate, dtypes[0], dtypes[1])


def _computed_in(call: Call) -> str | None:
    """The dtype that a call computes in: that of its inputs which rounds least, as types are promoted; where none is
    floating that of the first."""
    dtypes = [ref.dtype for ref in call.inputs]
    return min((one for one in dtypes if one in ROUNDING), key=ROUNDING.__getitem__, default=next(iter(dtypes), None))


def _suspect(one: _Change) -> Suspect:
    text = say("computed in {dtype}, of the reference in {other}", dtype=one.candidate, other=one.reference)
    return Suspect(one.call, "dtype", 400.0 - one.number * 1e-3, text)


def _notes(changes: Sequence[_Change]) -> list[Sentence]:
    kinds: dict[tuple[str, str], list[str]] = {}
    for one in changes:
        name = one.call.operator.split(".")[1]
        kinds.setdefault((one.reference, one.candidate), []).append(name)
    return [
        say(
            "Calls that compute in {dtype} where the reference computes in {other}: {number} ({operators}); each is "
            "judged by the roundings of its own dtype.",
            number=len(names),
            operators=", ".join([name for name, _ in Counter(names).most_common(_NAMED)])
            + (", …" if len(set(names)) > _NAMED else ""),
            dtype=candidate,
            other=reference,
        )
        for (reference, candidate), names in kinds.items()
    ]
