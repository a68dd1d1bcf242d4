"""What a run on the simulated NPU saw, joined with what the source shows: waits and sizes confirmed, or cleared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from npuport.errors import UserError
from npuport.findings import Basis, Finding, Location, Severity

SCHEMA = "npuport-run/1"
WAIT = ("NP613", "wait-in-run")
SHAPES = ("NP614", "shapes-change-in-run")
_FROM_SOURCE = {"NP611", "NP612"}
_EVERY_OTHER_STEP = 0.5  # waits a step from which a line is worth a finding of its own
_SEEN = Basis("a run on the simulated NPU", "measured")


@dataclass(frozen=True)
class RunReport:
    """Places of one run in the files of a tree: (path, line) -> what happened there."""

    waits: Mapping[tuple[str, int], float]  # waits a step
    causes: Mapping[tuple[str, int], str]
    changing: Mapping[tuple[str, int], str]  # operators whose shapes kept changing
    files: frozenset[str]  # in which the run did anything


def read_run_report(place: Path, paths: Iterable[str]) -> RunReport:
    """The report at ``place``, for a tree that holds ``paths``.

    Raises:
        UserError: the file cannot be read, or is no report of a run.
    """
    try:
        document = json.loads(place.read_bytes())
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=place, reason=error.strerror) from error
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UserError(
            "{path} is no report of a run. Make one with npuport run --sim --report {path} -- python train.py.",
            path=place,
        )
    known = _Paths(paths)
    waits: dict[tuple[str, int], float] = {}
    causes: dict[tuple[str, int], str] = {}
    for event in document["synchronizations"]:
        where = known.of(event["place"])
        if where is not None:
            waits[where] = waits.get(where, 0.0) + float(event["per_step"] or 0)
            causes.setdefault(where, str(event["operator"]))
    changing = {
        where: ", ".join(sorted({str(one["operator"]) for one in event["operators"]}))
        for event in document["shapes"]["changing"]
        if (where := known.of(event["place"])) is not None
    }
    # A file that was loaded, as the migration's part says, need not have done anything.
    seen = {name: part for name, part in document.items() if name != "migration"}
    return RunReport(waits, causes, changing, frozenset(known.files(_places(seen))))


def _places(document: Any) -> Iterator[Mapping[str, Any]]:
    """Every place that a report names."""
    if isinstance(document, dict):
        if "line" in document and "path" in document:
            yield document
        for value in document.values():
            yield from _places(value)
    elif isinstance(document, list):
        for value in document:
            yield from _places(value)


class _Paths:
    """The tree's paths, found from the paths of a run, which ran in another directory perhaps."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(PurePosixPath(path).name, []).append(path)

    def of(self, place: Mapping[str, Any] | None) -> tuple[str, int] | None:
        """Where a place of the run lies in the tree; None for one outside, or one of several."""
        if not place:
            return None
        path = self._path(str(place["path"]))
        return (path, int(place["line"])) if path is not None else None

    def files(self, places: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        for place in places:
            path = self._path(str(place["path"]))
            if path is not None:
                yield path

    def _path(self, path: str) -> str | None:
        same_name = self._by_name.get(PurePosixPath(path).name, [])
        fitting = [one for one in same_name if f"/{path}".endswith(f"/{one}") or f"/{one}".endswith(f"/{path}")]
        return fitting[0] if len(fitting) == 1 else None


def joined(findings: Sequence[Finding], report: RunReport) -> tuple[Finding, ...]:
    """``findings`` with those about waits and sizes confirmed or cleared, and what only the run has seen."""
    told = [_told(finding, report) if finding.code in _FROM_SOURCE else finding for finding in findings]
    known = {(one.location.path, line) for one in findings if one.code in _FROM_SOURCE for line in _lines(one.location)}
    return tuple(sorted([*told, *_only_seen(report, known)], key=_order))


def _lines(where: Location) -> range:
    return range(where.line, where.end_line + 1)


def _told(finding: Finding, report: RunReport) -> Finding:
    where = finding.location
    waits = sum(report.waits.get((where.path, line), 0.0) for line in _lines(where))
    if waits:
        message = f"{finding.message}; the run waited here {waits:.3g} times a step"
        evidence = {**finding.evidence, "waits_per_step": waits}
        return replace(finding, severity=Severity.WARNING, message=message, evidence=evidence, basis=_SEEN)
    if where.path in report.files:
        return replace(finding, severity=Severity.INFO, message=f"{finding.message}; the run did not wait here")
    return finding


def _only_seen(report: RunReport, known: set[tuple[str, int]]) -> Iterator[Finding]:
    for where, waits in report.waits.items():
        if where not in known and waits >= _EVERY_OTHER_STEP:
            message = f"the host waited here for the device {waits:.3g} times a step ({report.causes[where]})"
            yield _finding(WAIT, where, message, waits_per_step=waits)
    for where, operators in report.changing.items():
        message = f"shapes kept changing here after the first steps ({operators}): each new one is prepared anew"
        yield _finding(SHAPES, where, message, operators=operators)


def _finding(rule: tuple[str, str], where: tuple[str, int], message: str, **evidence: object) -> Finding:
    path, line = where
    return Finding(rule[0], rule[1], Severity.WARNING, Location(path, line, 1, line, 1), message, evidence, _SEEN)


def _order(finding: Finding) -> tuple[str, int, int, int, str]:
    where = finding.location
    return where.path, where.cell or 0, where.line, where.column, finding.code
