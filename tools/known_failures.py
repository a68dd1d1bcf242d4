"""The list of cases of another project that fail on the simulated NPU, each with its reason, and a table by folder."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from isolated_cases import FAILED, Case

REASONS = ("physical device", "graph mode", "profiler data", "chip", "network", "test itself", "gap")
# What torch_npu's maintainers leave out on real devices says so, as a skipped case.
IS_DISABLED = "this test is disabled now"


@dataclasses.dataclass(frozen=True)
class Known:
    """Cases that are known to fail. ``file`` and ``cases`` are literal but for ``*``.

    ``run`` is "no" where trying would harm the machine (tens of gigabytes, a hundred processes): one name in ``cases``;
    "varies" where the moment or the machine decides whether the case fails.

    Reasons: ``chip``, the case needs another chip and does not skip; ``network``, it loads something; ``test itself``,
    it is wrong or needs something that is not installed; ``gap``, the simulation lacks it.
    """

    file: str
    cases: str
    reason: str
    note: str
    run: str = "yes"

    def covers(self, case: Case) -> bool:
        return _matches(self.file, case.file) and _matches(self.cases, case.name)


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def read_known(path: Path) -> list[Known]:
    """Rows of the list.

    Raises:
        SystemExit: a row is not as ``Known`` says.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Known(**row) for row in csv.DictReader(file)]
    for row in rows:
        if row.reason not in REASONS:
            raise SystemExit(f"{path}: the reason {row.reason!r} of {row.file} is none of {', '.join(REASONS)}")
        if row.run not in ("yes", "no", "varies"):
            raise SystemExit(f"{path}: {row.run!r} of {row.file} is none of yes, no, varies")
    return rows


def reason_of(case: Case, known: Iterable[Known]) -> str:
    """Why a case is expected to fail, or ""."""
    return next((row.reason for row in known if row.covers(case)), "")


def is_unexpected(case: Case, known: Iterable[Known]) -> bool:
    """Whether a case fails without being listed."""
    return case.outcome in FAILED and not reason_of(case, known)


def stale(cases: Sequence[Case], known: Sequence[Known]) -> list[tuple[Known, str]]:
    """Listed failures that do not fail, of the files that ran, with what is wrong with the row."""
    found = []
    ran = {case.file for case in cases}
    for row in known:
        covered = [case for case in cases if row.covers(case) and case.outcome != "skip"]
        passed = [case.name for case in covered if case.outcome == "pass"]
        if passed and row.run != "varies":
            found.append((row, f"{len(passed)} pass: {', '.join(passed[:5])}"))
        elif not covered and any(_matches(row.file, file) for file in ran):
            found.append((row, "no case of this name fails"))
    return found


def column_of(case: Case, known: Iterable[Known]) -> str:
    """Where a case is counted in the table."""
    if case.outcome in (*FAILED, "not run"):
        return reason_of(case, known) or "not listed"
    return "disabled" if case.outcome == "skip" and IS_DISABLED in case.text else case.outcome


def table(cases: Sequence[Case], known: Sequence[Known], outside: Sequence[str]) -> str:
    """Outcomes by folder, and the share passed of all that ran but what failed for a reason in ``outside``."""
    columns = ("pass", "skip", "disabled", *REASONS, "not listed")
    head = ("folder", "cases", *columns, "share passed")
    lines: list[tuple[str, ...]] = [head]
    folders = sorted({_folder(case.file) for case in cases})
    for folder in [*folders, "all"] if len(folders) > 1 else folders:
        counts = Counter(column_of(case, known) for case in cases if folder in ("all", _folder(case.file)))
        counted = counts.total() - sum(counts[column] for column in ("skip", "disabled", *outside))
        share = f"{100 * counts['pass'] / counted:.1f} %" if counted else "-"
        lines.append((folder, str(counts.total()), *(str(counts[column]) for column in columns), share))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


def _folder(file: str) -> str:
    return "/".join(Path(file).parent.parts[:2])
