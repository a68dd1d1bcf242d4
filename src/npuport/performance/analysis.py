"""From paths to findings: every profile under them is read, divided and searched on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from npuport.performance.findings.base import Context, PerformanceFinding
from npuport.performance.findings.registry import find
from npuport.performance.intervals import intersect, total, union
from npuport.performance.reading.discover import profiles_under
from npuport.performance.step_split import StepSplit
from npuport.performance.tables import Profile

HIDDEN_BELOW = 0.01  # of a step: what a finding could gain at most


@dataclass(frozen=True, slots=True)
class RankAnalysis:
    """What one profile says. ``step_ns`` is the length of an average step."""

    profile: Profile
    splits: list[StepSplit]
    findings: list[PerformanceFinding]  # those that could gain most first
    step_ns: int

    def share(self, finding: PerformanceFinding) -> float:
        """What a finding could gain, as a part of a step."""
        return finding.gain_ns / self.step_ns if self.step_ns else 0.0

    def weighty(self) -> list[PerformanceFinding]:
        """The findings that are worth a look."""
        return [one for one in self.findings if self.share(one) >= HIDDEN_BELOW]


def analyse(paths: Sequence[Path]) -> Iterator[RankAnalysis]:
    """Each profile under the paths, one after another, so that only one is in memory.

    Raises:
        UserError: a path does not exist, or holds no profile.
    """
    for path, read in profiles_under(paths):
        context = Context(read(path))
        yield RankAnalysis(context.profile, context.splits, find(context), context.step_ns)


def overlapping(findings: Sequence[PerformanceFinding]) -> list[tuple[int, int]]:
    """Pairs (positions in ``findings``) that explain the same time to a tenth or more of the smaller one."""
    return [
        (i, j)
        for (i, one), (j, other) in combinations(enumerate(findings), 2)
        if 10 * total(intersect(one.spans, other.spans)) >= min(total(one.spans), total(other.spans)) > 0
    ]


def together(findings: Sequence[PerformanceFinding], steps: int) -> int:
    """What a step could gain, in nanoseconds, if all findings were gone: time that several explain counts once."""
    return total(union(span for one in findings for span in one.spans)) // max(steps, 1)
