"""The table of fragments in docs/fused.md: forms of fusable code and look-alikes, converted and proved.

    python tools/fragment_table.py            prints the table
    python tools/fragment_table.py --write    puts it into docs/fused.md

A fragment is a file of tests/proof/fragments, written by us after a form found in public code. Its first comment says
``Form: …. Origin: ….`` or, for code that only looks like one, ``Look-alike: …. Origin: ….``
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npuport.conversion.rounds import convert_files
from npuport.findings import Claim, Finding, Outcome, Verdict
from npuport.proof import prove
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "proof" / "fragments"
PAGE = ROOT / "docs" / "fused.md"
DTYPES = ("float32", "float16", "bfloat16")
BEGIN, END = "<!-- fragments: written by tools/fragment_table.py -->\n", "<!-- end of fragments -->"
_CODES = re.compile(r"NP6(?:[456]\d|18)")
_HEADER = re.compile(r"(Form|Look-alike): (.*?)\. Origin: (.*?)\.?$")


@dataclass(frozen=True)
class Row:
    """What became of one fragment. ``codes`` are the rules that saw fusable code in it."""

    file: str
    is_form: bool
    what: str
    origin: str
    codes: tuple[str, ...]
    rewritten: bool
    verdicts: tuple[Verdict, ...]
    reason: str  # why something was left, "" if nothing was

    @property
    def outcome(self) -> str:
        """In words that are the same on every machine: without the measured numbers."""
        if not self.codes:
            return "not matched"
        return ", ".join(self.codes) + (": rewritten" if self.rewritten else ": left")


def rows() -> list[Row]:
    """Every fragment, converted in one run with one proof."""
    paths = sorted(FOLDER.glob("*.py"))
    sources = [SourceFile(path.name, FileKind.PYTHON, path.read_text(encoding="utf-8")) for path in paths]
    verdicts: dict[Claim, Verdict] = {}

    def remembering(claims: Sequence[Claim]) -> Sequence[Verdict]:
        verdicts.update(zip(claims, prove(claims), strict=True))
        return [verdicts[claim] for claim in claims]

    applied: dict[str, list[Verdict]] = {path.name: [] for path in paths}
    done = convert_files(sources, Settings(), unsafe=True, jobs=1, prove=remembering)
    found: dict[str, set[str]] = {path.name: set() for path in paths}
    for file in done.files:
        for change in file.changes:
            for reason in change.reasons:
                if _CODES.fullmatch(reason.code):
                    found[file.source.path].add(reason.code)
                if reason.verdict is not None and reason.verdict not in applied[file.source.path]:
                    applied[file.source.path].append(reason.verdict)
    left: dict[str, list[Finding]] = {path.name: [] for path in paths}
    for finding in done.left:
        if _CODES.fullmatch(finding.code):
            left[finding.location.path].append(finding)
            found[finding.location.path].add(finding.code)
    return [_row(source, found[source.path], applied[source.path], left[source.path]) for source in sources]


def _row(source: SourceFile, codes: set[str], verdicts: Sequence[Verdict], left: Sequence[Finding]) -> Row:
    kind, what, origin = header(source.text)
    rewritten = any(verdict.outcome is Outcome.PROVED for verdict in verdicts)
    reasons = [re.split(r"; (?:left as it is|withheld), for ", finding.message)[-1] for finding in left]
    return Row(
        file=source.path.removesuffix(".py"),
        is_form=kind == "Form",
        what=what,
        origin=origin,
        codes=tuple(sorted(codes)),
        rewritten=rewritten,
        verdicts=tuple(verdicts),
        reason=reasons[0] if reasons else "",
    )


def header(text: str) -> tuple[str, str, str]:
    """The kind, the form and the origin in the first comment of a fragment.

    Raises:
        ValueError: the comment is not written so.
    """
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    found = _HEADER.match(" ".join(lines))
    if found is None:
        raise ValueError(f"a fragment begins with a comment `Form: …. Origin: ….`, and not with {' '.join(lines)!r}")
    return found[1], found[2], found[3]


def table(made: Sequence[Row]) -> Iterator[str]:
    """The lines of both tables."""
    forms, alike = ([row for row in made if row.is_form is wanted] for wanted in (True, False))
    matched, rewritten = sum(bool(row.codes) for row in forms), sum(row.rewritten for row in forms)
    yield f"Of {len(forms)} forms, {matched} are matched and {rewritten} rewritten; of {len(alike)} look-alikes,"
    yield f"{sum(row.rewritten for row in alike)} are rewritten."
    yield ""
    yield "| form | after | result | largest error: float32, float16, bfloat16 (of the original) |"
    yield "|---|---|---|---|"
    for row in forms:
        yield f"| {_cell(row.what)} | {_cell(row.origin)} | {row.outcome} | {_errors(row)} |"
    yield ""
    yield "| look-alike | result | why |"
    yield "|---|---|---|"
    for row in alike:
        yield f"| {_cell(row.what)} | {row.outcome} | {_cell(_short(row.reason))} |"


def _errors(row: Row) -> str:
    if not row.verdicts:
        return _cell(_short(row.reason))
    new: dict[str, float] = {}
    old: dict[str, float] = {}
    for verdict in row.verdicts:
        _keep_largest(new, verdict.difference)
        _keep_largest(old, verdict.original)
    return ", ".join(f"{new[dtype]:.1e} ({old[dtype]:.1e})" for dtype in DTYPES if dtype in new)


def _keep_largest(errors: dict[str, float], more: Sequence[tuple[str, float]]) -> None:
    for dtype, error in more:
        errors[dtype] = max(error, errors.get(dtype, 0.0))


def _short(reason: str) -> str:
    return re.sub(r" \(with .*\)$", "", reason)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page(text: str, made: Sequence[Row]) -> str:
    """The page with the tables in their place."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n".join(table(made)) + "\n" + END + rest.split(END)[1]


def outcomes(text: str) -> Mapping[str, str]:
    """The result of each form and look-alike in the page."""
    lines = text.split(BEGIN)[1].split(END, maxsplit=1)[0].splitlines()
    cells = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
    headed: dict[str, str] = {}
    place = 0
    for row in cells:
        if "result" in row:
            place = row.index("result")
        else:
            headed[row[0]] = row[place]
    return headed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into docs/fused.md")
    made = rows()
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), made), encoding="utf-8")
    else:
        print("\n".join(table(made)))


if __name__ == "__main__":
    main()
