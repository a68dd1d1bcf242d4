"""What went wrong according to logs: each exception, error code and known message, with the rank that reported it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from npuport.environment.log_lines import LogLine, lines_of, rank_named_in, rank_of_process
from npuport.errors import UserError
from npuport.facts import KnownError, codes_in, known_error
from npuport.source.words import WordSearch

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_EXCEPTION = re.compile(r"^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Failure|Timeout)\w*)(?::|$)")
_LIBRARY = re.compile(r"site-packages|dist-packages|/lib/python3|<frozen|<string>")
# What a line must hold, in lower case, to be looked at: looking every line up would take long on large logs, most of
# whose lines say "loss", "time", "scale" and "memory".
_HINTS = WordSearch(
    (
        *(
            "error",
            "errno",
            "exception",
            "could not run",
            "fail",
            "timeout",
            "timed out",
            "time out",
            "times out",
            "kill",
            "signal",
        ),
        *("overflow", "cannot", "can't", "invalid", "not found", "not known", "not support", "not have", "not of"),
        *("is not", "no module", "no such", "no sharding", "undefined", "refused", "reset", "broken pipe", "lost"),
        *("stuck", "static tls", "lock", "\\r", "fault", "core dump", "out of memory", "oom", "minimum loss scale"),
        *(
            "loss scaler",
            "missing",
            "unexpected",
            "unsupported",
            "removed",
            "requires torch",
            "has requirement",
            "in use",
        ),
        *(
            "modified by",
            "no npu",
            "ascend",
            "libpt",
            "closed",
            "insufficient",
            "re-initialize",
            "inconsistent",
            "fall back",
        ),
        *(
            "mem error",
            "internal_format",
            "fatal",
            "slow",
            "disconnect",
            "incomplete",
            "abort",
            "modified",
            "permission",
        ),
    )
)
_CODE_HINT = re.compile(r"\b[EW][A-Z0-9]\d{4}\b")
_FIRST_OBSERVED = "Root Cause (first observed failure)"
_ENTRY = re.compile(r"^\s+(?P<key>time|rank|exitcode)\s*:\s*(?P<value>-?\d+)")
_OF_SUMMARY = re.compile(r"^\s+(time|host|rank|exitcode|error_file|traceback)\s*:")
_MESSAGE_LINES = 12  # an exception's message goes on below its first line; CANN's may take ten
_LOG_SUFFIXES = {".log", ".txt", ".out", ".err", ""}


@dataclass(frozen=True)
class Frame:
    """A line of Python in a traceback."""

    file: str
    line: int
    function: str

    @property
    def is_users(self) -> bool:
        return _LIBRARY.search(self.file) is None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Trouble:
    """One thing that went wrong. ``order`` counts the lines of all logs, in the order they were read."""

    path: str
    line: int
    order: int
    text: str  # the line itself; of a traceback the exception with its message
    rank: int | None = None
    time: datetime | None = None
    pid: int | None = None
    codes: tuple[str, ...] = ()
    known: KnownError | None = None
    exception: str = ""  # such as "RuntimeError"; "" if it is no exception of Python
    frame: Frame | None = None  # the last line of the user's own code, else the last line

    @property
    def is_effect(self) -> bool:
        """Whether it follows from something else, as far as is known."""
        return self.known is not None and self.known.role == "effect"

    @property
    def is_harmless(self) -> bool:
        return self.known is not None and self.known.role == "harmless"


@dataclass
class Logs:
    """All that was read: troubles in the order of the files, every rank that wrote anything, and the rank that the
    launcher saw fail first."""

    troubles: list[Trouble] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    lines: int = 0
    files: list[str] = field(default_factory=list)
    first_observed: int | None = None


def read_logs(paths: Sequence[Path]) -> Logs:
    """Read logs, and folders of logs.

    Raises:
        UserError: a path is missing, unreadable, or holds no log.
    """
    logs = Logs()
    processes: dict[int, int] = {}
    for path, name in _files(paths):
        logs.files.append(name)
        try:
            _read(path, name, logs, processes)
        except OSError as error:
            raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror or error) from error
    logs.troubles = [_with_rank(trouble, processes) for trouble in logs.troubles]
    logs.ranks |= {trouble.rank for trouble in logs.troubles if trouble.rank is not None} | set(processes.values())
    return logs


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    for path in paths:
        if not path.exists():
            raise UserError("{path} does not exist.", path=path)
        if path.is_file():
            yield path, path.name if len(paths) == 1 else str(path)
            continue
        found = sorted(file for file in path.rglob("*") if file.is_file() and file.suffix in _LOG_SUFFIXES)
        if not found:
            raise UserError("{path} holds no logs (*.log, *.txt, *.out, *.err).", path=path)
        yield from ((file, file.relative_to(path).as_posix()) for file in found)


def _read(path: Path, name: str, logs: Logs, processes: dict[int, int]) -> None:
    open_tracebacks: dict[int | None, _Traceback] = {}
    summary = _LauncherSummary()
    for line in lines_of(path, name):
        logs.lines += 1
        if line.rank is not None:
            logs.ranks.add(line.rank)
        process = rank_of_process(line)
        if process is not None:
            processes.setdefault(*process)
        logs.troubles += summary.take(line, logs)
        if _OF_SUMMARY.match(line.text):
            continue
        traceback = open_tracebacks.get(line.rank)
        if line.text.rstrip().endswith(_TRACEBACK):
            if traceback is not None:
                logs.troubles += traceback.trouble()
            open_tracebacks[line.rank] = _Traceback(line, logs.lines)
        elif traceback is not None and traceback.takes(line):
            continue
        else:
            if traceback is not None:
                logs.troubles += open_tracebacks.pop(line.rank).trouble()
            if may_tell(line.text):
                logs.troubles += _of_line(line, logs.lines)
    for traceback in open_tracebacks.values():
        logs.troubles += traceback.trouble()


def may_tell(text: str) -> bool:
    """Whether a line may tell of an error; ordinary lines of a training log mostly do not."""
    return bool(_HINTS.spans(text.lower())) or _CODE_HINT.search(text) is not None


def _of_line(line: LogLine, order: int) -> Iterator[Trouble]:
    """The trouble that a line outside of tracebacks tells; none for an ordinary line."""
    codes = tuple(codes_in(line.text))
    known = known_error(line.text)
    exception = _EXCEPTION.match(line.text)
    if codes or known is not None or exception is not None:
        yield Trouble(
            path=line.path,
            line=line.number,
            order=order,
            text=line.text.strip(),
            rank=line.rank if line.rank is not None else rank_named_in(line.text),
            time=line.time,
            pid=line.pid,
            codes=codes,
            known=known,
            exception=exception["type"] if exception else "",
        )


class _LauncherSummary:
    """torchrun's list of failures: which process failed first, and which were ended by a signal."""

    def __init__(self) -> None:
        self.is_root = False
        self.rank: int | None = None
        self.time: datetime | None = None

    def take(self, line: LogLine, logs: Logs) -> Iterator[Trouble]:
        """The trouble of a process that ended by a signal; an exit code of its own says nothing new."""
        if _FIRST_OBSERVED in line.text:
            self.is_root = True
        entry = _ENTRY.match(line.text)
        if entry is None:
            return
        if entry["key"] == "time":
            self.time = line.time
        elif entry["key"] == "rank":
            self.rank = int(entry["value"])
            logs.first_observed = self.rank if self.is_root else logs.first_observed
        elif self.rank is not None and entry["value"].startswith("-"):
            text = f"{line.text.strip()}, rank {self.rank}"
            known = known_error(text)
            yield Trouble(line.path, line.number, logs.lines, text, self.rank, self.time, known=known)


class _Traceback:
    """A traceback that is being read: its frames, then the exception and its message."""

    def __init__(self, first: LogLine, order: int) -> None:
        self.first, self.order = first, order
        self.frames: list[Frame] = []
        self.message: list[str] = []
        self.time: datetime | None = first.time
        self.rank = first.rank
        self.pid = first.pid

    def takes(self, line: LogLine) -> bool:
        """Whether a line belongs to this traceback; torch_npu's error line is the last that does."""
        if self.message and rank_named_in(line.text) is not None and self.rank is None:
            self.rank = rank_named_in(line.text)
        if self.time is None:
            self.time = line.time
        if self.pid is None:
            self.pid = line.pid
        if not self.message:
            frame = _FRAME.match(line.text)
            if frame is not None:
                self.frames.append(Frame(frame["file"], int(frame["line"]), frame["function"]))
                return True
            if line.text[:1] in (" ", "\t") or not line.text.strip():
                return True
            if not re.match(r"^[A-Za-z_][\w.]*(:|$)", line.text):
                return False
        elif not line.text.strip() or len(self.message) >= _MESSAGE_LINES:
            return False
        self.message.append(line.text.strip())
        return True

    def trouble(self) -> Iterator[Trouble]:
        if not self.message:
            return
        text = "\n".join(self.message)
        own = [frame for frame in self.frames if frame.is_users]
        yield Trouble(
            path=self.first.path,
            line=self.first.number,
            order=self.order,
            text=text,
            rank=self.rank,
            time=self.time,
            pid=self.pid,
            codes=tuple(codes_in(text)),
            known=known_error(text),
            exception=self.message[0].partition(":")[0],
            frame=next(iter(reversed(own or self.frames)), None),
        )


def _with_rank(trouble: Trouble, processes: dict[int, int]) -> Trouble:
    if trouble.rank is not None or trouble.pid is None or trouble.pid not in processes:
        return trouble
    return replace(trouble, rank=processes[trouble.pid])
