"""The batches of steps whose loss or gradients are out of the ordinary: kept on disk, so that they can be looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from npuport.errors import UserError, first_line
from npuport.precision.following import tensors_in
from npuport.precision.training_state.alerts import WINDOW, loss_spikes

_MOST = 5  # batches of a rank
_LARGEST = 64 << 20  # bytes of a batch; of a larger one samples are left out
_FIRST, _RECENT = 5, 2 * WINDOW  # losses that a spike is judged by


@dataclass(frozen=True)
class KeptBatch:
    """The tensors of one micro-batch by name; ``classes`` is the width of the last layer, None if it is not known."""

    step: int
    rank: int
    tensors: dict[str, torch.Tensor]
    classes: int | None


class BatchKeeper:
    """Told of batches and of losses, writes the batches of a step that is out of the ordinary."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: list[Any] = []
        self._given: list[Any] = []
        self._losses: list[float] = []
        self._kept = 0
        self._classes: int | None = None

    def loaded(self, batch: Any) -> None:
        self._loaded.append(batch)
        del self._loaded[:-64]  # of an evaluation between two steps nothing is needed

    def given(self, module: torch.nn.Module, arguments: Any) -> None:
        """A model in training is given a batch."""
        self._given.append(arguments)
        if self._classes is None:
            known = (getattr(one, "out_features", None) for one in module.modules())
            widths = [width for width in known if isinstance(width, int)]
            self._classes = widths[-1] if widths else None

    def ends(self, step: int, rank: int, loss: float | None, is_broken: bool) -> None:
        """A step has ended; ``is_broken``: a gradient was not finite."""
        if loss is not None and math.isfinite(loss):
            self._losses.append(loss)
            del self._losses[_FIRST : max(_FIRST, len(self._losses) - _RECENT)]
        is_spike = len(self._losses) - 1 in loss_spikes(self._losses)
        is_bad = is_broken or (loss is not None and not math.isfinite(loss))
        if (is_spike or is_bad) and self._kept < _MOST:
            # The loaded batches hold labels too; the last ones are those that this step was given.
            batches = self._loaded[-max(1, len(self._given)) :] or self._given
            for number, batch in enumerate(batches):
                self._write(step, rank, number, batch)
            self._kept += 1
        self._loaded, self._given = [], []

    def _write(self, step: int, rank: int, number: int, batch: Any) -> None:
        tensors = {name: _cut(one.detach()).cpu() for name, one in tensors_in(batch) if not one.requires_grad}
        if not tensors:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"step{step}.rank{rank}.{number}.pt"
        aside = path.with_suffix(".new")
        torch.save({"step": step, "rank": rank, "classes": self._classes, "tensors": tensors}, aside)
        aside.replace(path)


def _cut(tensor: torch.Tensor) -> torch.Tensor:
    size = tensor.numel() * tensor.element_size()
    if size <= _LARGEST or tensor.dim() == 0:
        return tensor.clone()
    return tensor[: max(1, tensor.shape[0] * _LARGEST // size)].clone()


def read_batches(folder: Path) -> Sequence[KeptBatch]:
    """The batches that a run kept, in the order of its steps.

    Raises:
        UserError: a file cannot be read.
    """
    return sorted(map(_read, folder.glob("step*.rank*.pt")), key=lambda one: (one.step, one.rank))


def _read(path: Path) -> KeptBatch:
    try:
        document = torch.load(path, map_location="cpu", weights_only=True)
        return KeptBatch(document["step"], document["rank"], document["tensors"], document["classes"])
    except Exception as error:
        reason = first_line(error)
        raise UserError("{path} is no kept batch: {reason}", path=path, reason=reason) from error
