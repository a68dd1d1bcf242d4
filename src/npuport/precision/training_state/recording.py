"""Recording the state of a training step by step, into one file for each rank."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

from npuport.precision.following import Follower, follow, rank_of_process, unseen
from npuport.precision.training_state.boards import Board
from npuport.precision.training_state.history import Series, StateStep, head_line, series_line, state_file, step_line
from npuport.precision.training_state.kept_batches import BatchKeeper
from npuport.precision.training_state.measuring import Measurer

_CHECKSUMS_EVERY = 10
"""Steps between checksums of the weights, in jobs of several processes."""


@dataclass
class _Followed:
    """An optimizer; ``steps`` counts those that it has made."""

    number: int
    optimizer: torch.optim.Optimizer
    measurer: Measurer
    series: Series
    steps: int = 0


@contextmanager
def monitoring(folder: Path) -> Iterator[None]:
    """Record every optimizer step of the code inside."""
    monitor = Monitor(folder)
    with follow(monitor):
        try:
            yield
        finally:
            monitor.close()


class Monitor(Follower):
    """Measures around each optimizer step; writes a line behind it, so that a run that is killed leaves whole steps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[str] | None = None
        self._board: Board | None = None
        self._names: dict[int, str] = {}
        self._places: dict[int, int] = {}
        self._followed: list[_Followed] = []
        self._losses: list[torch.Tensor] = []
        self._clipped: torch.Tensor | None = None
        self._scaler: Any = None
        self._is_replicated = False
        self._batches = BatchKeeper(folder / "batches")

    @unseen()
    def loaded(self, _loader: Any, batch: Any) -> None:
        self._batches.loaded(batch)

    @unseen()
    def enters(self, module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if module.training and next(module.parameters(), None) is not None:
            self._batches.given(module, [arguments, keywords])
        if id(module) in self._names:
            return
        self._names[id(module)] = ""
        self._is_replicated |= type(module).__name__ == "DistributedDataParallel"
        for path, parameter in module.named_parameters():
            self._names.setdefault(id(parameter), path)
            self._places.setdefault(id(parameter), len(self._places))

    @unseen()
    def backward(self, loss: torch.Tensor) -> None:
        self._losses.append(loss.detach())

    def clipped(self, norm: torch.Tensor, _limit: float) -> None:
        self._clipped = norm

    def scaled(self, scaler: Any) -> None:
        self._scaler = scaler

    @unseen()
    def steps(self, optimizer: torch.optim.Optimizer) -> None:
        self._of(optimizer).measurer.before()

    @unseen()
    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        followed = self._of(optimizer)
        scale = self._scale()
        more = {"loss": self._loss(), "clip": self._clipped, "scale": scale}
        wanted = {name: value for name, value in more.items() if value is not None}
        is_summed = self._world_size() > 1 and followed.steps % _CHECKSUMS_EVERY == 0
        values, told, sums = followed.measurer.after(list(wanted.values()), is_summed)
        numbers = dict(zip(wanted, told, strict=True))
        self._write(
            followed,
            StateStep(
                followed.steps,
                numbers["loss"] / numbers.get("scale", 1.0) if "loss" in numbers else None,
                _rates(optimizer),
                numbers.get("scale"),
                numbers.get("clip"),
                False,
                values,
                tuple(sums),
            ),
        )

    @unseen()
    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        followed = self._of(optimizer)
        loss, scale = self._loss(), self._scale()
        factor = 1.0 if scale is None else float(scale)
        told = None if loss is None else float(loss) / factor
        rates = _rates(optimizer)
        self._write(followed, StateStep(followed.steps, told, rates, None if scale is None else factor, None, True, ()))

    def _loss(self) -> torch.Tensor | None:
        """What the backward passes since the last step began with, as it was scaled."""
        return torch.stack([one.float().reshape(()) for one in self._losses]).sum() if self._losses else None

    def close(self) -> None:
        for closing in (self._file, self._board):
            if closing is not None:
                closing.close()

    def _of(self, optimizer: torch.optim.Optimizer) -> _Followed:
        """What is known of an optimizer; one that was given more parameters begins a series anew."""
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        for known in self._followed:
            if known.optimizer is optimizer and len(known.series.names) == count:
                return known
        measurer = Measurer(optimizer)
        groups = tuple(at for at, group in enumerate(optimizer.param_groups) for _ in group["params"])
        names = tuple(self._names.get(id(one), f"parameter{at}") for at, one in enumerate(measurer.parameters))
        last = len(self._places)
        places = tuple(self._places.get(id(one), last + at) for at, one in enumerate(measurer.parameters))
        followed = _Followed(len(self._followed), optimizer, measurer, Series(names, groups, places))
        self._followed.append(followed)
        self._line(series_line(followed.number, followed.series))
        return followed

    def _write(self, followed: _Followed, step: StateStep) -> None:
        self._line(step_line(followed.number, step))
        if self._board is not None:
            self._board.write(followed.number, followed.series, step)
        followed.steps += 1
        self._batches.ends(step.step, rank_of_process(), step.loss, followed.measurer.is_broken and not step.is_skipped)
        self._losses, self._clipped = [], None

    def _line(self, line: str) -> None:
        if self._file is None:
            rank = rank_of_process()
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = state_file(self._folder, rank).open("w", encoding="utf-8", buffering=1)
            self._file.write(head_line(rank, self._world_size(), self._is_replicated) + "\n")
            self._board = Board.of(self._folder / "tensorboard" / f"rank{rank}")
        self._file.write(line + "\n")

    def _scale(self) -> torch.Tensor | None:
        scale = getattr(self._scaler, "_scale", None)
        return scale if isinstance(scale, torch.Tensor) else None

    @staticmethod
    def _world_size() -> int:
        is_job = torch.distributed.is_available() and torch.distributed.is_initialized()
        return int(torch.distributed.get_world_size()) if is_job else 1


def _rates(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    return tuple(float(group.get("lr", float("nan"))) for group in optimizer.param_groups)
