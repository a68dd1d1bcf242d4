"""What ranks of one job show beside one another.

A collective ends on all its ranks together, and begins on each when that rank comes to it: it is shortest on the rank
that came last. How much shorter than on the others is how late that rank was. No clock is compared with another's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median

from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, milliseconds
from npuport.performance.ranks.summary import Moved, RankSummary
from npuport.performance.step_split import COMMUNICATING, Part

_POINT_TO_POINT = re.compile(r"send|recv|receive", re.IGNORECASE)
_LATE = 0.01  # of a step
_SLOW_LINK = 0.8  # of the median rate of links of its kind; MindStudio's threshold for a link's rate is the same
_BUBBLE = 0.05  # of a step
_MANY_KERNELS = 0.02  # more kernels than others have: more work, not slower work
_COMMUNICATION = {part.value for part in COMMUNICATING}
_COMPUTING = {Part.FORWARD.value, Part.BACKWARD.value, Part.OPTIMIZER.value, Part.OTHER.value}


@dataclass(frozen=True, slots=True)
class RanksFinding:
    """What costs all ranks time. ``cost_ns`` is of an average step."""

    code: str
    name: str  # kebab-case; states the bad pattern
    seen: Sentence
    fix: Sentence
    cost_ns: int
    confidence: Confidence
    ranks: tuple[int, ...]
    details: Mapping[str, float] = field(default_factory=dict)


def findings_of(ranks: Sequence[RankSummary]) -> list[RanksFinding]:
    """All findings, the costliest first."""
    found = [
        *_late_ranks(ranks),
        *_slow_links(ranks),
        *_unequal_stages(ranks),
        *_bubbles(ranks),
        *_absent_ranks(ranks),
    ]
    return sorted(found, key=lambda one: -one.cost_ns)


def lateness(ranks: Sequence[RankSummary]) -> dict[int, int]:
    """How much later each rank came to the collectives of an average step than the other ranks of their groups did,
    in nanoseconds: negative for a rank that waits."""
    taking_part: dict[object, list[tuple[int, int]]] = defaultdict(list)
    for one in ranks:
        for key, collective in one.collectives.items():
            if not _POINT_TO_POINT.search(key[1]):
                taking_part[key].append((one.rank, collective.duration_ns))
    late = {one.rank: 0.0 for one in ranks}
    for durations in taking_part.values():
        if len(durations) < 2:
            continue
        whole = sum(duration for _, duration in durations)
        for rank, duration in durations:
            late[rank] += (whole - duration) / (len(durations) - 1) - duration
    return {one.rank: round(late[one.rank] / max(one.steps, 1)) for one in ranks}


def stages(ranks: Sequence[RankSummary]) -> dict[int, int]:
    """The pipeline stage of each rank, from 0; 0 where there is no pipeline."""
    found = {one.rank: 0 for one in ranks}
    for one in ranks:
        for name, members in one.groups:
            if name == "pp" and one.rank in members:
                found[one.rank] = members.index(one.rank)
    return found


def _late_ranks(ranks: Sequence[RankSummary]) -> Iterator[RanksFinding]:
    stage = stages(ranks)
    for rank, late in lateness(ranks).items():
        one = next(each for each in ranks if each.rank == rank)
        others = [each for each in ranks if each.rank != rank and stage[each.rank] == stage[rank]]
        if not others or late < _LATE * one.step_ns:
            continue
        part, excess = _longest_part(one, others)
        yield _late_rank(one, others, late, part, excess)


def _longest_part(one: RankSummary, others: Sequence[RankSummary]) -> tuple[str, int]:
    """Which part of a step is longer than on other ranks, and by how much; computing counts as one."""

    def parts(each: RankSummary) -> dict[str, int]:
        own = {name: time for name, time in each.parts.items() if name not in _COMMUNICATION | _COMPUTING}
        return {**own, "": sum(time for name, time in each.parts.items() if name in _COMPUTING)}

    of_others = [parts(each) for each in others]
    excess = {name: time - round(median(each.get(name, 0) for each in of_others)) for name, time in parts(one).items()}
    name = max(excess, key=lambda each: excess[each])
    return name, excess[name]


def _late_rank(one: RankSummary, others: Sequence[RankSummary], late: int, part: str, excess: int) -> RanksFinding:
    sure = Confidence.HIGH if abs(excess - late) <= 0.25 * late else Confidence.MEDIUM
    details = {"late_ms": late / 1e6, "excess_ms": excess / 1e6}
    if part == Part.DATA.value:
        seen = say(
            "rank {rank} loads data {excess} ms longer than the others, which wait {late} ms for it",
            rank=one.rank, excess=milliseconds(excess), late=milliseconds(late),
        )  # fmt: skip
        fix = say("look at this machine's storage, its processors and what else runs there; more workers, prefetching")
        return RanksFinding("NT602", "rank-loading-data-late", seen, fix, late, sure, (one.rank,), details)
    if part:
        seen = say(
            "rank {rank} is late by {late} ms: {part} takes {excess} ms more there",
            rank=one.rank, late=milliseconds(late), part=say(part), excess=milliseconds(excess),
        )  # fmt: skip
        fix = say("npuport perf analyze {path} says what its host does there", path=str(one.path))
        return RanksFinding("NT603", "rank-late-on-the-host", seen, fix, late, sure, (one.rank,), details)
    more = sum(number for number, _ in one.kernels.values())
    usual = median(sum(number for number, _ in each.kernels.values()) for each in others)
    details["kernels"], details["kernels_of_others"] = more, usual
    if usual and more > (1 + _MANY_KERNELS) * usual:
        seen = say(
            "rank {rank} computes {excess} ms longer than the others, with {more} kernels against {usual}: it has more "
            "to do, and they wait {late} ms",
            rank=one.rank, excess=milliseconds(excess), more=more, usual=round(usual), late=milliseconds(late),
        )  # fmt: skip
        fix = say("give all ranks as much: samples of like length, the same micro-batches, experts in balance")
        return RanksFinding("NT604", "rank-with-more-work", seen, fix, late, sure, (one.rank,), details)
    ratio = one.computing_ns / max(round(median(each.computing_ns for each in others)), 1)
    seen = say(
        "rank {rank} computes the same kernels {ratio} x as long as the others, which wait {late} ms for it",
        rank=one.rank, ratio=f"{ratio:.2f}", late=milliseconds(late),
    )  # fmt: skip
    fix = say(
        "look at this chip: frequency and temperature (npu-smi info -t common), other processes, its inputs' sizes"
    )
    return RanksFinding("NT601", "slow-rank", seen, fix, late, sure, (one.rank,), {**details, "ratio": ratio})


def _slow_links(ranks: Sequence[RankSummary]) -> Iterator[RanksFinding]:
    """Links that move less in a second than others of their kind. Where both ends recorded one, the slower counts."""
    links: dict[tuple[int, int, str], Moved] = {}
    for one in ranks:
        for key, moved in one.links.items():
            if key not in links or moved.time_ns > links[key].time_ns:
                links[key] = moved
    rates: dict[str, list[float]] = defaultdict(list)
    for (_, _, kind), moved in links.items():
        rates[kind].append(moved.rate)
    for (source, destination, kind), moved in links.items():
        usual = median(rates[kind])
        if len(rates[kind]) < 3 or moved.rate >= _SLOW_LINK * usual:
            continue
        cost = moved.time_ns - round(moved.bytes / usual)
        seen = say(
            "the {kind} link from rank {source} to rank {destination} moves {rate} GB/s, others {usual}: {cost} ms "
            "more in a step",
            kind=kind, source=source, destination=destination, rate=f"{moved.rate:.1f}", usual=f"{usual:.1f}",
            cost=milliseconds(cost),
        )  # fmt: skip
        fix = say("check this link (hccn_tool -stat, -link, optical modules) and what else uses it")
        details = {"rate": moved.rate, "usual_rate": usual}
        yield RanksFinding("NT605", "slow-link", seen, fix, cost, Confidence.HIGH, (source, destination), details)


def _unequal_stages(ranks: Sequence[RankSummary]) -> Iterator[RanksFinding]:
    stage = stages(ranks)
    computing: dict[int, list[int]] = defaultdict(list)
    for one in ranks:
        computing[stage[one.rank]].append(one.computing_ns)
    if len(computing) < 2:
        return
    means = {number: mean(times) for number, times in computing.items()}
    longest = max(means, key=lambda number: means[number])
    others = mean(time for number, time in means.items() if number != longest)
    cost = round(means[longest] - mean(means.values()))
    if cost < _LATE * mean(one.step_ns for one in ranks):
        return
    yield RanksFinding(
        "NT606", "unequal-pipeline-stages",
        say(
            "pipeline stage {stage} of {number} computes {longest} ms in a step, the others {others} ms: "
            "{more} ms more",
            stage=longest, number=len(means), longest=milliseconds(round(means[longest])),
            others=milliseconds(round(others)), more=milliseconds(round(means[longest] - others)),
        ),
        say("move layers from this stage to others; the first has the embedding, the last the head and the loss"),
        cost,
        Confidence.HIGH,
        tuple(sorted(rank for rank, number in stage.items() if number == longest)),
        {f"stage_{number}_ms": time / 1e6 for number, time in sorted(means.items())},
    )  # fmt: skip


def _bubbles(ranks: Sequence[RankSummary]) -> Iterator[RanksFinding]:
    """Stages that wait for micro-batches from others. What unequal stages cost is part of it."""
    cost = round(mean(one.bubble_ns for one in ranks)) if ranks else 0
    length = mean(one.step_ns for one in ranks) if ranks else 0.0
    if not cost or cost < _BUBBLE * length:
        return
    longest = max(ranks, key=lambda one: one.bubble_ns)
    seen = say(
        "ranks wait {time} ms of a step for other pipeline stages ({share}), rank {rank} longest: {longest} ms",
        time=milliseconds(cost), share=f"{cost / length:.0%}", rank=longest.rank,
        longest=milliseconds(longest.bubble_ns),
    )  # fmt: skip
    fix = say("more micro-batches in a step, or interleaved stages: with p stages and m micro-batches the bubble is "
              "(p - 1) / (m + p - 1) of a step")  # fmt: skip
    yield RanksFinding("NT608", "pipeline-bubble", seen, fix, cost, Confidence.MEDIUM, (), {"share": cost / length})


def _absent_ranks(ranks: Sequence[RankSummary]) -> Iterator[RanksFinding]:
    """All ranks that were given wait: then they wait for one that was not."""
    waits: dict[object, list[int]] = defaultdict(list)
    for one in ranks:
        for key, collective in one.collectives.items():
            if collective.wait_ns is not None and not _POINT_TO_POINT.search(key[1]):
                waits[key].append(collective.wait_ns)
    if len(ranks) < 2:
        return
    together = sum(min(times) for times in waits.values() if len(times) == len(ranks))
    cost = together // max(*(one.steps for one in ranks), 1)
    if cost < _LATE * mean(one.step_ns for one in ranks):
        return
    seen = say("all {number} ranks wait {time} ms at once in a step", number=len(ranks), time=milliseconds(cost))
    fix = say("the rank that they wait for is not among them: profile all ranks")
    yield RanksFinding("NT607", "waiting-for-a-rank-not-given", seen, fix, cost, Confidence.MEDIUM, ())
