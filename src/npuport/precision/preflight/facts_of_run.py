"""Writing down what a run is made of, while it begins: run.json in a folder, and run.rank1.json of the next rank."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from npuport.precision.following import Follower, follow, rank_of_process
from npuport.precision.preflight import machine_facts, training_facts
from npuport.precision.preflight.reading import FORMAT
from npuport.precision.preflight.training_facts import RandomCalls

BATCHES = 20
"""How many batches and optimizer steps are written down."""

_COUNTED = 3  # forward passes whose random operators are counted


@contextmanager
def writing_run(folder: Path) -> Iterator[None]:
    """Write down the facts of the code inside.

    The file comes into being when a training is seen to begin, and grows for its first steps: a process that trains
    nothing writes none.
    """
    run = _Run(folder)
    with _parsed_arguments(run.arguments.update), follow(run):
        yield
    run.write()


def file_name(rank: int, number: int = 1) -> str:
    """That of a rank; ``number`` counts the processes of the same rank, one after the other."""
    return f"run{f'.rank{rank}' if rank else ''}{f'.{number}' if number > 1 else ''}.json"


class _Run(Follower):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: Path | None = None
        self.arguments: dict[str, Any] = {}
        self._facts: dict[str, Any] = {}
        self._models: list[torch.nn.Module] = []
        self._optimizers: list[torch.optim.Optimizer] = []
        self._batches: list[dict[str, Any]] = []
        self._loaders: list[Any] = []
        self._loaded: dict[str, list[dict[str, Any]]] = {}
        self._steps: list[dict[str, Any]] = []
        self._counting: RandomCalls | None = None
        self._forwards = 0
        self._passes_of_step: int | None = None
        self._scale: float | None = None
        self._clipping: float | None = None

    def loaded(self, loader: Any, batch: Any) -> None:
        if self._is_over():
            return
        if not any(one is loader for one in self._loaders):
            self._loaders.append(loader)
        name = str(next(at for at, one in enumerate(self._loaders) if one is loader))
        batches = self._loaded.setdefault(name, [])
        if len(batches) < BATCHES:
            batches.append(training_facts.batch_facts(batch))

    def enters(self, module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if not module.training or self._is_over():
            return
        if not self._facts:
            self._begin()
        has_parameters = next(module.parameters(), None) is not None
        if has_parameters and not any(one is module for one in self._models):
            self._models.append(module)
            self._facts["models"].append(training_facts.model_facts(module))
        if has_parameters and not self._steps:
            self._passes_of_step = (self._passes_of_step or 0) + 1
        if has_parameters and self._forwards < _COUNTED:
            self._facts.setdefault("autocast", training_facts.autocast())
            if type(module).__name__ != "OptimizedModule":  # under a mode that sees operators nothing is compiled
                self._counting = RandomCalls()
                self._counting.__enter__()
        batch = training_facts.batch_facts([arguments, keywords]) if len(self._batches) < BATCHES else {}
        if batch:
            self._batches.append(batch)

    def leaves(self, _module: torch.nn.Module) -> None:
        if self._counting is not None:
            self._counting.__exit__(None, None, None)
            self._facts["random_calls"].append(self._counting.counts)
            self._counting = None
            self._forwards += 1

    def clipped(self, _norm: torch.Tensor, limit: float) -> None:
        self._clipping = limit

    def scaled(self, scaler: Any) -> None:
        if self._scale is None:
            self._scale = float(scaler.get_scale())

    def steps(self, optimizer: torch.optim.Optimizer) -> None:
        if self._is_over():
            return
        if not self._facts:
            self._begin()
        if not any(one is optimizer for one in self._optimizers):
            self._optimizers.append(optimizer)
            self._facts["optimizers"].append(training_facts.optimizer_facts(optimizer))

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        if self._is_over():
            return
        which = next(at for at, one in enumerate(self._optimizers) if one is optimizer)
        rates = [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]
        self._steps.append({"optimizer": which, "lr": rates})
        if len(self._steps) in (1, BATCHES):
            self.write()

    def _is_over(self) -> bool:
        return len(self._steps) >= BATCHES

    def _begin(self) -> None:
        """What is known before the first batch is computed."""
        self._facts = {
            "npuport": FORMAT,
            "rank": rank_of_process(),
            "command": machine_facts.command_line(sys.argv),
            "versions": machine_facts.versions(),
            "variables": machine_facts.variables(),
            "code": machine_facts.code_state(),
            "hyperparameters": {
                "arguments": machine_facts.plain(self.arguments),
                "globals": machine_facts.script_globals(),
                "files": machine_facts.config_files(sys.argv[1:]),
            },
            "settings": training_facts.settings(),
            "random": training_facts.random_state(),
            "parallel": training_facts.parallel(),
            "models": [],
            "optimizers": [],
            "random_calls": [],
        }
        self._file = _claimed(self._folder, self._facts["rank"])
        self.write()

    def write(self) -> None:
        """Write what is known, whole or not at all."""
        if self._file is None:
            return
        document = {
            **self._facts,
            "batches": self._batches,
            "loaders": [
                {**_loader_facts(one), "batches": self._loaded[str(at)]} for at, one in enumerate(self._loaders)
            ],
            "steps": self._steps,
            "loss_scale": self._scale,
            "clipping": self._clipping,
            "forward_passes_of_first_step": self._passes_of_step,
        }
        aside = self._file.with_suffix(".new")
        aside.write_text(json.dumps(document, indent=1, ensure_ascii=False, default=str), encoding="utf-8")
        aside.replace(self._file)


def _loader_facts(iterator: Any) -> dict[str, Any]:
    sampler = getattr(iterator, "_index_sampler", None)
    sampler = getattr(sampler, "sampler", sampler)  # of a batch sampler the one that chooses
    return {"sampler": type(sampler).__name__, "workers": getattr(iterator, "_num_workers", 0)}


def _claimed(folder: Path, rank: int) -> Path:
    """A file of this process alone: another process of the same rank may have written one."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = folder / file_name(rank, number)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            number += 1
        else:
            return path


@contextmanager
def _parsed_arguments(seen: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """Hand over what argument parsers make of the command line, defaults included."""
    parser: Any = argparse.ArgumentParser
    inner = parser.parse_known_args

    def parse_known_args(self: argparse.ArgumentParser, *arguments: Any, **keywords: Any) -> Any:
        namespace, rest = inner(self, *arguments, **keywords)
        seen(dict(vars(namespace)))
        return namespace, rest

    parser.parse_known_args = parse_known_args
    try:
        yield
    finally:
        parser.parse_known_args = inner
