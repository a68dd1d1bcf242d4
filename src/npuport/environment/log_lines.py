"""Lines of training logs and of CANN's plog: which rank wrote them, when, and the text itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

# What PyTorch, torchrun (--tee) and others put before each line of a process.
_PREFIX = re.compile(r"^\s*\[?(?:rank|default|Rank |RANK )(\d+)\]?:? ?")
_CONTROL = re.compile(r"\x1b\[[0-9;]*m|\r")
_RANK_OF_FILE = re.compile(r"(?:^|[/_.-])(?:rank|worker|default|global_rank)[_.-]?(\d+)(?=[/_.-]|$)", re.IGNORECASE)
_RANK_OF_FOLDER = re.compile(r"(?:attempt_\d+)/(\d+)/(?:stderr|stdout)\.log$")
_TORCH_NPU = re.compile(r"\(PID:(\d+), Device:-?\d+, RankID:(-?\d+)\)")
_PID = re.compile(r"\[(?:ERROR|WARNING|INFO|EVENT|DEBUG)\] ?\w+\((\d+),|\[PID: ?(\d+)\]")
_PID_OF_FILE = re.compile(r"plog-(\d+)_\d+\.log$")
_RANK_IN_HCCL = re.compile(r"\brankId\[(\d+)\]|createLink para:rank\[(\d+)\]|\blocalUserrank\[(\d+)\]")

_TIMES = (
    # CANN and torch_npu: 2025-10-24-11:18:29.597.044, 2024-08-18-22:15:47
    re.compile(
        r"(?P<day>\d{4}-\d\d-\d\d)[-T _](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{3,6})(?:\.(?P<micro>\d{3}))?)?"
    ),
    # PyTorch's C++ and torchrun: [E1128 12:00:00.123456789 …], E1128 12:00:00.123000 4711 torch/…
    re.compile(r"\b[IWEF](?P<month>\d\d)(?P<date>\d\d) (?P<clock>\d\d:\d\d:\d\d)\.(?P<fraction>\d{3,6})"),
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. ``rank`` is None where nothing says who wrote it."""

    path: str
    number: int  # from 1
    text: str  # without the prefix that names the rank, without colours
    rank: int | None
    pid_of_file: int | None

    @property
    def time(self) -> datetime | None:
        """When it was written; None where it carries no time."""
        return time_in(self.text)

    @property
    def pid(self) -> int | None:
        """The process that wrote it, where the line or the file's name says so."""
        found = _PID.search(self.text)
        return int(found.group(1) or found.group(2)) if found is not None else self.pid_of_file


def lines_of(path: Path, name: str) -> Iterator[LogLine]:
    """The lines of a log, named ``name`` in what is reported.

    Bytes that are no UTF-8 are replaced: a log that a dying process wrote may hold anything.
    """
    of_file = _rank_of(name)
    of_plog = _PID_OF_FILE.search(name)
    pid_of_file = int(of_plog.group(1)) if of_plog is not None else None
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, raw in enumerate(file, 1):
            text = raw.rstrip("\n")
            if "\x1b" in text or "\r" in text:
                text = _CONTROL.sub("", text)
            prefix = _PREFIX.match(text)
            rank = int(prefix.group(1)) if prefix is not None else of_file
            yield LogLine(
                path=name,
                number=number,
                text=text[prefix.end() :] if prefix is not None else text,
                rank=rank,
                pid_of_file=pid_of_file,
            )


def rank_of_process(line: LogLine) -> tuple[int, int] | None:
    """(process, rank) where a line says which rank a process is: torch_npu's own error line, and some of HCCL's."""
    if "ank" not in line.text:
        return None
    of_torch_npu = _TORCH_NPU.search(line.text)
    if of_torch_npu is not None and int(of_torch_npu.group(2)) >= 0:
        return int(of_torch_npu.group(1)), int(of_torch_npu.group(2))
    of_hccl = _RANK_IN_HCCL.search(line.text)
    pid = line.pid if of_hccl is not None else None
    if of_hccl is not None and pid is not None:
        return pid, int(next(group for group in of_hccl.groups() if group))
    return None


def rank_named_in(text: str) -> int | None:
    """The rank in torch_npu's own error line; None where it is -1 (no process group) or missing."""
    found = _TORCH_NPU.search(text)
    return int(found.group(2)) if found is not None and int(found.group(2)) >= 0 else None


def time_in(text: str) -> datetime | None:
    """The first time in a line. Where the year is missing (PyTorch's own lines) it is 1900: such times compare only
    with one another."""
    for form in _TIMES:
        found = form.search(text)
        if found is None:
            continue
        parts = found.groupdict()
        day = parts.get("day") or f"1900-{parts['month']}-{parts['date']}"
        fraction = ((parts.get("fraction") or "") + (parts.get("micro") or "")).ljust(6, "0")[:6]
        try:
            return datetime.fromisoformat(f"{day}T{parts['clock']}.{fraction}")
        except ValueError:
            return None
    return None


def _rank_of(name: str) -> int | None:
    """The rank that a file's path names: rank_3.log, worker-3/…, torchrun's attempt_0/3/stderr.log."""
    of_folder = _RANK_OF_FOLDER.search(name)
    found = of_folder or next(iter(reversed(list(_RANK_OF_FILE.finditer(name)))), None)
    return int(found.group(1)) if found is not None else None
