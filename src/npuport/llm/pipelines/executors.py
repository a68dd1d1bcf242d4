"""Runs the stages of a pipeline by datatrove's executors: on this machine, on a Ray cluster or by Slurm.

datatrove notes each task that is complete, and a second start leaves these out. Its local executor has two traits that
do not suit a command: a manager process that outlives a run which is killed, and a log on stderr. So the pool here is
our own, one for all stages; tasks, logs, statistics and completions are datatrove's.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import dill
import multiprocess
from datatrove.executor.base import DistributedEnvVars, PipelineExecutor
from datatrove.pipeline.base import PipelineStep
from loguru import logger

from npuport.errors import UserError, first_line
from npuport.llm.pipelines.folder import Folder
from npuport.llm.pipelines.shards import Shard


@dataclass(frozen=True)
class Stage:
    """Steps that run one after the other in each of ``tasks``."""

    name: str
    steps: Sequence[PipelineStep]
    tasks: int


Started = Callable[[Stage, "list[Shard]", Folder], None]
"""Called when a stage begins, with the input and the folder."""


@dataclass(frozen=True)
class Executor:
    """How stages are run: ``kind`` local, ray or slurm; ``options`` are those of datatrove's executor."""

    kind: str = "local"
    workers: int = 0  # 0: one for each core of this machine
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, stages: Sequence[Stage], logs: Path, started: Callable[[Stage], None]) -> None:
        """Run the stages that are not complete, in order; with Slurm, hand them over.

        Raises:
            UserError: a task failed; its log is named.
        """
        logger.remove()  # each task has a file of its own
        if self.kind == "slurm":
            self._submit(stages, logs)
            return
        with self._ready() as make:
            for stage in stages:
                started(stage)
                one = make(pipeline=list(stage.steps), tasks=stage.tasks, logging_dir=str(logs / stage.name))
                one.run()
                missing = one.get_incomplete_ranks(skip_completed=True)
                if missing:
                    raise UserError(
                        "the stage {stage} failed: {number} of its tasks did not end. See {log}.",
                        stage=stage.name,
                        number=len(missing),
                        log=logs / stage.name / "logs" / f"task_{missing[0]:05d}.log",
                    )

    @contextlib.contextmanager
    def _ready(self) -> Iterator[Callable[..., PipelineExecutor]]:
        if self.kind == "ray":
            with self._ray() as make:
                yield make
            return
        workers = self.workers or len(os.sched_getaffinity(0))
        if workers == 1:
            yield lambda **stage: _Local(pool=None, **stage)
            return
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("forkserver"), _serve)
        try:
            yield lambda **stage: _Local(pool=pool, **stage)
        except BaseException:
            # Tasks may run for minutes. What they leave is what a kill leaves: a second start goes on from it.
            for worker in list(pool._processes.values()):
                worker.kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    @contextlib.contextmanager
    def _ray(self) -> Iterator[Callable[..., PipelineExecutor]]:
        try:
            import ray
            from datatrove.executor.ray import RayPipelineExecutor
        except ImportError as error:
            raise UserError("the executor ray takes the package ray:\n  pip install ray") from error
        options = dict(self.options)
        address = options.pop("address", None)
        ours = not ray.is_initialized()
        if ours:
            # Without an address Ray joins the cluster that this machine belongs to, or starts one for this run.
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
            except (ConnectionError, ValueError) as error:
                reason = first_line(error)
                raise UserError(
                    "there is no Ray cluster at {address}: {reason}", address=address, reason=reason
                ) from error
        try:
            workers = {"workers": self.workers} if self.workers else {}
            yield lambda **stage: _made(RayPipelineExecutor, {"mem_per_cpu_gb": 1} | options | workers | stage)
        finally:
            if ours:
                ray.shutdown()

    def _submit(self, stages: Sequence[Stage], logs: Path) -> None:
        from datatrove.executor.slurm import SlurmPipelineExecutor

        if shutil.which("sbatch") is None:
            raise UserError("the executor slurm takes Slurm's sbatch, which is not on this machine.")
        workers = {"workers": self.workers} if self.workers else {}
        before = None
        for stage in stages:
            own = {
                "pipeline": list(stage.steps),
                "tasks": stage.tasks,
                "logging_dir": str(logs / stage.name),
                "job_name": f"npuport-{stage.name}",
                "depends": before,
            }
            before = _made(SlurmPipelineExecutor, {**self.options, **workers, **own})
        if before is not None:
            before.run()


def _made(kind: type[PipelineExecutor], arguments: dict[str, Any]) -> PipelineExecutor:
    try:
        return kind(**arguments)
    except TypeError as error:  # such as an argument that it does not have, or lacks
        raise UserError("executor.options: {reason}.", reason=error) from error


class _Local(PipelineExecutor):
    """Tasks in this process, or in a pool that several stages share."""

    def __init__(self, pool: Any, pipeline: list[PipelineStep], tasks: int, logging_dir: str) -> None:
        super().__init__(pipeline, logging_dir)
        self.tasks, self._pool = tasks, pool

    def run(self) -> None:
        ranks = self.get_incomplete_ranks()
        if self._pool is None:
            errors = [_task(deepcopy(self), rank) for rank in ranks]  # steps hold the state of one task
        else:
            packed = dill.dumps(self)  # as datatrove does: it takes steps that pickle cannot
            futures = [self._pool.submit(_packed_task, packed, rank) for rank in ranks]
            try:
                errors = [future.result() for future in as_completed(futures)]
            except BrokenProcessPool as broken:
                raise UserError(
                    "a worker was ended from outside, most often for memory: take fewer workers or smaller "
                    "task-megabytes. The same command goes on where it was."
                ) from broken
        for error in errors:
            if error is not None:
                raise error

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_pool": None}

    @property
    def world_size(self) -> int:
        return self.tasks

    def get_distributed_env(self, node_rank: int = -1) -> DistributedEnvVars:
        return DistributedEnvVars(
            datatrove_node_ips="localhost",
            datatrove_cpus_per_task="-1",
            datatrove_mem_per_cpu="-1",
            datatrove_gpus_on_node="-1",
            datatrove_executor="LOCAL",
        )


def _packed_task(packed: bytes, rank: int) -> UserError | None:
    return _task(dill.loads(packed), rank)


def _task(executor: _Local, rank: int) -> UserError | None:
    with contextlib.redirect_stderr(_nowhere()):  # of other errors its log has the traceback
        try:
            executor._run_for_rank(rank, local_rank=1)
        except UserError as error:
            return error
        except Exception:
            return None  # there is no completion, which is seen
    return None


@cache
def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _serve() -> None:
    """How a worker begins. Ctrl-C reaches all processes of a terminal: one that died of it while it held the lock of
    the queue would leave the others, and the command that waits for them, waiting for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


_watching = threading.Lock()


def end_with_parent() -> None:
    """From now on this process ends when the one that started it does: nobody else would stop its writing."""
    # Of the pool above, or of the one in which datatrove runs the tasks of a Ray worker.
    parent = multiprocessing.parent_process() or multiprocess.parent_process()
    if parent is None or not _watching.acquire(blocking=False):
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
