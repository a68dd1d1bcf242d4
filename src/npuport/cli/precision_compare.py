"""What `npuport precision compare` says."""

from __future__ import annotations

import gc
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.precision_compare_page import ComparedStep, calls_of, grid_of, pictures_of, shown_step
from npuport.cli.precision_whole import compare_whole, is_whole_and_parts
from npuport.cli.shared import CLEAN, FINDINGS, print_json, progress, talk, waiting, write_aside
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.precision.operators.calls import Call, Step
    from npuport.precision.operators.suspects import Comparison
    from npuport.precision.operators.suspicion import Suspect

_SHOWN = 5
_WHOLE = 4  # steps and ranks that are shown whole


def compare_folders(
    reference: Path,
    candidate: Path,
    as_json: bool,
    columns: Path | None = None,
    html: Path | None = None,
    renames: Sequence[str] = (),
) -> int:
    """Compare each step and rank that both have; the exit code. ``columns``: where msprobe's table goes."""
    from npuport.precision.dumps import read_any_step, steps_in
    from npuport.precision.operators.suspects import compare
    from npuport.report.language import translate

    if reference.is_dir() and candidate.is_dir():
        found = steps_in(reference), steps_in(candidate)
        if is_whole_and_parts(*found):
            return compare_whole(*found, candidate, as_json)
    pairs = _pairs(reference, candidate)
    if columns is not None:
        from npuport.cli.precision_columns import write_columns

        write_columns(pairs, columns)
    given = dict(map(_rename, renames))
    compared = []
    for name, (one, other) in pairs.items():
        gc.disable()  # what is read stays; to look through it for cycles again and again takes as long as reading it
        with waiting(translate("reading {name}", name=name), one.stat().st_size + other.stat().st_size):
            steps = read_any_step(one), read_any_step(other)
        gc.freeze()
        gc.enable()
        for file, step in zip((one, other), steps, strict=True):
            _name_missing(file, step)
        with progress(len(steps[1].calls), name) as bar:
            comparison = compare(*steps, given, bar)
        if not (comparison.has_common_values or comparison.suspects):
            raise UserError(
                "{reference} and {candidate} have nothing in common that can be compared: their calls are of other "
                "levels or models, or one has checksums and the other statistics.",
                reference=one,
                candidate=other,
            )
        compared.append(ComparedStep(name, *steps, comparison))
    if html is not None:
        write_aside(html, _page(reference, candidate, compared).encode())
    if as_json:
        print_json([_as_json(one) for one in compared])
    else:
        print("\n".join(_as_text(candidate, compared)))
    return FINDINGS if any(one.comparison.suspects for one in compared) else CLEAN


def _rename(text: str) -> tuple[str, str]:
    """What the candidate calls a part of paths, and what the reference calls it, from REFERENCE=CANDIDATE."""
    reference, is_pair, candidate = text.partition("=")
    if not is_pair or reference == candidate:
        raise UserError("--rename takes REFERENCE=CANDIDATE, such as attn=self_attn, not {text}", text=text)
    return candidate, reference


def _pairs(reference: Path, candidate: Path) -> dict[str, tuple[Path, Path]]:
    """The files that both sides have, by step and rank, in order; two files are a pair of their own. What only one side
    has is named on stderr.

    Raises:
        UserError: there is none, or one side is a dump of msprobe and the other is not.
    """
    if reference.is_file() and candidate.is_file():
        _require_one_tool(reference, candidate)
        return {candidate.name: (reference, candidate)}
    from npuport.precision.dumps import steps_in
    from npuport.report.language import translate

    found = [steps_in(reference), steps_in(candidate)]
    both = sorted(found[0].keys() & found[1].keys())
    if not both:
        raise UserError(
            "{reference} and {candidate} have no recorded step in common.", reference=reference, candidate=candidate
        )
    for side, path in zip(found, (reference, candidate), strict=True):
        for place in sorted(side.keys() - set(both)):
            talk(translate("{name} is in {path} only: not compared", name=_name(*place), path=path))
    _require_one_tool(found[0][both[0]], found[1][both[0]])
    return {_name(*place): (found[0][place], found[1][place]) for place in both}


def _name(step: int, rank: int) -> str:
    return f"step {step}, rank {rank}"


def _require_one_tool(reference: Path, candidate: Path) -> None:
    dumps = [path for path in (reference, candidate) if path.suffix == ".json"]
    if len(dumps) == 1:
        raise UserError(
            "{dump} is a dump of msprobe and {step} is a step that npuport recorded: their calls have other names. "
            "Record both runs with one tool.",
            dump=dumps[0],
            step=candidate if dumps[0] is reference else reference,
        )


def _name_missing(file: Path, step: Step) -> None:
    """Say on stderr how many tensors of a dump of msprobe are not there."""
    from npuport.precision.msprobe.tensor_files import DumpedStep
    from npuport.report.language import translate

    if isinstance(step, DumpedStep) and step.missing:
        talk(
            translate(
                "{path}: {number} tensors that it names are not there; their statistics are compared",
                path=file,
                number=f"{step.missing:,}",
            )
        )


def _as_text(candidate: Path, compared: Sequence[ComparedStep]) -> Iterator[str]:
    """Every step and rank, or of many one line for each and the first suspected one whole."""
    shown = compared if len(compared) <= _WHOLE else [shown_step(compared)]
    if len(shown) < len(compared):
        yield from _summary(compared)
        yield ""
    for one in shown:
        yield from _step(one)
    if (step := next((one for one in shown if one.comparison.suspects), None)) is not None:
        yield from _next(candidate, step)


def _summary(compared: Sequence[ComparedStep]) -> Iterator[str]:
    from npuport.report.language import counted, translate

    suspected = [one for one in compared if one.comparison.suspects]
    yield translate("{number} of {all} recorded steps have suspects", number=len(suspected), all=len(compared)) + (
        translate(", the first is {name}", name=suspected[0].name) if suspected else ""
    )
    for one in suspected[:_SHOWN]:
        first = one.comparison.suspects[0].call
        where = f"{first.module} · {first.operator}" if first.module else first.operator
        yield f"  {one.name}: {counted(len(one.comparison.suspects), 'suspect')}, {where} ({first.phase})"
    if len(suspected) > _SHOWN:
        yield "  … " + counted(len(suspected) - _SHOWN, "more step")


def _step(one: ComparedStep) -> Iterator[str]:
    from npuport.report.language import counted, translate

    comparison = one.comparison
    yield _headline(one)
    if comparison.random is not None:
        yield "  " + _said_of_random(comparison.random)
    for note in comparison.notes:
        yield "  " + translate(note.template, **note.values)
    said = _verdict(comparison)
    yield "  " + (
        f"{' '.join(said.sentences)} {said.confidence}" if said is not None else translate("Nothing is suspected.")
    )
    for number, suspect in enumerate(comparison.suspects[:_SHOWN], 1):
        yield from _suspect(number, suspect)
    if len(comparison.suspects) > _SHOWN:
        yield "  … " + counted(len(comparison.suspects) - _SHOWN, "more suspect")


def _headline(one: ComparedStep) -> str:
    from npuport.report.language import counted, translate

    calls = counted(one.comparison.calls, "operator call")
    noise = translate("errors {noise} x those of the reference", noise=f"{one.comparison.noise:.2g}")
    replayed = translate("{number} replayed", number=f"{one.comparison.replayed:,}")
    return f"{one.name} ({one.candidate.device}): {calls}, {replayed}, {noise}"


def _said_of_random(call: Call) -> str:
    from npuport.report.language import translate

    return translate(
        "From {operator} on ({line}) the random numbers of the two differ: values behind it are not compared. "
        "Record both with dropout off.",
        operator=call.operator,
        line=call.line or call.module,
    )


@dataclass(frozen=True)
class _Said:
    """The verdict in the user's language."""

    sentences: tuple[str, ...]
    confidence: str


def _verdict(comparison: Comparison) -> _Said | None:
    from npuport.precision.operators.verdict import verdict_of
    from npuport.report.language import translate

    verdict = verdict_of(comparison)
    if verdict is None:
        return None
    levels = {"high": translate("high"), "medium": translate("medium"), "low": translate("low")}
    confidence = translate("Confidence: {confidence}.", confidence=levels[verdict.confidence])
    return _Said(tuple(translate(one.template, **one.values) for one in verdict.sentences), confidence)


def _suspect(number: int, suspect: Suspect) -> Iterator[str]:
    from npuport.report.language import translate

    call = suspect.call
    place = f"{call.module} · " if call.module else ""
    line = f"      {call.line}" if call.line else ""
    yield f"  {number}  {place}{call.operator} ({call.phase}){line}"
    yield f"     {translate(suspect.text.template, **suspect.text.values)}"


def _next(candidate: Path, one: ComparedStep) -> Iterator[str]:
    """The command that goes on from here."""
    from npuport.report.language import translate

    command = _command(candidate, one)
    yield f"{translate('Next:')} {command}      {translate('replays these calls alone')}"
    if one.candidate.rank > 0 or len({rank for _, rank in _ranks(candidate)}) > 1:
        ranks = f"npuport precision ranks {shlex.quote(str(candidate))}"
        yield f"      {ranks}      {translate('computes what the ranks did together again')}"


def _command(candidate: Path, one: ComparedStep) -> str:
    call = one.comparison.suspects[0].call
    only = call.module or call.operator.removeprefix("aten.").rpartition(".")[0]
    return f"npuport precision check-ops {shlex.quote(str(candidate))} --only {shlex.quote(only)}"


def _ranks(path: Path) -> Iterable[tuple[int, int]]:
    from npuport.precision.dumps import steps_in

    return steps_in(path) if path.is_dir() else ()


def _page(reference: Path, candidate: Path, compared: Sequence[ComparedStep]) -> str:
    from npuport.report.language import translate
    from npuport.report.precision_page import precision_page

    one = shown_step(compared)
    said = _verdict(one.comparison)
    document = _as_json(one)
    texts = [translate(suspect.text.template, **suspect.text.values) for suspect in one.comparison.suspects]
    notes = [translate(note.template, **note.values) for note in one.comparison.notes]
    if one.comparison.random is not None:
        notes.insert(0, _said_of_random(one.comparison.random))
    shown = {
        **document,
        "summary": _headline(one),
        "verdict": said.sentences if said is not None else (),
        "notes": notes,
        "sureness": said.confidence if said is not None else "",
        "next": _command(candidate, one) if one.comparison.suspects else "",
        "suspects": [{**entry, "said": text} for entry, text in zip(document["suspects"], texts, strict=True)],
    }
    names = reference.name or str(reference), candidate.name or str(candidate)
    steps = [_as_json(step) for step in compared]
    return precision_page(names, steps, shown, grid_of(compared), calls_of(one), pictures_of(one))


def _as_json(one: ComparedStep) -> dict[str, Any]:
    from npuport.precision.operators.verdict import verdict_of

    step, comparison = one.candidate, one.comparison
    verdict = verdict_of(comparison)
    return {
        "version": 1,
        "name": one.name,
        "step": step.step,
        "rank": step.rank,
        "calls": comparison.calls,
        "replayed": comparison.replayed,
        "noise": comparison.noise,
        "random_from": comparison.random.index if comparison.random is not None else None,
        "notes": [str(note) for note in comparison.notes],
        "verdict": " ".join(map(str, verdict.sentences)) if verdict is not None else None,
        "confidence": verdict.confidence if verdict is not None else None,
        "suspects": [
            {
                "operator": one.call.operator,
                "module": one.call.module,
                "phase": one.call.phase,
                "line": one.call.line or None,
                "index": one.call.index,
                "kind": one.kind,
                "score": one.score,
                "times": one.times,
                "text": str(one.text),
            }
            for one in comparison.suspects
        ],
    }
