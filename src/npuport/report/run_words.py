"""Numbers and places of a simulated run in words, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuport.report.language import translate

Document = Mapping[str, Any]

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SOURCE_LENGTH = 60


def size(number: float) -> str:
    """Bytes as ``312 MiB``, ``1.4 GiB``."""
    power = 0
    while number >= 1000 and power < len(_UNITS) - 1:
        number /= 1024
        power += 1
    return f"{number:.0f} {_UNITS[power]}" if power == 0 or number >= 10 else f"{number:.1f} {_UNITS[power]}"


def plain(number: float) -> str:
    """``3``, ``0.5``, ``1,204``."""
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def line_of(place: Mapping[str, Any] | None) -> str:
    """``train.py:41``."""
    return translate("no line of Python") if place is None else f"{place['path']}:{place['line']}"


def line_with_source(place: Mapping[str, Any] | None) -> str:
    """``train.py:41 (loss.item())``, or with the library's line that it led to."""
    if place is None or not (place["library"] or place["source"]):
        return line_of(place)
    what = place["library"] or place["source"]
    return f"{line_of(place)} ({what if len(what) <= _SOURCE_LENGTH else what[: _SOURCE_LENGTH - 1] + '…'})"


def shapes(inputs: Sequence[Mapping[str, Any]]) -> str:
    """``float32[8, 64], int64[8]``; ``… on the host`` for a CPU tensor."""
    return ", ".join(map(_shape, inputs))


def _shape(tensor: Mapping[str, Any]) -> str:
    text = f"{tensor['dtype']}{tensor['shape']}" if tensor["dtype"] else tensor["name"]
    return translate("{tensor} on the host", tensor=text) if tensor["host"] else text


def a_step(document: Document, events: Sequence[Mapping[str, Any]]) -> float | None:
    """How often ``events`` come in one step of one process; None where too few steps were seen to say."""
    return None if document["run"]["steps"] < 2 else round(sum(one["per_step"] for one in events), 1)


def of_worst_line(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events of the line (the user's and the library's) that has most of them, by step if any is in a step."""
    lines: dict[str, list[Mapping[str, Any]]] = {}
    for one in events:
        lines.setdefault(line_with_source(one["place"]), []).append(one)
    return max(
        lines.values(),
        key=lambda group: (sum(one["per_step"] for one in group), sum(one["count"] for one in group)),
        default=[],
    )


def peak(document: Document) -> Mapping[str, Any] | None:
    """The device that needed most memory."""
    return max(document["memory"], key=lambda one: max(one["reserved"], one["allocated"]), default=None)


def needed(memory: Mapping[str, Any]) -> int:
    """Bytes that the allocator took from the device."""
    return int(memory["reserved"] or memory["allocated"])


def failure(document: Document) -> str | None:
    """Why the run did not end well, in one sentence; None where it did."""
    run, error = document["run"], document["error"]
    if error is not None:
        rank = "" if error["rank"] is None else translate("rank {rank}: ", rank=error["rank"])
        what = ": ".join(filter(None, [error["type"], error["message"].strip().split("\n", 1)[0]]))
        return f"{rank}{what} ({line_of(error['place'])})"
    if run["exit_code"] not in (0, None):
        return translate("the run ended with exit code {code}", code=run["exit_code"])
    if not document["processes"]:
        return translate("nothing ran on the NPU")
    if not run["complete"]:
        return translate("a process did not end by itself")
    return None
