"""What was measured over the steps of a training, and the file of one rank that holds it.

The file has one JSON line for each thing: a first line that says what it is, a line for each optimizer with the names
of its parameters, and a line for each step. Lines are only ever added; a last one that a killed process left
half-written is ignored.
"""

from __future__ import annotations

import base64
import json
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npuport.errors import UserError

FORMAT = "npuport-state/1"
METRICS = ("grad_norm", "grad_not_finite", "weight_norm", "update_norm", "first_moment", "second_moment")
SKETCH = 16
"""Numbers that tell the direction of a gradient."""

_WIDTH = len(METRICS) + SKETCH


@dataclass(frozen=True)
class StateStep:
    """One step of an optimizer. ``values`` holds METRICS and SKETCH numbers for each parameter, one after the other.

    ``loss`` is what the backward passes of the step began with, summed; None where none was seen. ``clipped_from`` is
    the gradient norm that clipping found. ``is_skipped``: the scaler left the step out, and nothing of it was measured.
    ``checksums`` of the weights are there at some steps only.
    """

    step: int
    loss: float | None
    learning_rates: tuple[float, ...]
    loss_scale: float | None
    clipped_from: float | None
    is_skipped: bool
    values: Sequence[float] = field(repr=False)
    checksums: tuple[int, ...] = ()


@dataclass
class Series:
    """The steps of one optimizer. ``groups`` tells the group of each parameter, ``places`` its place in the model: an
    optimizer's groups, such as those without weight decay, mix the order of the layers."""

    names: tuple[str, ...]
    groups: tuple[int, ...]
    places: tuple[int, ...]
    steps: list[StateStep] = field(default_factory=list)

    def value(self, step: StateStep, parameter: int, metric: str) -> float:
        """One number of a parameter; NaN where there is none."""
        return step.values[parameter * _WIDTH + METRICS.index(metric)] if step.values else math.nan

    def sketch(self, step: StateStep, parameter: int) -> Sequence[float]:
        start = parameter * _WIDTH + len(METRICS)
        return step.values[start : start + SKETCH]

    def layers(self) -> dict[str, list[int]]:
        """The parameters of each module, in the order of the model; a parameter without a module is its own."""
        found: dict[str, list[int]] = {}
        for number in sorted(range(len(self.names)), key=self.places.__getitem__):
            name = self.names[number]
            found.setdefault(name.rpartition(".")[0] or name, []).append(number)
        return found


@dataclass(frozen=True)
class History:
    """What one rank measured, a series for each optimizer. ``is_replicated``: all ranks should hold equal weights."""

    rank: int
    world_size: int
    is_replicated: bool
    series: tuple[Series, ...]


def state_file(folder: Path, rank: int) -> Path:
    return folder / f"state.rank{rank}.jsonl"


def head_line(rank: int, world_size: int, is_replicated: bool) -> str:
    return json.dumps({"npuport": FORMAT, "rank": rank, "world_size": world_size, "replicated": is_replicated})


def series_line(number: int, series: Series) -> str:
    return json.dumps({"optimizer": number, "names": series.names, "groups": series.groups, "places": series.places})


def step_line(number: int, step: StateStep) -> str:
    values = array("f", step.values)
    document: dict[str, Any] = {
        "of": number,
        "step": step.step,
        "loss": step.loss,
        "lr": step.learning_rates,
        "values": base64.b64encode(values.tobytes()).decode(),
    }
    more = {
        "scale": step.loss_scale,
        "clip": step.clipped_from,
        "skipped": step.is_skipped or None,
        "sums": step.checksums or None,
    }
    return json.dumps({**document, **{name: value for name, value in more.items() if value is not None}})


def read_histories(path: Path) -> list[History]:
    """What every rank of a run measured, from its folder, or from one file.

    Raises:
        UserError: there is none, or a file is not of this format.
    """
    files = [path]
    if path.is_dir():
        files = list(path.glob("state.rank*.jsonl"))
        if not files:
            raise UserError(
                "{path} holds no state of a training (state.rank0.jsonl). It is written by npuport run --monitor "
                "{path} -- COMMAND",
                path=path,
            )
    return sorted((_read(file) for file in files), key=lambda history: history.rank)


def _read(path: Path) -> History:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error
    head = _loads(lines[0])
    if head.get("npuport") != FORMAT:
        raise UserError("{path} holds no state of a training, or not of this version of npuport.", path=path)
    series: dict[int, Series] = {}
    for document in map(_loads, lines[1:]):
        if "optimizer" in document:
            series[document["optimizer"]] = Series(
                tuple(document["names"]), tuple(document["groups"]), tuple(document["places"])
            )
        elif document.get("of") in series:
            series[document["of"]].steps.append(_step(document))
    return History(head["rank"], head["world_size"], head["replicated"], tuple(series.values()))


def _loads(line: str) -> dict[str, Any]:
    """The document of a line; empty for one that is not whole."""
    try:
        document = json.loads(line)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _step(document: dict[str, Any]) -> StateStep:
    values = array("f")
    values.frombytes(base64.b64decode(document["values"]))
    return StateStep(
        document["step"],
        document["loss"],
        tuple(document["lr"]),
        document.get("scale"),
        document.get("clip"),
        bool(document.get("skipped")),
        values,
        tuple(document.get("sums", ())),
    )
