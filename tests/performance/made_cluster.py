"""A job of many ranks, made: four pipeline stages of data-parallel ranks, with jitter, and what is wrong with it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from made_profiles import collective, event, kernel, made

from npuport.performance.tables import Profile

MS = 1_000_000
STAGES = 4
STEPS = 3
STEP = 200 * MS


@dataclass(frozen=True)
class Cluster:
    """Times in ms. ``computing`` and ``loading`` are added to what a rank does, ``rates`` are of links, in GB/s."""

    ranks: int = 64
    computing: Mapping[int, float] = field(default_factory=dict)
    stage_computing: Mapping[int, float] = field(default_factory=dict)
    loading: Mapping[int, float] = field(default_factory=dict)
    extra_kernels: Mapping[int, int] = field(default_factory=dict)
    rates: Mapping[tuple[int, int], float] = field(default_factory=dict)
    seed: int = 0


def stage_of(cluster: Cluster, rank: int) -> int:
    return rank // (cluster.ranks // STAGES)


def profiles_of(cluster: Cluster) -> Iterator[Profile]:
    """Each rank's profile: load, compute in twenty kernels, reduce the gradients within the stage, step.

    A reduction begins on a rank when it has computed, and ends on all of a stage when the last rank has come and its
    share of 256 MB has moved to the next rank of the ring.
    """
    chance = random.Random(cluster.seed)
    size = cluster.ranks // STAGES
    arrivals: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    work: dict[tuple[int, int], list[int]] = {}
    for rank in range(cluster.ranks):
        stage = stage_of(cluster, rank)
        for step in range(STEPS):
            loading = round((4 + cluster.loading.get(rank, 0)) * MS * chance.uniform(0.98, 1.02))
            whole = (60 + cluster.stage_computing.get(stage, 0)) * MS
            kernels = [round(whole / 20 * chance.uniform(0.98, 1.02)) for _ in range(20)]
            kernels += [round(whole / 20)] * cluster.extra_kernels.get(rank, 0)
            kernels = [one + round(cluster.computing.get(rank, 0) * MS / 20) for one in kernels]
            work[rank, step] = kernels
            arrivals.setdefault((stage, step), []).append((rank, loading, loading + sum(kernels)))
    for rank in range(cluster.ranks):
        stage = stage_of(cluster, rank)
        events, device, moved = [], [], []
        for step in range(STEPS):
            at = step * STEP
            group = arrivals[stage, step]
            _, loading, arrival = next(one for one in group if one[0] == rank)
            last = max(one[2] for one in group)
            ring = [group[position][0] for position in range(size)]
            following = dict(zip(ring, [*ring[1:], ring[0]], strict=True))
            times = {one: round(256_000_000 / cluster.rates.get((one, following[one]), 20.0)) for one in ring}
            end = last + max(times.values())
            events.append(event("enumerate(DataLoader)#It.__next__", at, at + loading))
            events.append(event("aten::linear", at + loading, at + loading + MS, sequence=step))
            start = at + loading
            for length in work[rank, step]:
                device.append(kernel(start, start + length, launched=at + loading, type="MatMulV2"))
                start += length
            name = f"hcom_allReduce__{500 + stage}_{step}_1"
            moved.append(collective(at + arrival, at + end, name=name, group="Group 0"))
            moved.append(collective(at + arrival, at + last, "wait", name="Notify_Wait", group="Group 0"))
            moved.append(
                collective(
                    at + last, at + last + times[rank], "transmit", name="Memcpy", group="Group 0", bytes=256_000_000,
                    transport="RDMA", source=rank, destination=following[rank],
                )
            )  # fmt: skip
            events.append(event("Optimizer.step#AdamW.step", at + end, at + end + MS))
            device.append(kernel(at + end, at + end + MS, launched=at + end, type="ApplyAdam"))
        pipeline = tuple(range(rank % size, cluster.ranks, size))
        yield made(
            events=events,
            kernels=device,
            communication=moved,
            steps=[(step, step * STEP, (step + 1) * STEP) for step in range(STEPS)],
            rank=rank,
            groups=(("pp", pipeline),),
        )
