"""Whether two runs of lm-eval, one on a GPU and one on an NPU, scored the same.

Both answered the same questions, so what counts is the questions whose answer changed: of n changed answers as many are
expected to get better as worse (McNemar 1947, exact: the binomial distribution). Standard errors of the two scores are
of drawing other questions, which hides what changed in these: they are the measure only where no samples were kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from npuport.llm.evaluation.scores import Results, Score

LEVEL = 0.01  # of all scores together: divided by their number (Bonferroni)


@dataclass(frozen=True)
class Difference:
    """One score of both runs.

    ``chance``: how likely so large a difference is between equal models; None where nothing tells. ``paired``: from the
    samples of both, of which ``changed`` differ of ``samples``. ``settings`` differ, so that the scores are not of the
    same thing: then there is no chance. ``verdict``: "same", "differs", "unknown" or "not comparable".
    """

    score: Score
    other: Score
    chance: float | None
    paired: bool
    samples: int
    changed: int
    settings: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """``only_first`` and ``only_second`` name tasks that the other run lacks."""

    differences: tuple[Difference, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every score is there twice and the same."""
        complete = not self.only_first and not self.only_second
        return complete and bool(self.differences) and all(one.verdict == "same" for one in self.differences)


def compare(first: Results, second: Results) -> Comparison:
    """Every score that both have."""
    ours, theirs = first.scores, second.scores
    common = [key for key in ours if key in theirs]
    found = tuple(_difference(first, second, ours[key], theirs[key], LEVEL / len(common)) for key in common)
    tasks, others = {key[0]: None for key in ours}, {key[0]: None for key in theirs}
    return Comparison(
        found,
        tuple(task for task in tasks if task not in others),
        tuple(task for task in others if task not in tasks),
    )


def _difference(first: Results, second: Results, score: Score, other: Score, level: float) -> Difference:
    before, after = first.settings(score.task), second.settings(score.task)
    settings = [f"{name}: {before[name]} / {after[name]}" for name in before if before[name] != after[name]]
    prompts, others_prompts = first.prompts(score.task), second.prompts(score.task)
    if not settings and prompts and others_prompts and prompts != others_prompts:
        settings = ["prompts"]  # a chat template, or other examples before the question
    if settings:
        return Difference(score, other, None, False, 0, 0, tuple(settings), "not comparable")
    parts, others = first.parts(score), second.parts(score)
    if parts and parts.keys() == others.keys():
        changes = [others[key] - value for key, value in parts.items()]
        chance: float | None = paired_chance(changes)
        paired, changed = True, sum(change != 0 for change in changes)
    else:
        changes, paired, changed = [], False, 0
        chance = unpaired_chance(score, other)
    verdict = "unknown" if chance is None else "differs" if chance < level else "same"
    return Difference(score, other, chance, paired, len(changes), changed, (), verdict)


def paired_chance(changes: Sequence[float]) -> float:
    """Of changes by sample. Where each is -1, 0 or 1, exactly; else by their standard error, as normal."""
    moved = [change for change in changes if change]
    if not moved:
        return 1.0
    if all(abs(change) == 1 for change in moved):
        fewer = min(sum(change > 0 for change in moved), sum(change < 0 for change in moved))
        below = sum(math.comb(len(moved), number) for number in range(fewer + 1))
        return min(1.0, 2 * below / (1 << len(moved)))
    spread = stdev(changes) / math.sqrt(len(changes)) if len(changes) > 1 else 0.0
    return _normal(fmean(changes), spread)


def unpaired_chance(score: Score, other: Score) -> float | None:
    """By the standard errors of both scores; None where one is missing and the scores differ."""
    if score.value == other.value:
        return 1.0
    if score.error is None or other.error is None:
        return None
    return _normal(other.value - score.value, math.hypot(score.error, other.error))


def _normal(difference: float, error: float) -> float:
    if not error:
        return 1.0 if not difference else 0.0
    return math.erfc(abs(difference) / error / math.sqrt(2))
