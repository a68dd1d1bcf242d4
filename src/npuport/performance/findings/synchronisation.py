"""Lines that make the host wait for the device."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, milliseconds
from npuport.performance.findings.lines import short
from npuport.performance.intervals import Span, Spans, total, union
from npuport.performance.phases import Phase
from npuport.performance.step_split import BLOCKING_OPERATORS
from npuport.performance.tables import Category

_COPIES = ("aten::to", "aten::_to_copy", "aten::copy_")
_OPERATOR = "^(aten|npu|c10d)::"
_FOLLOWED = 20_000  # longest waits that are traced to their line


@dataclass(frozen=True, slots=True)
class _Wait:
    """One wait: the outermost operator in which the host blocked, or the blocking call where no operator is around."""

    event: int
    name: str
    spans: Spans
    lines: tuple[str, ...]  # of the user's code, innermost first

    @property
    def time(self) -> int:
        return total(self.spans)


def blocking_lines(context: Context) -> Iterator[PerformanceFinding]:
    """One finding for each line and operator that blocks, as long as a device was profiled."""
    if context.timeline.host_only:
        return
    groups: dict[tuple[str, str], list[_Wait]] = {}
    for wait in _waits(context):
        groups.setdefault((wait.lines[0] if wait.lines else "", wait.name), []).append(wait)
    for (line, name), waits in groups.items():
        yield _finding(context, line, name, waits)


def _finding(context: Context, line: str, name: str, waits: list[_Wait]) -> PerformanceFinding:
    spans = union(span for wait in waits for span in wait.spans)
    cost = context.per_step(total(context.in_steps(spans)))
    free = context.without_computing(spans)
    longest = max(waits, key=lambda wait: wait.time)
    count = f"{len(waits) / len(context.splits):,.3g}"
    return PerformanceFinding(
        code="NT101",
        name="host-waits-for-device",
        seen=say(
            "{operator} makes the host wait for the device, {count} x in a step, {time} ms (the longest {longest} ms)",
            operator=name,
            count=count,
            time=milliseconds(cost),
            longest=milliseconds(longest.time),
        ),
        fix=_fix(context, name, longest.spans[0]),
        check=say("{operator} is gone from the steps that do not need it", operator=name),
        cost_ns=cost,
        gain_ns=context.gain(free),
        confidence=Confidence.HIGH,
        spans=free,
        line=line,
        events=tuple(wait.event for wait in waits),
        details={
            "operator": name,
            "waits": len(waits) / len(context.splits),
            "longest_ms": longest.time / 1e6,
            "callers": [short(one) for one in longest.lines],
        },
    )


def _fix(context: Context, name: str, span: Span) -> Sentence:
    if name in _COPIES and _before_forward(context, span[0]):
        return say("give the DataLoader pin_memory=True and copy with .to(device, non_blocking=True)")
    if name in ("aten::nonzero", "aten::masked_select", "aten::_unique2"):
        return say("keep the size fixed: torch.where or a product with the mask instead of picking elements")
    if name.startswith("aten::"):
        return say("read the value every 100 steps, or keep it on the device with .detach() and read it later")
    return say("leave the call out of the training loop; for timing use events")


def _before_forward(context: Context, time: int) -> bool:
    step = next((one for one in context.splits if one.start_ns <= time < one.end_ns), None)
    forward = context.timeline.phases.spans[Phase.FORWARD]
    return step is not None and any(step.start_ns <= start and time < start < step.end_ns for start, _ in forward)


def _waits(context: Context) -> Iterator[_Wait]:
    """The longest waits, each once: an operator that blocks in two calls is one wait."""
    length = pl.col("end_ns") - pl.col("start_ns")
    blocks = pl.col("id").is_in(context.timeline.blocking.implode())
    found = context.events.filter(blocks).sort(length, descending=True).head(_FOLLOWED)
    roots: dict[int, Mapping[str, Any]] = {}
    calls: dict[int, list[Span]] = {}
    for row in found.iter_rows(named=True):
        around = context.around(row)
        operators = around.filter((pl.col("category") == Category.OPERATOR) & pl.col("name").str.contains(_OPERATOR))
        root: Mapping[str, Any] = operators.row(-1, named=True) if operators.height else row
        # An operator takes numbers as tensors of the CPU, and reads them with aten::item, which blocks nothing.
        if re.search(BLOCKING_OPERATORS, row["name"]) and not re.search(BLOCKING_OPERATORS, root["name"]):
            continue
        roots[root["id"]] = root
        calls.setdefault(root["id"], []).append((row["start_ns"], row["end_ns"]))
    for event, outermost in roots.items():
        around = context.around(outermost)
        spans = _waiting(around, outermost, union(calls[event]))
        yield _Wait(event, outermost["name"], spans, tuple(context.lines(outermost)))


def _waiting(around: pl.DataFrame, root: Mapping[str, Any], calls: Spans) -> Spans:
    """The time of the whole operator where most of it is waiting, else of the blocking calls alone.

    The operator's time is that of Python's own call around it (``<built-in method item …>``), where it was recorded.
    """
    start, end = root["start_ns"], root["end_ns"]
    if 2 * total(calls) < end - start:
        return calls
    outside = around.filter((pl.col("start_ns") < start) | (pl.col("end_ns") > end)).head(1)
    if outside.height and outside["name"][0].startswith("<built-in"):
        return [(outside["start_ns"][0], outside["end_ns"][0])]
    return [(start, end)]
