"""The layouts that fit, best first, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npuport.llm.planning.communication import communication
from npuport.llm.planning.layout import Framework, Job, Layout, layouts
from npuport.llm.planning.memory import Memory, estimate
from npuport.llm.planning.model import Model


@dataclass(frozen=True)
class Candidate:
    """A layout with its memory (bytes of the fullest device) and what a device sends in a step (bytes by kind)."""

    layout: Layout
    memory: Memory
    sent: Mapping[str, float]

    @property
    def overhead(self) -> float:
        """Time over that of the same computing without bubble and recomputation.

        A full recomputation repeats the forward pass, a third of forward and backward.
        """
        return (1 + self.layout.bubble) * (4 / 3 if self.layout.recompute == "full" else 1)


@dataclass(frozen=True)
class Choice:
    """``fitting`` best first; ``nearest`` the layout that needs least memory (None: nothing divides evenly)."""

    fitting: tuple[Candidate, ...]
    nearest: Candidate | None
    tried: int

    def best(self, number: int) -> list[Candidate]:
        """The first of each split: another micro-batch or recomputation of the same split is no other plan."""
        splits: dict[tuple[int, ...], Candidate] = {}
        for one in self.fitting:
            layout = one.layout
            split = (layout.tensor, layout.pipeline, layout.context, layout.expert, layout.zero)
            splits.setdefault(split, one)
        return list(splits.values())[:number]


def choose(model: Model, job: Job, framework: Framework, limit: float) -> Choice:
    """Every layout whose fullest device needs at most ``limit`` bytes, ranked."""
    found = [
        Candidate(
            layout,
            estimate(model, job, layout, framework),
            communication(model, job, layout, framework.policy),
        )
        for layout in layouts(model, job, framework)
    ]
    fitting = sorted((one for one in found if one.memory.total <= limit), key=_rank)
    nearest = min(found, key=lambda one: one.memory.total, default=None)
    return Choice(tuple(fitting), nearest, len(found))


def _rank(candidate: Candidate) -> tuple[float, ...]:
    """Least time lost to bubbles and recomputation (to 5 %), then the least split: TP within a node
    before PP across nodes, CP only where neither is enough.

    ZeRO 1 stands before no ZeRO, for it costs the same communication (ZeRO, section 7) and leaves memory; stages 2 and
    3 only where 1 does not fit.
    """
    layout = candidate.layout
    recompute = ("none", "selective", "full").index(layout.recompute)
    return (
        round(candidate.overhead / 0.05),
        layout.context,
        layout.pipeline,
        layout.tensor,
        layout.zero if layout.zero else (0 if layout.shards == 1 else 1.5),
        recompute,
        sum(candidate.sent.values()),
        -layout.micro_batch,
    )
