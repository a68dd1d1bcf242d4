"""Finding and reading the files of a dump: dump.json (or debug.json), construct.json, stack.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npuport.errors import UserError

DUMP, DEBUG, CONSTRUCT, STACK, TENSORS = "dump.json", "debug.json", "construct.json", "stack.json", "dump_tensor_data"
_STEP = re.compile(r"step(\d+)$")
_RANK = re.compile(r"rank(\d*)$")
_PROCESS = re.compile(r"proc\d+$")


@dataclass(frozen=True)
class Dump:
    """What msprobe wrote of one step of one rank. ``data`` has an entry for each call, in the order of execution."""

    file: Path
    task: str  # "statistics", "tensor", "structure", …
    level: str  # "L0" (modules), "L1" (APIs), "mix" or "debug"
    data: Mapping[str, Any] = field(repr=False)
    parents: Mapping[str, str | None] = field(repr=False)  # of each call the module call that made it
    stacks: Mapping[str, list[str]] = field(repr=False)  # of each call the frames, innermost first

    @property
    def tensors(self) -> Path:
        """The folder of the tensors; there may be none."""
        return self.file.parent / TENSORS


def is_dump(path: Path) -> bool:
    """Whether a path looks like a dump of msprobe: one of its files, or a folder that holds some."""
    return path.name in (DUMP, DEBUG) or next(_files(path), None) is not None


def find_dumps(path: Path) -> dict[tuple[int, int], Path]:
    """The dump.json (or debug.json) of each step and rank under a path, which may be such a file itself, the folder of
    a rank or process, of a step, or what `dump_path` was.

    Raises:
        UserError: there is none, or more than one process of a step without ranks.
    """
    if not path.exists():
        raise UserError("{path} does not exist.", path=path)
    found: dict[tuple[int, int], Path] = {}
    for file in [path] if path.is_file() else sorted(_files(path)):
        step, rank = _place(file)
        other = found.get((step, rank))
        if other is not None:
            raise UserError(
                "{path} holds several dumps of step {step}: {one} and {other}. Name the folder of one of them.",
                path=path,
                step=step,
                one=other.parent.name,
                other=file.parent.name,
            )
        found[step, rank] = file
    if not found:
        raise UserError("{path} holds no dump of msprobe (step0/rank0/dump.json, …).", path=path)
    return found


def _files(path: Path) -> Iterator[Path]:
    """Of a folder with both the dump comes first, and only that counts."""
    for pattern in ("", "*/", "*/*/"):
        for name in (DUMP, DEBUG):
            for file in path.glob(f"{pattern}{name}"):
                if name == DUMP or not file.with_name(DUMP).exists():
                    yield file


def _place(file: Path) -> tuple[int, int]:
    folders = [file.resolve().parent, *file.resolve().parents[1:2]]
    steps = [int(match[1]) for folder in folders if (match := _STEP.match(folder.name))]
    ranks = [int(match[1] or 0) for folder in folders if (match := _RANK.match(folder.name))]
    return (steps or [0])[0], (ranks or [0])[0]


def read_dump(file: Path) -> Dump:
    """Read a dump.json (or debug.json) and what lies beside it.

    NaN, Infinity and -Infinity are read as msprobe writes them, which is not JSON.

    Raises:
        UserError: a file is missing, ends in the middle, or is of another framework.
    """
    document = _json(file)
    if not isinstance(document.get("data"), dict):
        raise UserError("{path} is no dump of msprobe: {reason}", path=file, reason="it has no data")
    framework = document.get("framework", "pytorch")
    if framework != "pytorch":
        raise UserError(
            "{path} is a dump of {framework}; npuport reads those of PyTorch.", path=file, framework=framework
        )
    parents = _json(file.with_name(CONSTRUCT)) if file.with_name(CONSTRUCT).exists() else {}
    stacks = _json(file.with_name(STACK)) if file.with_name(STACK).exists() else {}
    return Dump(
        file,
        str(document.get("task", "")),
        str(document.get("level", "")),
        document["data"],
        {name: _parent(value) for name, value in parents.items()},
        dict(_stacks(stacks)),
    )


def _json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise UserError("{path} does not exist.", path=file) from error
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise UserError("{path} is no dump of msprobe: {reason}", path=file, reason=str(error)) from error
    except json.JSONDecodeError as error:
        raise UserError(
            "{path} is not whole JSON ({reason}): the run was stopped while msprobe wrote it. Record it again, or take "
            "a step before it.",
            path=file,
            reason=f"line {error.lineno}: {error.msg}",
        ) from error
    if not isinstance(document, dict):
        raise UserError("{path} is no dump of msprobe: {reason}", path=file, reason="it is no JSON object")
    return document


def _parent(value: Any) -> str | None:
    """Newer versions write a list whose first entry is the parent."""
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, str) else None


def _stacks(document: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Frames by call: 26.x writes each stack once, with the calls that have it; 8.x a list for each call."""
    for key, value in document.items():
        if isinstance(value, list) and len(value) == 2 and all(isinstance(part, list) for part in value):
            for name in value[0]:
                yield name, value[1]
        elif isinstance(value, list):
            yield key, value
