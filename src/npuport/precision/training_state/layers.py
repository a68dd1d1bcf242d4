"""The numbers of each layer over the steps, from those of its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from npuport.precision.training_state.history import Series


@dataclass(frozen=True)
class Layer:
    """One module's own parameters over the steps. Norms are of all its values together; NaN where it has no gradient.

    ``learning_rates`` are those of its first parameter's group.
    """

    name: str
    grad_norm: tuple[float, ...]
    weight_norm: tuple[float, ...]
    update_norm: tuple[float, ...]
    not_finite: tuple[float, ...]
    learning_rates: tuple[float, ...]

    @property
    def update_ratio(self) -> tuple[float, ...]:
        """The size of each update as a share of the weights."""
        return tuple(_ratio(update, weight) for update, weight in zip(self.update_norm, self.weight_norm, strict=True))


def layers_of(series: Series) -> list[Layer]:
    """The layers of an optimizer in the order of the model; skipped steps are left out."""
    steps = [step for step in series.steps if not step.is_skipped]
    found = []
    for name, parameters in series.layers().items():
        norms = {
            metric: tuple(_together([series.value(step, one, metric) for one in parameters]) for step in steps)
            for metric in ("grad_norm", "weight_norm", "update_norm")
        }
        bad = tuple(_sum([series.value(step, one, "grad_not_finite") for one in parameters]) for step in steps)
        group = series.groups[parameters[0]]
        rates = tuple(step.learning_rates[group] if group < len(step.learning_rates) else math.nan for step in steps)
        found.append(Layer(name, norms["grad_norm"], norms["weight_norm"], norms["update_norm"], bad, rates))
    return found


def _together(norms: list[float]) -> float:
    """The norm of what has these norms; parameters without one are left out, unless none has one."""
    known = [one for one in norms if not math.isnan(one)]
    if len(known) < len(norms) and not known:
        return math.nan
    return math.sqrt(math.fsum(one * one for one in known)) if all(map(math.isfinite, known)) else math.inf


def _sum(values: list[float]) -> float:
    return sum(one for one in values if not math.isnan(one))


def _ratio(update: float, weight: float) -> float:
    return update / weight if weight > 0 else math.nan


def ends_of(values: Sequence[float]) -> str:
    """What a number was in the first steps and is in the last ones, as text."""
    known = [value for value in values if not math.isnan(value)]
    return f"{median(known[:5]):.3g} … {median(known[-5:]):.3g}" if known else "–"


def steps_of(series: Series) -> list[int]:
    """The numbers of the steps that were made."""
    return [step.step for step in series.steps if not step.is_skipped]
