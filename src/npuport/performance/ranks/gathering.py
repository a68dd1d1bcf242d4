"""Summaries of many ranks: in this process, in several, or on a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from npuport.performance.ranks.summary import RankSummary, summary_of
from npuport.performance.reading.discover import Reader

Task = tuple[Path, Reader, int]  # the arguments of ``summary_of``

_FEW = 4  # profiles below that many are read faster than processes start


def summaries(
    found: Sequence[tuple[Path, Reader]],
    *,
    jobs: int = 0,
    ray: bool = False,
    advanced: Callable[[int], None] | None = None,
) -> list[RankSummary]:
    """Of each profile that was found, by rank; ``advanced`` is called with 1 after each.

    ``jobs`` are processes, 0 as many as there are processors.
    """
    tasks = [(path, reader, position) for position, (path, reader) in enumerate(found)]
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    if ray:
        results = _on_ray(tasks)
    elif workers == 1 or len(tasks) < _FEW:
        results = (summary_of(*task) for task in tasks)
    else:
        results = _in_processes(tasks, workers)
    made = []
    for one in results:
        made.append(one)
        if advanced is not None:
            advanced(1)
    return sorted(made, key=lambda one: (one.rank, str(one.path)))


def _in_processes(tasks: Sequence[Task], workers: int) -> Iterator[RankSummary]:
    # Polars has threads of its own, which a fork would leave locked.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(_summary, tasks)


def _summary(task: Task) -> RankSummary:
    return summary_of(*task)


def _on_ray(tasks: Sequence[Task]) -> Iterator[RankSummary]:
    import ray

    ray.init(ignore_reinit_error=True, log_to_driver=False)
    waiting = [ray.remote(_summary).remote(task) for task in tasks]
    while waiting:
        (ready,), waiting = ray.wait(waiting, num_returns=1)
        yield ray.get(ready)
