"""TensorBoard's event files of a training's state, where the package tensorboard is installed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.precision.training_state.history import Series, StateStep


_EACH = 10
"""Of the layers there is a point for each of the first steps, later for one in so many."""


class Board:
    """Writes scalars by layer and step."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    @classmethod
    def of(cls, folder: Path) -> Board | None:
        """A board that writes into a folder; None without tensorboard, which is said once on stderr."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            import sys

            print("npuport: no TensorBoard files: the package tensorboard is not installed", file=sys.stderr)
            return None
        return cls(SummaryWriter(str(folder)))

    def write(self, number: int, series: Series, step: StateStep) -> None:
        """The scalars of a step; those of the first optimizer have no prefix."""
        prefix = f"optimizer{number}/" if number else ""
        scalars: dict[str, float | None] = {
            "loss": step.loss,
            "loss_scale": step.loss_scale,
            "grad_norm": step.clipped_from,
            **{f"lr/group{group}": rate for group, rate in enumerate(step.learning_rates)},
        }
        if step.values and (step.step < _EACH or step.step % _EACH == 0):
            for layer, parameters in series.layers().items():
                squares = {
                    metric: math.fsum(series.value(step, one, metric) ** 2 for one in parameters)
                    for metric in ("grad_norm", "weight_norm", "update_norm")
                }
                scalars[f"grad_norm/{layer}"] = math.sqrt(squares["grad_norm"])
                if squares["weight_norm"] > 0:
                    scalars[f"update_ratio/{layer}"] = math.sqrt(squares["update_norm"] / squares["weight_norm"])
        for name, value in scalars.items():
            if value is not None and not math.isnan(value):
                self._writer.add_scalar(prefix + name, value, step.step)

    def close(self) -> None:
        self._writer.close()
