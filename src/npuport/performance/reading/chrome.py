"""Reading the events of a Chrome trace (``trace_view.json``, ``*.pt.trace.json[.gz]``) piece by piece.

A trace of five million events has 1 GB of text, and as Python dictionaries ten times that. So the array is cut into
pieces of whole events, and each piece is decoded into small records that hold only what the tables need. A cut is
right when the piece parses: a cut inside a string or a nested value leaves a quotation mark or a bracket open.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from npuport.findings import Sentence, say

_PIECE = 8 << 20  # bytes
_TRIES = 64  # cuts tried before more is read
_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_CUT = re.compile(rb"\}\s*,\s*\{")
_END = re.compile(rb"\}\s*\]")
_BRACE = re.compile(rb"\}")

Number = int | str | float | None


class Arguments(msgspec.Struct, gc=False):
    """The arguments of an event that the tables need. Profilers write the same number as a number or as a text."""

    stack: str | None = msgspec.field(default=None, name="Call stack")
    shapes: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")  # a text, or nested lists
    sequence: Number = msgspec.field(default=None, name="Sequence number")
    forward_thread: Number = msgspec.field(default=None, name="Fwd thread id")
    connection: Number = msgspec.field(default=None, name="connection_id")
    correlation: Number = None
    external: Number = msgspec.field(default=None, name="External id")
    external_old: Number = msgspec.field(default=None, name="external id")
    task_type: str | None = msgspec.field(default=None, name="Task Type")
    stream: Number = None
    device: Number = None
    device_type: Number = msgspec.field(default=None, name="Device Type")
    device_id: Number = msgspec.field(default=None, name="Device Id")
    bytes: Number = None
    size: Number = msgspec.field(default=None, name="size(Byte)")
    link: str | None = msgspec.field(default=None, name="link type")
    transport: str | None = msgspec.field(default=None, name="transport type")
    source: Number = msgspec.field(default=None, name="src rank")
    destination: Number = msgspec.field(default=None, name="dst rank")
    data_type: str | None = None
    dtype: str | None = None
    collective: str | None = msgspec.field(default=None, name="Collective name")
    group: str | None = msgspec.field(default=None, name="Process Group Name")
    name: str | None = None
    mhz: Number = msgspec.field(default=None, name="MHz")
    allocated: Number = msgspec.field(default=None, name="Total Allocated")
    reserved: Number = msgspec.field(default=None, name="Total Reserved")


class Event(msgspec.Struct, gc=False):
    """One event. Times are exact decimals in microseconds, whether written as numbers or as texts."""

    ph: str = ""
    name: str = ""
    cat: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: Decimal | None = None
    dur: Decimal | None = None
    id: int | str | None = None
    args: Arguments | None = None


@dataclass
class Trace:
    """A trace that is being read. ``header`` and ``problem`` are complete once all pieces were taken."""

    path: Path
    header: dict[str, Any] = field(default_factory=dict)  # what an object has beside its events
    bad_events: int = 0  # events with a value of a type no profiler writes there; they are left out
    problem: Sentence | None = None  # why reading stopped early

    def pieces(self) -> Iterator[list[Event]]:
        """The events in order, some ten thousand at a time."""
        try:
            with _opened(self.path) as stream:
                yield from self._pieces(stream)
        except (OSError, EOFError) as error:
            self.problem = say("it cannot be read to its end ({reason})", reason=error)

    def _pieces(self, stream: IO[bytes]) -> Iterator[list[Event]]:
        buffer = self._head(stream)
        if buffer is None:
            return
        while more := stream.read(_PIECE):
            buffer += more
            cut, events = self._cut(buffer, _CUT)
            if events:
                yield events
                buffer = buffer[cut:]
        # What is left ends the array; what follows it belongs to the object around.
        events = []
        if buffer.lstrip()[:1] != b"]":
            cut, events = self._cut(buffer, _END)
            if not cut:
                self.problem = say("it is cut off: the list of events has no end")
                cut, events = self._cut(buffer, _BRACE)
            buffer = buffer[cut:]
        self._tail(buffer)
        if events:
            yield events

    def _head(self, stream: IO[bytes]) -> bytes | None:
        """The text from the first event on; None where there is no list of events."""
        buffer = stream.read(_PIECE)
        text = buffer.lstrip(b"\xef\xbb\xbf \t\r\n")
        if text[:1] == b"[":
            return text[1:]
        while (match := _START.search(buffer)) is None:
            more = stream.read(_PIECE)
            if not more:
                self.problem = say("it holds no list of events")
                return None
            buffer += more
        self._keep(buffer[: match.start()].rstrip().rstrip(b",") + b"}")
        return buffer[match.end() :]

    def _tail(self, text: bytes) -> None:
        rest = text.lstrip()[1:].lstrip()  # without the array's own bracket
        if rest[:1] == b",":
            self._keep(b"{" + rest[1:])

    def _keep(self, text: bytes) -> None:
        try:
            self.header |= msgspec.json.decode(text, type=dict[str, Any])
        except _UNDECODABLE:
            return  # beside the events stand names of devices and the like; the events do not need them

    def _cut(self, buffer: bytes, cut: re.Pattern[bytes]) -> tuple[int, list[Event]]:
        """The events up to the last cut that is right, and where the next piece begins; 0 where there is none."""
        for position in _last(buffer, cut):
            events = self._decoded(b"[" + buffer[: position + 1] + b"]")
            if events is not None:
                rest = buffer[position + 1 :].lstrip()
                if rest[:1] == b",":
                    rest = rest[1:]
                return len(buffer) - len(rest), events
        return 0, []

    def _decoded(self, text: bytes) -> list[Event] | None:
        """The events of one piece; None where the text is not a list."""
        try:
            return _EVENTS.decode(text)
        except _UNDECODABLE:
            return self._one_by_one(text)

    def _one_by_one(self, text: bytes) -> list[Event] | None:
        try:
            raw = _RAW.decode(text)
        except _UNDECODABLE:
            return None
        events = [event for one in raw if (event := _decoded(one)) is not None]
        self.bad_events += len(raw) - len(events)
        return events


def _decoded(text: bytes) -> Event | None:
    try:
        return _EVENT.decode(text)
    except _UNDECODABLE:
        return None


_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError)
_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_RAW = msgspec.json.Decoder(list[msgspec.Raw])


def _last(buffer: bytes, cut: re.Pattern[bytes]) -> Iterator[int]:
    """Positions of the brace before a cut, from the end on."""
    end = len(buffer)
    for _ in range(_TRIES):
        end = buffer.rfind(b"}", 0, end)
        if end < 0:
            return
        if cut.match(buffer, end):
            yield end


def _opened(path: Path) -> IO[bytes]:
    stream = path.open("rb")
    if stream.peek(2)[:2] == b"\x1f\x8b":
        stream.close()
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return stream


def nanoseconds(microseconds: Decimal) -> int:
    """The nearest whole nanosecond."""
    return round(microseconds.scaleb(3))


def shapes_of(written: msgspec.Raw) -> str | None:
    """Shapes as one text: "32,3;64" where the profiler wrote a text, JSON where it wrote lists; None where nothing."""
    text = str(written, "utf-8", "replace")
    if text.startswith('"'):
        text = text[1:-1].replace("\\r\\n", "")
    return None if text in ("", "null") else text


def number(value: Number) -> int | None:
    """A whole number that was written as a number or as a text; None for everything else."""
    if isinstance(value, int):
        return value
    if value is None:
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None
