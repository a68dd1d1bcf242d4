"""Reading configurations: what a file is, and its options by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from npuport.errors import UserError
from npuport.source.shell_arguments import Arguments, options, python_programs

Kind = Literal["megatron", "trainer", "deepspeed", "accelerate", "model"]

# What tells a kind from the others, the surest first.
_SIGNS: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("accelerate", frozenset({"distributed_type"})),
    ("deepspeed", frozenset({"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"})),
    ("trainer", frozenset({"per_device_train_batch_size", "learning_rate", "num_train_epochs", "lr_scheduler_type"})),
    # Evaluations and servers have sizes too.
    ("megatron", frozenset({"lr", "train_iters", "train_samples"})),
    ("model", frozenset({"model_type", "architectures"})),
)


@dataclass(frozen=True)
class Document:
    """One configuration: ``options`` by name, with ``_`` between words; values as the file has them, texts in a shell.

    ``launcher`` are torchrun's options, and ``line`` that of the command, where a shell script starts the training.
    """

    path: Path
    kind: Kind
    options: Mapping[str, Any]
    line: int = 0
    program: str = ""
    launcher: Mapping[str, str] | None = None

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)

    def number(self, name: str, default: float | None = None) -> float | None:
        """The value of an option as a number; ``default`` where it is not given; None where it is no number."""
        value = self.options.get(name)
        return default if value is None else as_number(value)

    def whole(self, name: str, default: int | None = None) -> int | None:
        number = self.number(name, default)
        return int(number) if number is not None and number == int(number) else None

    def flag(self, name: str) -> bool:
        """Whether a switch is on: True in a file, its name alone (or true) in a shell script."""
        value = self.options.get(name, False)
        return value is True or (isinstance(value, str) and value.lower() in ("", "true", "1", "yes"))

    def text(self, name: str, default: str = "") -> str:
        value = self.options.get(name)
        return default if value is None else str(value)


def as_number(value: object) -> float | None:
    """A number, also as the text that YAML leaves of 1e-5; None for anything else, such as "auto" or "$RATE"."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def read_documents(path: Path) -> list[Document]:
    """The configurations in a file: JSON, YAML, or a shell script, which may start several trainings.

    Raises:
        UserError: the file cannot be read, or holds none.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            "{path} is no text: give the JSON, YAML or shell script that the training is started with.", path=path
        ) from error
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror or error) from error
    found = _of_shell(path, text) if path.suffix in (".sh", ".bash", ".slurm", ".sbatch") else _of_mapping(path, text)
    if not found:
        raise UserError(
            "{path} holds no configuration that npuport knows: TrainingArguments or LLaMA-Factory's YAML, DeepSpeed's "
            "JSON, accelerate's YAML, a model's config.json, or a script that starts Megatron or MindSpeed.",
            path=path,
        )
    return found


def _of_shell(path: Path, text: str) -> list[Document]:
    return [one for command in python_programs(text) if (one := _started(path, command)) is not None]


def _started(path: Path, command: Arguments) -> Document | None:
    given = options(command.words)
    kind = _kind(given)
    if kind not in ("megatron", "trainer"):
        return None
    return Document(path, kind, given, command.line, command.program, options(command.launcher))


def _of_mapping(path: Path, text: str) -> list[Document]:
    try:
        loaded = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())  # of YAML, the place stands in a later line
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=reason) from error
    if not isinstance(loaded, dict):
        return []
    given = _flat({str(name): value for name, value in loaded.items()})
    kind = _kind(given)
    return [Document(path, kind, given)] if kind is not None else []


def _flat(given: dict[str, Any]) -> dict[str, Any]:
    """MindSpeed-LLM's files for FSDP2 have sections (model, data, parallel, training), and names of their own."""
    if not isinstance(given.get("training"), dict):
        return given
    flat: dict[str, Any] = {}
    for name, value in given.items():
        flat |= value if isinstance(value, dict) else {name: value}
    if "lr" in flat:
        flat["learning_rate"] = flat.pop("lr")
    if "model_id" in flat:
        flat.setdefault("model_name_or_path", flat["model_id"])
    return flat


def _kind(given: Mapping[str, Any]) -> Kind | None:
    return next((kind for kind, names in _SIGNS if names & given.keys()), None)
