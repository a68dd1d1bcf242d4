"""What a comparison of the OpInfo database found: shares, and every kind of failure with its reason.

``reasons.csv`` holds the known ones as data: regular expressions for operator, dtype, variant and error, and why a real
torch_npu does the same or why the CPU is no measure there. A failure without a reason is a fault of the simulation.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REASONS = Path(__file__).parent / "reasons.csv"
UNEXPLAINED = "unexplained"

# Outcomes as compare.Outcome spells them; this module is read where torch is not imported.
EQUAL, DIFFERENT, REFUSED = "equal", "different", "refused by torch_npu"


@dataclass(frozen=True)
class Reason:
    operator: str
    dtype: str
    variant: str
    error: str
    reason: str

    def explains(self, operator: str, dtype: str, variant: str, error: str) -> bool:
        named = ((self.operator, operator), (self.dtype, dtype), (self.variant, variant))
        return all(re.fullmatch(pattern, text) for pattern, text in named) and bool(re.search(self.error, error))


@dataclass(frozen=True)
class Failure:
    """One kind of failure: ``samples`` of ``operator`` in ``dtype`` and ``variant`` that ended with ``error``."""

    operator: str
    dtype: str
    variant: str
    error: str
    samples: int
    reason: str


@dataclass(frozen=True)
class Report:
    outcomes: dict[str, dict[str, int]]  # by dtype
    operators: int
    falling_back: dict[str, list[str]]
    failures: tuple[Failure, ...]
    cut: tuple[str, ...]  # operators that were stopped after their time

    def count(self, outcome: str) -> int:
        return sum(counts.get(outcome, 0) for counts in self.outcomes.values())

    @property
    def share(self) -> float:
        """Equal samples among those that torch_npu does not refuse itself and that the CPU has a value for."""
        judged = self.count(EQUAL) + self.count(DIFFERENT)
        return self.count(EQUAL) / judged if judged else 0.0

    @property
    def unexplained(self) -> tuple[Failure, ...]:
        return tuple(failure for failure in self.failures if failure.reason == UNEXPLAINED)

    def as_json(self) -> dict[str, Any]:
        return {
            "operators": self.operators,
            "share_equal": round(self.share, 5),
            "outcomes": self.outcomes,
            "falling_back": self.falling_back,
            "stopped_after_their_time": list(self.cut),
            "failures": [vars(failure) for failure in self.failures],
        }


def known_reasons(path: Path = REASONS) -> tuple[Reason, ...]:
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(Reason(**row) for row in csv.DictReader(file))


def build(cases: Iterable[dict[str, Any]], reasons: Sequence[Reason]) -> Report:
    """``cases``: what ``python -m opinfo`` printed."""
    outcomes: dict[str, Counter[str]] = {}
    operators, falling_back, cut = set(), {}, []
    failures = []
    for case in cases:
        operators.add(case["operator"])
        outcomes.setdefault(case["dtype"], Counter()).update(case["outcomes"])
        if case["falls_back"]:
            falling_back[case["operator"]] = case["falls_back"]
        if case["cut"]:
            cut.append(f"{case['operator']} {case['dtype']}")
        for outcome, variant, error, samples in case["details"]:
            if outcome in (DIFFERENT, REFUSED):
                key = (case["operator"], case["dtype"], variant, error)
                why = next((each.reason for each in reasons if each.explains(*key)), UNEXPLAINED)
                failures.append(Failure(*key, samples, why))
    by_dtype = {dtype: dict(counts) for dtype, counts in outcomes.items()}
    return Report(by_dtype, len(operators), falling_back, tuple(failures), tuple(cut))


def table(report: Report) -> str:
    """A few lines for a terminal: shares by dtype, reasons by how many samples they explain, and what has none."""
    names = sorted({name for counts in report.outcomes.values() for name in counts}, key=lambda name: name != EQUAL)
    lines = [f"{report.operators} operators; {report.share:.2%} equal of what the CPU and torch_npu both compute", ""]
    lines += [f"  {'dtype':<10}" + "".join(f"{name:>24.24}" for name in names)]
    for dtype, counts in report.outcomes.items():
        lines.append(f"  {dtype:<10}" + "".join(f"{counts.get(name, 0):>24,}" for name in names))
    why: Counter[str] = Counter()
    who: dict[str, set[str]] = {}
    for failure in report.failures:
        why[failure.reason] += failure.samples
        who.setdefault(failure.reason, set()).add(failure.operator)
    lines += ["", "  samples  operators  reason"]
    lines += [f"  {samples:>7,}  {len(who[reason]):>9}  {reason}" for reason, samples in why.most_common()]
    for failure in report.unexplained:
        lines.append(f"  ! {failure.operator} {failure.dtype} {failure.variant} x {failure.samples}: {failure.error}")
    return "\n".join(lines)
