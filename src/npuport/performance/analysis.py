"""From paths to findings: every profile under them is read, divided and searched on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from npuport.findings import say
from npuport.performance.findings.base import Context, PerformanceFinding
from npuport.performance.findings.registry import find
from npuport.performance.intervals import intersect, total, union
from npuport.performance.metrics import Asked, Metrics, metrics_of
from npuport.performance.reading.discover import profiles_under
from npuport.performance.step_split import StepSplit
from npuport.performance.tables import Problem, Profile

HIDDEN_BELOW = 0.01  # of a step: what a finding could gain at most


@dataclass(frozen=True, slots=True)
class RankAnalysis:
    """What one profile says. ``step_ns`` is the length of an average step."""

    profile: Profile
    splits: list[StepSplit]
    findings: list[PerformanceFinding]  # those that could gain most first
    step_ns: int
    context: Context  # what else was derived from the profile
    metrics: Metrics | None = None  # None where there is no step

    def share(self, finding: PerformanceFinding) -> float:
        """What a finding could gain, as a part of a step."""
        return finding.gain_ns / self.step_ns if self.step_ns else 0.0

    def weighty(self) -> list[PerformanceFinding]:
        """The findings that are worth a look."""
        return [one for one in self.findings if self.share(one) >= HIDDEN_BELOW or one.saved_bytes]


def analyse(paths: Sequence[Path], asked: Asked | None = None) -> Iterator[RankAnalysis]:
    """Each profile under the paths, one after another, so that only one is in memory.

    ``asked`` holds what the user says about the job, for the metrics.

    Raises:
        UserError: a path does not exist, or holds no profile.
    """
    first: Profile | None = None
    for path, read in profiles_under(paths):
        profile = read(path)
        noticed = (*_emptiness(profile), *(() if first is None else _differences(first, profile)))
        first = first or profile
        if asked and asked.chip:
            profile = replace(profile, chip=asked.chip)
        context = Context(replace(profile, problems=(*profile.problems, *noticed)))
        metrics = metrics_of(context, asked or Asked())
        yield RankAnalysis(context.profile, context.splits, find(context), context.step_ns, context, metrics)


def _emptiness(profile: Profile) -> Iterator[Problem]:
    """A rank that recorded nothing is no rank that did nothing."""
    if profile.events.is_empty() and profile.kernels.is_empty() and not profile.problems:
        yield Problem(profile.path, say("it holds no events: nothing was recorded in its steps"))


def _differences(first: Profile, other: Profile) -> Iterator[Problem]:
    """What makes numbers of two profiles of one call hard to compare: they come from different versions or settings."""
    if (first.origin, first.device) != (other.origin, other.device):
        return  # a GPU beside an NPU is meant to differ
    told = {**first.versions, "level": first.settings.get("level"), "columns": first.settings.get("columns")}
    others = {**other.versions, "level": other.settings.get("level"), "columns": other.settings.get("columns")}
    for name in sorted(told.keys() & others.keys()):
        if told[name] and others[name] and told[name] != others[name]:
            reason = say(
                "{name} is {other}, but {first} in {path}: compare their numbers with care",
                name=name,
                other=others[name],
                first=told[name],
                path=first.path.name,
            )
            yield Problem(other.path, reason)


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
