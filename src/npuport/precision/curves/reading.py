"""Reading curves from logs: text that a training script printed, JSON lines, trainer_state.json, CSV, TensorBoard."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from npuport.errors import UserError
from npuport.precision.curves.curve import Curve, Run

# What frameworks call the same quantity; the first name that a log has is taken.
_NAMES = {
    "loss": (
        "loss",
        "train_loss",
        "train/loss",
        "lm loss",
        "lm_loss",
        "training_loss",
        "total_loss",
        "loss/train",
        "reduced_train_loss",
    ),
    "grad_norm": ("grad_norm", "grad norm", "gnorm", "train/grad_norm", "global_norm", "grad-norm", "gradient_norm"),
    "lr": ("lr", "learning_rate", "learning rate", "train/learning_rate", "train/lr"),
    "loss_scale": ("loss_scale", "loss scale", "scale", "train/loss_scale"),
    "eval_loss": ("eval_loss", "eval/loss", "val_loss", "valid_loss", "val loss", "validation loss", "val/loss"),
}
_STEPS = ("step", "global_step", "train/global_step", "iter", "iteration", "current_steps", "_step", "batch")
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|NaN|inf|Infinity)"
_STEP = re.compile(r"(?<![\w/])(?:global[_ ]step|iteration|iter|step|batch)s?\b\W{0,12}(\d+)", re.IGNORECASE)
_LEADING_STEP = re.compile(r"^\s*(\d+)\s*[:|,]")
_DICT = re.compile(r"\{[^{}]*['\"]\w*loss['\"][^{}]*\}")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RANK = re.compile(r"^\[?(?:rank|default)(\d+)\]?:?\s*")


def read_run(path: Path) -> Run:
    """Read every curve that a log holds.

    Raises:
        UserError: the path cannot be read, or holds no curve.
    """
    if path.is_dir() or path.name.startswith("events.out.tfevents"):
        return _run(path, _of_tensorboard(path), "TensorBoard")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror or error) from error
    for form, rows in (("JSON", _of_json(text)), ("CSV", _of_csv(path, text)), ("text", _of_text(text))):
        run = _run(path, rows, form, must=form == "text")
        if run.curves:
            return run
    raise AssertionError("the last form raises")


def _run(path: Path, rows: Iterable[Mapping[str, float]], form: str, must: bool = True) -> Run:
    """The run of rows that hold ``step`` and values by canonical metric; of a step that comes twice the later one."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    number = 0  # of the rows of training: an evaluation between two belongs to the one before
    for row in rows:
        step = int(row.get("step", max(0, number - 1) if row.keys() <= {"eval_loss"} else number))
        number += not row.keys() <= {"eval_loss"}
        for metric, value in row.items():
            if metric != "step":
                found[metric][step] = value
    if must and not found:
        raise UserError(
            "{path} holds no curve: no line with a loss or a gradient norm, no JSON or CSV of them.", path=path
        )
    curves = {metric: Curve(metric, dict(sorted(values.items()))) for metric, values in found.items()}
    return Run(str(path), curves, form)


def _canonical(values: Mapping[str, Any]) -> dict[str, float]:
    """The values that are curves, by our names, and the step."""
    lowered = {str(key).strip().lower(): value for key, value in values.items()}
    if "train_runtime" in lowered:  # the last line of transformers' Trainer: means over the whole run
        return {}
    row: dict[str, float] = {}
    for metric, names in _NAMES.items():
        value = next((number for name in names if (number := _float(lowered.get(name))) is not None), None)
        if value is not None:
            row[metric] = value
    step = next((number for name in _STEPS if (number := _float(lowered.get(name))) is not None), None)
    if row and step is not None:
        row["step"] = step
    return row


def _float(value: Any) -> float | None:
    if isinstance(value, bool) or value is None or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _of_json(text: str) -> Iterator[dict[str, float]]:
    """trainer_state.json (its log_history), one JSON document of rows, or JSON lines."""
    stripped = text.lstrip()
    if stripped[:1] not in ("{", "["):
        return
    try:
        document = json.loads(text)
    except ValueError:
        document = _json_lines(text)
    rows = document.get("log_history", [document]) if isinstance(document, dict) else document
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and (found := _canonical(row)):
            yield found


def _json_lines(text: str) -> list[Any]:
    return [row for line in text.splitlines() if (row := _loads(line)) is not None]


def _loads(line: str) -> Any:
    """A line's JSON; None for one that a killed process left half-written."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def _of_csv(path: Path, text: str) -> Iterator[dict[str, float]]:
    """A CSV with a column for steps: Lightning's metrics.csv, a chart exported from W&B ("run - train/loss")."""
    first = text.partition("\n")[0]
    if "," not in first or re.search(r"\d", first.partition(",")[0]):
        return
    rows = csv.DictReader(io.StringIO(text))
    runs = {str(name).partition(" - ")[0] for name in rows.fieldnames or () if " - " in str(name)}
    if len(runs) > 1:
        raise UserError(
            "{path} holds several runs ({runs}): export one run into each file.",
            path=path,
            runs=", ".join(sorted(runs)),
        )
    for row in rows:
        named = {
            str(key).rpartition(" - ")[2]: value
            for key, value in row.items()
            if key is not None and not str(key).endswith(("__MIN", "__MAX"))
        }
        found = _canonical(named)
        if found and "step" in found:
            yield found


def _of_text(text: str) -> Iterator[dict[str, float]]:
    """Lines such as ``iter 10: loss 2.31, time …``, Megatron's, and the dictionaries that transformers prints.

    Of lines that several ranks wrote, those of the first rank count.
    """
    rank = None
    for raw in _COLOUR.sub("", text).splitlines():
        prefix = _RANK.match(raw)
        if prefix is not None:
            rank = rank if rank is not None else prefix.group(1)
            if prefix.group(1) != rank:
                continue
        line = raw[prefix.end() :] if prefix is not None else raw
        found = _of_dict(line)
        if found is None:
            found = _of_line(line)
        if found:
            yield found


def _of_dict(line: str) -> dict[str, float] | None:
    """The values of a dictionary that a line holds; None if it holds none."""
    match = _DICT.search(line)
    if match is None:
        return None
    try:
        values = ast.literal_eval(re.sub(r"\b(nan|inf)\b", r"'\1'", match.group()))
    except (ValueError, SyntaxError):
        return None
    return _canonical(values) if isinstance(values, dict) else {}


def _of_line(line: str) -> dict[str, float]:
    """The values of a printed line; only with a loss or a gradient norm does it belong to a curve."""
    step = _STEP.search(line) or _LEADING_STEP.match(line)
    row: dict[str, float] = {}
    for metric, pattern in _PATTERNS.items():
        found = pattern.search(line)
        if found is not None:
            row[metric] = float(found.group(1))
    if not row.keys() & {"loss", "grad_norm", "eval_loss"}:
        return {}
    if step is not None:
        row["step"] = float(step.group(1))
    return row


def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    spelled = "|".join(sorted((re.escape(name) for name in names), key=len, reverse=True))
    # A word before the name makes it another quantity: "val loss" is no "loss", "aux_loss" neither.
    return re.compile(rf"(?<![\w/-])(?:{spelled})\W{{1,4}}({_NUMBER})(?![\w.])", re.IGNORECASE)


_PATTERNS = {metric: _pattern(names) for metric, names in _NAMES.items()}
_PATTERNS["loss"] = re.compile(
    r"(?<![\w/-])(?<!val )(?<!eval )(?<!valid )(?<!validation )(?<!aux )(?:lm loss|train(?:ing)?[_ /]loss|total[_ ]loss"
    rf"|reduced_train_loss|loss)\W{{1,4}}({_NUMBER})(?![\w.])",
    re.IGNORECASE,
)


def _of_tensorboard(path: Path) -> Iterator[dict[str, float]]:
    """Scalars of TensorBoard's event files."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        raise UserError(
            "{path} is TensorBoard's; reading it takes the package tensorboard:\n  pip install tensorboard", path=path
        ) from None
    events = EventAccumulator(str(path), size_guidance={"scalars": 0})
    events.Reload()
    for tag in events.Tags().get("scalars", ()):
        for event in events.Scalars(tag):
            yield _canonical({tag: event.value, "step": event.step})
