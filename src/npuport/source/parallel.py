"""One function over many files: in this process for a few, in a pool for many; results in order, crashes contained."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from npuport.source.files import SourceFile
from npuport.source.garbage import seldom_collected

Context = TypeVar("Context")
Result = TypeVar("Result")
Progress = Callable[[int], None]
"""Called with the number of files done since the last call."""

_SMALL = 300_000  # characters; starting a pool costs about what reading this many does
_CHUNK = 32  # files at most a task: small enough to balance the workers, large enough to hide the hand-over


@dataclass(frozen=True, slots=True)
class Failure:
    """A defect of npuport met on one file; the other files are not affected."""

    path: str
    rule: str  # code of the rule that failed, "" when no rule did
    message: str
    detail: str = ""  # the traceback


@dataclass(frozen=True)
class Job(Generic[Context, Result]):
    """What the workers share: handed over once per worker, not once per file."""

    function: Callable[[SourceFile, Context], Result]
    files: Sequence[SourceFile]
    context: Context

    def at(self, index: int) -> Result | Failure:
        try:
            return self.function(self.files[index], self.context)
        except Exception as error:  # any crash is news about npuport, never the end of the run
            return failure(self.files[index].path, error)


def failure(path: str, error: Exception) -> Failure:
    """The entry for a crash, with the code of the rule that was at work."""
    return Failure(
        path, _rule_at_work(error), f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))
    )


def _rule_at_work(error: BaseException) -> str:
    code = ""
    trace = error.__traceback__
    while trace is not None:
        found = getattr(trace.tb_frame.f_locals.get("self"), "code", None)
        code = found if isinstance(found, str) else code
        trace = trace.tb_next
    return code


def worker_count(files: Sequence[SourceFile], jobs: int | None) -> int:
    """How many processes to use: 1 for little work, else ``jobs`` or one per processor."""
    if sum(len(file.text) for file in files) < _SMALL:
        return 1
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(jobs or available, len(files)))


def map_files(
    function: Callable[[SourceFile, Context], Result],
    files: Sequence[SourceFile],
    context: Context,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Result | Failure]:
    """``function(file, context)`` for every file, in the order of ``files``; a crash becomes a ``Failure``.

    ``function`` is a module-level function; it and ``context`` are pickled once for each worker.
    """
    job = Job(function, files, context)
    workers = worker_count(files, jobs)
    results: list[Result | Failure] = []
    if workers == 1:
        with seldom_collected() as collect:
            for index in range(len(files)):
                results.append(job.at(index))
                collect(1)
                if progress:
                    progress(1)
        return results
    size = max(1, min(_CHUNK, len(files) // (workers * 4)))
    ranges = [range(start, min(start + size, len(files))) for start in range(0, len(files), size)]
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, initializer=_adopt, initargs=(job,))
    try:
        with _interrupts_held_back():  # the workers inherit this: Ctrl-C is the parent's to answer
            futures = [pool.submit(_run, part) for part in ranges]
        for future in futures:
            part = future.result()
            results.extend(part)
            if progress:
                progress(len(part))
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return results


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C waits until the block is done; processes started inside never get it."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_job: Job[Any, Any] | None = None
_worker = ExitStack()  # what a worker keeps to its end
_collect: Callable[[int], None] | None = None


def _adopt(job: Job[Any, Any]) -> None:
    global _job, _collect
    _job, _collect = job, _worker.enter_context(seldom_collected())


def _run(indices: range) -> list[Any]:
    assert _job is not None and _collect is not None
    results = [_job.at(index) for index in indices]
    _collect(len(results))
    return results
