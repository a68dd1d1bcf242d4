"""Counting the steps of a training, and profiling some."""

from __future__ import annotations

import os
import shutil
import sys
import time
from statistics import median
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from npuport.performance.collecting.estimate import bytes_of_profile
from npuport.performance.collecting.profilers import has_npu, profiler, written
from npuport.performance.collecting.request import Request
from npuport.report.language import translate


class Stepping:
    """A step ends when the optimizer that stepped first has stepped again: a training may have several of them.

    Until the step before the profiled ones nothing is done but reading the clock at each step; after them nothing at
    all.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._done = 0
        self._optimizer: int | None = None
        self._profiler: Any = None
        self._hooks: list[Any] = []
        self._ends: list[float] = []
        self._operators = 0

    def follow(self) -> None:
        """Watch optimizers from now on."""
        self._hooks.append(register_optimizer_step_post_hook(self._stepped))
        if self._request.warm_up == 0:
            self._hooks.append(register_module_forward_pre_hook(self._starts))

    def ended(self) -> None:
        """The process ends: write what there is, and say so where steps are missing."""
        if self._profiler is not None:
            self._stop()
        elif self._hooks and self._done:
            _say(
                translate(
                    "the run ended after {number} steps; step {first} was to be profiled first: --profile-steps {last}",
                    number=self._done,
                    first=self._request.first,
                    last=self._done - 1,
                )
            )
        self._leave()

    def _starts(self, _module: torch.nn.Module, _arguments: Any) -> None:
        """The first forward pass of a training whose profile begins with its first steps."""
        self._hooks.pop().remove()
        self._start()

    def _stepped(self, optimizer: Optimizer, _arguments: Any, _keywords: Any) -> None:
        if self._optimizer is None:
            self._optimizer = id(optimizer)
        if id(optimizer) != self._optimizer:
            return
        self._done += 1
        self._ends.append(time.perf_counter())
        if self._profiler is not None:
            self._profiler.step()
            if self._done > self._request.last:
                self._stop()
                self._leave()
            return
        before, self._operators = self._operators, torch.autograd._get_sequence_nr()
        if self._done == self._request.warm_up:
            self._announce(self._operators - before if self._done > 1 else 0)
            self._start()

    def _start(self) -> None:
        rank = _rank()
        if self._request.ranks and rank not in self._request.ranks:
            self._leave()
            return
        self._request.folder.mkdir(parents=True, exist_ok=True)
        self._profiler = profiler(self._request, rank)
        self._profiler.start()

    def _stop(self) -> None:
        self._profiler.stop()
        self._profiler = None
        if _rank() != 0:
            return
        first, last = self._request.first, min(self._done - 1, self._request.last)
        if last < first:
            _say(translate("the run ended before step {first}: nothing was profiled", first=first))
            return
        size = _megabytes(written(self._request.folder, 0))
        times = [after - before for before, after in zip(self._ends, self._ends[1:], strict=False)]
        plain, profiled = times[: self._request.warm_up - 1][-8:], times[max(first - 1, 0) : last]
        _say(
            translate(
                "profiled steps {first} to {last}: {size} MB in {folder}",
                first=first,
                last=last,
                size=size,
                folder=self._request.folder,
            )
        )
        if plain and profiled:
            _say(
                translate(
                    "a step took {profiled} ms under the profiler, {plain} ms without",
                    profiled=f"{median(profiled) * 1e3:.1f}",
                    plain=f"{median(plain) * 1e3:.1f}",
                )
            )

    def _announce(self, nodes: int) -> None:
        """What the profile will take, from the operators that the step before recorded for autograd."""
        if _rank() != 0 or not nodes:
            return
        request = self._request
        steps = request.last - request.first + 1
        least, most = bytes_of_profile(nodes, steps, request.details, on_npu=has_npu())
        place = request.folder if request.folder.is_dir() else request.folder.parent
        free = shutil.disk_usage(place).free if place.is_dir() else None
        _say(
            translate(
                "profiling steps {first} to {last}: {least} to {most} MB a rank",
                first=request.first,
                last=request.last,
                least=_megabytes(least),
                most=_megabytes(most),
            )
        )
        if free is not None and free < most:
            _say(translate("only {free} MB are free there", free=_megabytes(free)))

    def _leave(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()


def _rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return int(os.environ.get("RANK", "0"))


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f}" if size >= 1e7 else f"{size / 1e6:.2g}"


def _say(text: str) -> None:
    print(f"npuport: {text}", file=sys.stderr, flush=True)
