"""Where the time goes by the code that takes it: modules or Python frames, the operators in them, their kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from npuport.performance.attribution import MODULE
from npuport.performance.findings.base import Context
from npuport.performance.findings.lines import short, user_frames
from npuport.performance.tables import Category

# Marks around others that say nothing of the code: a step, and autograd's call of one backward operator.
_AROUND = r"^(ProfilerStep|autograd::engine::evaluate_function)"
_LONGEST = 160  # characters of a name
_SMALLEST = 0.0005  # of all the time: what takes less is left out, its time stays in what is around it
_MOST = 3000  # frames

_ROW = ("start_ns", "end_ns", "name", "category", "sequence", "is_backward", "stack", "device_ns")


@dataclass(slots=True)
class Frame:
    """One piece of code with everything in it. Times are of all steps, in nanoseconds.

    ``host_ns`` is the time the host was in it; ``device_ns`` the lengths of the kernels that were launched in it, added
    up (kernels of several streams may run at once).
    """

    name: str
    kind: str  # "section", "module", "python", "operator" or "kernel"
    count: int = 0
    host_ns: int = 0
    device_ns: int = 0
    inside: dict[tuple[str, str], Frame] = field(default_factory=dict)

    def child(self, name: str, kind: str) -> Frame:
        """The frame of that name in this one."""
        found = self.inside.get((name, kind))
        if found is None:
            found = self.inside[name, kind] = Frame(name, kind)
        return found


@dataclass(slots=True)
class OperatorTime:
    """An operator of PyTorch in all steps: ``host_ns`` and ``device_ns`` without the operators in it."""

    count: int = 0
    host_ns: int = 0
    device_ns: int = 0


@dataclass(frozen=True, slots=True)
class Flame:
    """The frames under one root, what they are named after ("module", "python" or "operator"), and the operators."""

    root: Frame
    named_after: str
    operators: Mapping[str, OperatorTime]


def flame_of(context: Context) -> Flame:
    """The host's time and the device's by code.

    Frames are nn.Modules where the profile holds them, else the user's Python frames or stacks, else operators alone. A
    backward operator stands, under "backward", in the frames of the forward operator it belongs to.
    """
    events, named_after = _shown(context.events)
    loops = context.profile.steps["thread"].drop_nulls().unique().to_list()
    launches = context.kernels.select(
        pl.col("launch_thread").alias("thread"),
        pl.col("launch_ns").alias("start_ns"),
        pl.coalesce("type", "name").str.head(_LONGEST).alias("name"),
        (pl.col("end_ns") - pl.col("start_ns")).alias("device_ns"),
    )
    known = launches.filter(pl.col("start_ns").is_not_null())
    rows = pl.concat([events, known], how="diagonal").sort(
        "start_ns", "end_ns", descending=[False, True], nulls_last=True, maintain_order=True
    )
    sweep = _Sweep(named_after)
    threads = rows.partition_by("thread", as_dict=True, maintain_order=True)
    # The training loop first: what runs backward is placed by the forward operators that are there.
    for (thread,), table in sorted(threads.items(), key=lambda one: (one[0][0] not in loops, one[0][0] or 0)):
        if not table["category"].is_null().all():
            section = "training loop" if thread in loops or not loops else "other threads"
            section = "backward" if thread in context.timeline.phases.backward_threads else section
            sweep.run(table.select(_ROW).iter_rows(), sweep.root.child(section, "section"))
    for name, time in launches.filter(pl.col("start_ns").is_null()).select("name", "device_ns").iter_rows():
        sweep.launched(sweep.root.child("launch not recorded", "section"), name, time)
    _add_up(sweep.root)
    return Flame(sweep.root, named_after, sweep.operators)


def _shown(events: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The events that are frames, and what these are named after."""
    python = events.filter(pl.col("category") == Category.PYTHON)
    modules = python.filter(pl.col("name").str.starts_with(MODULE))
    ours = [name for name in python["name"].unique().to_list() if user_frames(name)] if modules.is_empty() else []
    frames = python.filter(pl.col("name").is_in(ours)) if modules.is_empty() else modules
    stacks = frames.is_empty() and bool(events["stack"].is_not_null().any())
    marked = events.filter(
        pl.col("category").is_in([Category.OPERATOR, Category.ANNOTATION]) & ~pl.col("name").str.contains(_AROUND)
    )
    stack = pl.col("stack").cast(pl.String) if stacks else pl.lit(None, dtype=pl.String)
    shown = pl.concat([marked, frames]).select(
        "thread",
        "start_ns",
        "end_ns",
        pl.col("name").str.strip_prefix(MODULE).str.head(_LONGEST),
        "category",
        "sequence",
        (pl.col("forward_thread").fill_null(0) > 0).alias("is_backward"),
        stack.alias("stack"),
    )
    named_after = "module" if not modules.is_empty() else "python" if ours or stacks else "operator"
    return shown, named_after


class _Sweep:
    """Builds frames from the events of one thread after another, each sorted by start."""

    def __init__(self, named_after: str) -> None:
        self.root = Frame("", "section")
        self.operators: dict[str, OperatorTime] = {}
        self._kind = named_after
        self._forward: dict[int, tuple[str, ...]] = {}  # number of a node of the graph -> the frames it was made in
        self._of_stack: dict[str, tuple[str, ...]] = {}

    def run(self, rows: Iterable[tuple[Any, ...]], section: Frame) -> None:
        """Take the events and launches of one thread into a frame."""
        # Of each frame that is open: its end, itself, the names around it, the operator around it, is it backward?
        open_: list[tuple[int, Frame, tuple[str, ...], OperatorTime | None, bool]] = []
        backward = self.root.child("backward", "section")
        for start, end, name, category, sequence, is_backward, stack, device_ns in rows:
            while open_ and open_[-1][0] <= start:
                open_.pop()
            _, parent, frames, operator, in_backward = open_[-1] if open_ else (0, section, (), None, False)
            if category is None:
                self.launched(parent, name, device_ns)
                if operator is not None:
                    operator.device_ns += device_ns
                continue
            if not open_ and not is_backward:
                self._widen(section, end - start)
            if category == Category.PYTHON:
                frames = (*frames, name)
                parent = parent.child(name, self._kind)
            else:
                if is_backward and not in_backward:
                    parent, frames, in_backward = self._inside(backward, self._forward.get(sequence, ())), (), True
                    self._widen(backward, end - start)
                elif stack and not frames and not in_backward:
                    frames = self._frames(stack)
                    parent = self._inside(parent, frames, end - start)
                if not is_backward and sequence is not None and sequence >= 0:
                    self._forward[sequence] = frames
                parent = parent.child(name, "operator")
                operator = self._operator(name, end - start, operator)
            self._widen(parent, end - start)
            open_.append((end, parent, frames, operator, in_backward))

    def launched(self, frame: Frame, name: str, time: int) -> None:
        """A kernel that was launched in a frame."""
        kernel = frame.child(name, "kernel")
        kernel.count += 1
        kernel.device_ns += time

    def _operator(self, name: str, time: int, outer: OperatorTime | None) -> OperatorTime:
        own = self.operators.setdefault(name, OperatorTime())
        own.count += 1
        own.host_ns += time
        if outer is not None:
            outer.host_ns -= time
        return own

    def _inside(self, frame: Frame, names: Iterable[str], time: int = 0) -> Frame:
        for name in names:
            frame = frame.child(name, self._kind)
            if time:
                self._widen(frame, time)
        return frame

    def _frames(self, stack: str) -> tuple[str, ...]:
        if stack not in self._of_stack:
            self._of_stack[stack] = tuple(short(one) for one in reversed(user_frames(stack)))
        return self._of_stack[stack]

    @staticmethod
    def _widen(frame: Frame, time: int) -> None:
        frame.count += 1
        frame.host_ns += time


def _add_up(frame: Frame) -> None:
    """Give every frame the device's time of those in it, and the host's where it has none of its own."""
    for one in frame.inside.values():
        _add_up(one)
    frame.device_ns += sum(one.device_ns for one in frame.inside.values())
    frame.host_ns = max(frame.host_ns, sum(one.host_ns for one in frame.inside.values()))


def columns_of(root: Frame, steps: int) -> dict[str, list[Any]]:
    """The frames as columns, each before those in it; times of an average step. Small ones are left out."""
    smallest = _SMALLEST
    while len(chosen := list(_chosen(root, root, 0, smallest))) > _MOST:
        smallest *= 2
    names = {name: place for place, name in enumerate(dict.fromkeys(frame.name for frame, _ in chosen))}
    return {
        "names": list(names),
        "name": [names[frame.name] for frame, _ in chosen],
        "kind": [frame.kind for frame, _ in chosen],
        "depth": [depth for _, depth in chosen],
        "count": [round(frame.count / steps, 2) for frame, _ in chosen],
        "host": [frame.host_ns // steps for frame, _ in chosen],
        "device": [frame.device_ns // steps for frame, _ in chosen],
    }


def _chosen(frame: Frame, root: Frame, depth: int, smallest: float) -> Iterator[tuple[Frame, int]]:
    if frame.host_ns < root.host_ns * smallest and frame.device_ns < max(root.device_ns * smallest, 1):
        return
    yield frame, depth
    for one in sorted(frame.inside.values(), key=lambda inner: (-inner.device_ns, -inner.host_ns)):
        yield from _chosen(one, root, depth + 1, smallest)
