"""What takes longer in one profile than in another: parts of a step, modules, operators.

Devices differ in speed as a whole: all kernels together take ``ratio`` times as long. What takes longer than that times
its time in the reference is above its share, and worth a look.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import polars as pl

from npuport.performance.attribution import attributed
from npuport.performance.findings.base import Context
from npuport.performance.step_split import Part
from npuport.performance.tables import Profile

# What is limited by arithmetic; everything else moves more than it computes.
_ARITHMETIC = re.compile(r"matmul|gemm|conv|attention|linear|addmm|bmm|\bmm\b|einsum", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """A module or operator in one phase, with times of an average step in both; None where a side lacks it."""

    name: str
    phase: str
    reference_ns: int | None
    candidate_ns: int | None
    kernels: tuple[str, ...]  # of the candidate, those that take most first
    limit: str  # "arithmetic" or "memory": what usually bounds such an operator, from its name

    @property
    def ratio(self) -> float | None:
        """How many times as long it takes in the candidate."""
        return self.candidate_ns / self.reference_ns if self.candidate_ns is not None and self.reference_ns else None

    def excess(self, ratio: float) -> int:
        """How much longer it takes than its time in the reference times ``ratio``."""
        return (self.candidate_ns or 0) - round(ratio * (self.reference_ns or 0))


@dataclass(frozen=True, slots=True)
class Side:
    """One profile, by what it spends an average step on."""

    profile: Profile
    steps: int
    step_ns: int
    parts: dict[Part, int]
    kernels: pl.DataFrame  # module, operator, phase, type, time (ns of an average step)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``by_module`` is empty where a profile knows no modules. Items are those furthest above their share first."""

    reference: Side
    candidate: Side
    ratio: float  # of the time of all kernels; 0 where the reference has none
    grown: tuple[tuple[Part, int], ...]  # parts of the step that take longer, and by how much; the largest first
    by_module: tuple[Item, ...]
    by_operator: tuple[Item, ...]


def compare(reference: Profile, candidate: Profile) -> Comparison:
    """Compare the average steps of two profiles."""
    sides = _side(reference), _side(candidate)
    times = [int(side.kernels["time"].sum()) for side in sides]
    ratio = times[1] / times[0] if times[0] else 0.0
    knows_modules = all(side.kernels.filter(pl.col("module") != "").height for side in sides)
    modules = _items("module", *sides, ratio) if knows_modules else ()
    return Comparison(*sides, ratio, _grown(*sides), modules, _items("operator", *sides, ratio))


def _grown(reference: Side, candidate: Side) -> tuple[tuple[Part, int], ...]:
    more = [(part, time - reference.parts.get(part, 0)) for part, time in candidate.parts.items()]
    return tuple(sorted((one for one in more if one[1] > 0), key=lambda one: -one[1]))


def _side(profile: Profile) -> Side:
    context = Context(profile)
    steps = max(len(context.splits), 1)
    parts: Counter[Part] = Counter()
    for split in context.splits:
        parts.update(split.parts)
    named = pl.coalesce("type", "name").alias("type")
    length = (pl.col("end_ns") - pl.col("start_ns")).sum() // steps
    kernels = attributed(context).group_by("module", "operator", "phase", named).agg(length.alias("time"))
    return Side(
        profile, len(context.splits), context.step_ns, {part: time // steps for part, time in parts.items()}, kernels
    )


def _items(column: str, reference: Side, candidate: Side, ratio: float) -> tuple[Item, ...]:
    before, after = (
        {
            (str(name), str(phase)): int(time)
            for name, phase, time in side.kernels.group_by(column, "phase").agg(pl.col("time").sum()).iter_rows()
        }
        for side in (reference, candidate)
    )
    kinds: dict[tuple[str, str], list[str]] = {}
    by_time = candidate.kernels.sort("time", descending=True)
    for name, phase, kind in by_time.select(column, "phase", "type").iter_rows():
        listed = kinds.setdefault((str(name), str(phase)), [])
        if kind not in listed:
            listed.append(str(kind))
    items = [
        Item(
            name, phase, before.get((name, phase)), after.get((name, phase)),
            tuple(kinds.get((name, phase), [])[:3]), _limit(" ".join([name, *kinds.get((name, phase), [])[:1]])),
        )
        for name, phase in before.keys() | after.keys()
        if name
    ]  # fmt: skip
    return tuple(sorted(items, key=lambda one: (-one.excess(ratio), one.name, one.phase)))


def _limit(names: str) -> str:
    return "arithmetic" if _ARITHMETIC.search(names) else "memory"
