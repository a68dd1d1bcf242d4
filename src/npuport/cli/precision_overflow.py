"""What `npuport precision overflow` says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, print_json
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.findings import Sentence
    from npuport.precision.operators.calls import Call
    from npuport.precision.overflow.batches import Batch
    from npuport.precision.overflow.origins import Origin
    from npuport.precision.overflow.scaling import Scaling, Underflow

_SHOWN = 3


@dataclass(frozen=True)
class _Looked:
    """What was found in one step of one rank."""

    step: int
    rank: int
    calls: int
    origins: Sequence[Origin]
    scalings: Sequence[Scaling]
    underflows: Sequence[Underflow]
    nearest: tuple[Call, float] | None
    batch: Batch

    @property
    def harmful(self) -> list[Origin]:
        """What no loss scaler caught."""
        return [one for one in self.origins if not one.is_caught]


def look_into(dump: Path, as_json: bool) -> int:
    """Look for NaN and infinity in every step and rank of a folder; the exit code."""
    from npuport.precision.dumps import steps_in

    looked = [_look(path) for _, path in sorted(steps_in(dump).items())]
    first = next((one.step for one in looked if one.harmful), None)
    there = [one for one in looked if one.step == first and one.origins]
    odd = [(one, text) for one in there for text in _odd(one, looked)]
    if as_json:
        print_json(_as_json(looked, first, odd))
    else:
        print("\n".join(_as_text(looked, there, odd)))
    return CLEAN if first is None else FINDINGS


def _look(path: Path) -> _Looked:
    from npuport.precision.dumps import read_any_step
    from npuport.precision.overflow.batches import batch_of
    from npuport.precision.overflow.origins import origins
    from npuport.precision.overflow.scaling import nearest_to_the_end, scalings, underflows
    from npuport.precision.overflow.values import Values

    step = read_any_step(path)
    if not step.has_tensors and all(
        math.isnan(one.max) and not one.nans + one.infs for one in step.statistics.values()
    ):
        raise UserError("{path} tells nothing of the values of tensors: record statistics or tensors.", path=path)
    values = Values(step)
    return _Looked(
        step.step,
        step.rank,
        len(step.calls),
        origins(step, values),
        list(scalings(step, values)),
        underflows(step, values),
        nearest_to_the_end(step, values),
        batch_of(step),
    )


def _odd(one: _Looked, looked: Sequence[_Looked]) -> list[Sentence]:
    from npuport.precision.overflow.batches import odd_inputs

    return odd_inputs(one.batch, [other.batch for other in looked if other is not one and not other.harmful])


def _as_text(
    looked: Sequence[_Looked], there: Sequence[_Looked], odd: Sequence[tuple[_Looked, Sentence]]
) -> Iterator[str]:
    from npuport.report.language import counted, translate

    steps, ranks = ({one.step for one in looked}, {one.rank for one in looked})
    calls = counted(sum(one.calls for one in looked), "operator call")
    yield f"{counted(len(steps), 'step')}, {counted(len(ranks), 'rank')}, {calls}"
    made = [one for one in there if one.harmful and one.harmful[0].kind != "received"]
    for one in made:
        yield from _origin(one.harmful[0])
        if len(one.harmful) > 1:
            yield "     " + translate("{number} more begin in this step of this rank", number=len(one.harmful) - 1)
    for one in there:
        if one.harmful and one.harmful[0].kind == "received":
            call = one.harmful[0].call
            yield "  " + translate("rank {rank} receives it in {operator}", rank=one.rank, operator=call.operator)
    if there and not made:
        yield "  " + translate("It comes from a rank that was not recorded.")
    for one, text in odd:
        yield f"  {translate('rank {rank}', rank=one.rank)}: {translate(text.template, **text.values)}"
    if not there:
        yield "  " + translate("Nothing becomes NaN or infinite that is not meant to.")
    yield from _scales(looked)
    yield from _float16(looked)


def _origin(one: Origin) -> Iterator[str]:
    from npuport.report.language import translate

    call = one.call
    place = f"{call.module} · " if call.module else ""
    line = f"      {call.line}" if call.line else ""
    name = translate("step {step}, rank {rank}", step=one.step, rank=one.rank)
    yield f"  {name}: {place}{call.operator} ({call.phase}){line}"
    yield f"     {translate(one.text.template, **one.text.values)}"


def _scales(looked: Sequence[_Looked]) -> Iterator[str]:
    from npuport.report.language import counted, translate

    rank = min((one.rank for one in looked if one.scalings), default=None)
    scalings = [scaling for one in looked if one.rank == rank for scaling in one.scalings]
    if not scalings:
        return
    skipped = translate("left out")
    path = " → ".join(f"{one.scale:.6g}{f' ({skipped})' if one.is_skipped else ''}" for one in scalings[:8])
    number = sum(one.is_skipped for one in scalings)
    yield "  " + translate("loss scale: {path}", path=path + (" …" if len(scalings) > 8 else ""))
    if number:
        times = counted(number, "step")
        yield "  " + translate("The loss scaler left out {times}; it halves the scale each time.", times=times)
        caught = next((origin for one in looked for origin in one.origins if origin.is_caught), None)
        if caught is not None:
            yield from _origin(caught)
    if len(scalings) > 1 and all(one.is_skipped for one in scalings):
        yield "  " + translate("No step was made: the scale is not what is too large; look at the call above.")


def _float16(looked: Sequence[_Looked]) -> Iterator[str]:
    from npuport.report.language import translate

    shares = sorted(
        ((under.share, under.call) for one in looked for under in one.underflows), key=lambda pair: -pair[0]
    )
    for share, call in shares[:_SHOWN]:
        yield "  " + translate(
            "{share} of the values become zero in float16: {operator} ({phase}) {place}",
            share=f"{share:.0%}", operator=call.operator, phase=call.phase, place=call.module or call.line,
        )  # fmt: skip
    near = max((one.nearest for one in looked if one.nearest is not None), key=lambda pair: pair[1], default=None)
    if near is not None:
        call, largest = near
        yield "  " + translate(
            "the largest value in float16 is {largest} of 65504: {operator} ({phase}) {place}",
            largest=f"{largest:.4g}", operator=call.operator, phase=call.phase, place=call.module or call.line,
        )  # fmt: skip


def _as_json(looked: Sequence[_Looked], first: int | None, odd: Sequence[tuple[_Looked, Sentence]]) -> dict[str, Any]:
    return {
        "version": 1,
        "first_step": first,
        "origins": [
            {
                "step": origin.step,
                "rank": origin.rank,
                "operator": origin.call.operator,
                "module": origin.call.module,
                "phase": origin.call.phase,
                "line": origin.call.line or None,
                "index": origin.call.index,
                "kind": origin.kind,
                "is_caught": origin.is_caught,
                "text": str(origin.text),
            }
            for one in looked
            for origin in one.origins
        ],
        "batch": [{"step": one.step, "rank": one.rank, "text": str(text)} for one, text in odd],
        "loss_scale": [
            {"step": scaling.step, "rank": one.rank, "scale": scaling.scale, "is_skipped": scaling.is_skipped}
            for one in looked
            for scaling in one.scalings
        ],
    }
