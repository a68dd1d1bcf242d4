"""What the page of `npuport precision compare` is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.precision.operators.calls import Call, Step
    from npuport.precision.operators.suspects import Comparison

_PICTURED = 12  # suspects with histograms


@dataclass(frozen=True)
class ComparedStep:
    """One step of one rank of both runs, and what was found."""

    name: str
    reference: Step
    candidate: Step
    comparison: Comparison


def calls_of(compared: ComparedStep) -> dict[str, Any]:
    """The calls of the candidate as columns, with numbers for modules, operators and lines; errors with two digits."""
    measures = compared.comparison.measures
    modules, operators, lines, phases = _Numbers(), _Numbers(), _Numbers(), _Numbers()
    columns: dict[str, list[Any]] = {name: [] for name in ("m", "o", "l", "p", "e", "r", "t", "a")}
    for call in compared.candidate.calls:
        measure = measures.get(call.index)
        values = (measure.error, measure.of_reference, measure.times, measure.apart) if measure else (None,) * 4
        numbers = modules[call.module], operators[_short(call)], lines[call.line], phases[call.phase]
        for name, value in zip(columns, (*numbers, *map(_two_digits, values)), strict=True):
            columns[name].append(value)
    return {
        "modules": modules.texts,
        "operators": operators.texts,
        "lines": lines.texts,
        "phases": phases.texts,
        "classes": {one.path: one.class_name for one in compared.candidate.modules},
        **columns,
    }


def pictures_of(compared: ComparedStep) -> list[dict[str, Any] | None]:
    """Histograms of the first suspects."""
    from npuport.precision.operators.histograms import histograms_of

    comparison = compared.comparison
    if comparison.alignment is None:
        return []
    found = [
        histograms_of(suspect, comparison.alignment, compared.reference, compared.candidate)
        for suspect in comparison.suspects[:_PICTURED]
    ]
    return [asdict(one) if one is not None else None for one in found]


def shown_step(steps: Sequence[ComparedStep]) -> ComparedStep:
    """The first step and rank with a suspect, or the first of all."""
    return next((one for one in steps if one.comparison.suspects), steps[0])


def grid_of(steps: Sequence[ComparedStep]) -> Mapping[int, Mapping[int, int]]:
    """How many suspects each step of each rank has, by rank and step."""
    grid: dict[int, dict[int, int]] = {}
    for one in steps:
        grid.setdefault(one.candidate.rank, {})[one.candidate.step] = len(one.comparison.suspects)
    return grid


class _Numbers(dict[str, int]):
    """A number for each text, in the order in which they come."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]

    @property
    def texts(self) -> list[str]:
        return list(self)


def _short(call: Call) -> str:
    return call.operator.removeprefix("aten.").removesuffix(".default")


def _two_digits(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.1e}")
