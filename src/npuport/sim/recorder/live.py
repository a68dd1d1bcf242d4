"""What this process does on the simulated NPU, while it does it.

Calls of operators are counted in C++ (native/kernels/recorder.h), which asks here only for the user's line. Steps are
told by optimizers: the one that has stepped most often starts a step, so a second optimizer (a GAN's) or several steps
of gradient accumulation do not count twice.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import functools
import json
import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npuport.sim import refusals
from npuport.sim.call_site import CallSite, call_site
from npuport.sim.recorder import places
from npuport.sim.recorder.references import reference_json

FORMAT = 1
FIRST_SIGHT, SYNCHRONIZATION, COPY, FALLBACK, ALLOCATION, COLLECTIVE, WAIT = range(7)  # Event in recorder.h
_KINDS = {
    SYNCHRONIZATION: "synchronization",
    COPY: "copy",
    FALLBACK: "fallback",
    COLLECTIVE: "collective",
    WAIT: "wait",
}
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64)
_WRITE_EVERY_S = 2.0  # a process that is killed leaves what was written last


class Recorder:
    """The record of one process. One at a time records."""

    def __init__(self) -> None:
        self.step = 0
        self._lock = threading.Lock()
        self._sites: dict[CallSite, int] = {}
        # Of each kind, operator, detail and site: count, bytes, and counts in the first step and in the last one seen.
        self._events: dict[tuple[str, str, str, int], list[int]] = {}
        self._references: dict[str, dict[tuple[Any, ...], list[int]]] = {}
        self._optimizers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._refused_before: Counter[refusals.Refused] = Counter()
        self._rank: int | None = None
        self._memory: dict[int, list[int]] = {}
        self._started = time.time()
        self._clock = time.monotonic()
        self._written = self._clock
        self._c_callback = _CALLBACK(self._hear)
        self._hook: Any = None
        self.target: Path | None = None
        """Where the record is kept up to date while it grows; None: nowhere."""

    def start(self) -> None:
        """Record from now on."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        library = torch.ops.npuport_sim
        library.recorder_clear()
        self._refused_before = refusals.met.copy()
        _watch()
        address = ctypes.cast(self._c_callback, ctypes.c_void_p).value
        library.recorder_start(address, sorted(_falling_back()))
        self._hook = register_optimizer_step_post_hook(self._optimizer_stepped)

    def stop(self) -> None:
        """Record no more; what was recorded stays."""
        import torch

        torch.ops.npuport_sim.recorder_stop()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def abandon(self) -> None:
        """In a forked child, which cannot use the device: the record is its parent's."""
        import torch

        torch.ops.npuport_sim.recorder_stop()
        self.target = None

    def saw_reference(self, operator: str, inputs: tuple[tuple[Any, ...], ...]) -> None:
        """One call of an operator whose kernel is written in Python; ``inputs`` are (name, dtype, shape)."""
        with self._lock:
            seen = self._references.setdefault(operator, {})
            known = seen.get(inputs)
            if known is not None:
                known[0] += 1
                return
        site = self._site()
        with self._lock:
            seen.setdefault(inputs, [0, self.step, site])[0] += 1

    def snapshot(self) -> dict[str, Any]:
        """All of it, as plain values."""
        import torch

        native = json.loads(torch.ops.npuport_sim.recorder_snapshot())
        refused = self._refusals()
        self._look_at_memory()
        with self._lock:
            return {
                "format": FORMAT,
                "pid": os.getpid(),
                "rank": self._rank if self._rank is not None else _number("RANK"),
                "argv": list(sys.argv),
                "directory": os.getcwd(),  # noqa: PTH109
                "started": self._started,
                "seconds": time.monotonic() - self._clock,
                "until": time.time(),
                "steps": self.step,
                "sites": [[s.path, s.line, s.function, s.library, places.library_source(s)] for s in self._sites],
                "operators": native["operators"] + reference_json(self._references),
                "events": [[*key, *values] for key, values in self._events.items()],
                "refusals": refused,
                "memory": native["memory"],
                "allocator": [[device, *values] for device, values in sorted(self._memory.items())],
                "ended": None,
                "error": None,
            }

    def report(self) -> dict[str, Any]:
        """What was recorded until now, as the document that `npuport run --sim --report FILE.json` writes."""
        import torch
        import torch_npu

        from npuport.sim.recorder.document import GIB, Run, build

        run = Run(
            command=list(sys.argv),
            chip=os.environ["NPUPORT_SIM_CHIP"],
            devices=int(os.environ["NPUPORT_SIM_DEVICES"]),
            memory_gib=int(os.environ["NPUPORT_SIM_MEMORY_BYTES"]) // GIB,
            torch=torch.__version__,
            torch_npu=torch_npu.__version__,
            exit_code=None,
        )
        return build(run, [{**self.snapshot(), "ended": "block"}])

    def _hear(self, event: int, operator: bytes, detail: bytes, size: int) -> int:
        try:
            # PyTorch's own threads wait, too; that holds nobody up.
            site = self._site(of_main_thread=event != WAIT)
            kind = _KINDS.get(event)
            if kind is not None and not (event == WAIT and site < 0):
                self._count((kind, operator.decode(), detail.decode(), site), size)
                if event == COLLECTIVE and self._rank is None:
                    self._rank = _rank_of_group()
            self._write_now_and_then()
            return site
        except KeyboardInterrupt:  # no exception can cross C++: ask for it again, when this call is over
            threading.Timer(0.02, _thread.interrupt_main).start()
            return -1
        except Exception as error:
            _complain(f"{type(error).__name__}: {error}")
            return -1

    def _count(self, key: tuple[str, str, str, int], size: int) -> None:
        with self._lock:
            entry = self._events.setdefault(key, [0, 0, 0, 0, 0])
            count, total, in_first_step, last_step, in_last_step = entry
            entry[:] = (
                count + 1,
                total + size,
                in_first_step + (self.step == 0),
                self.step,
                in_last_step + 1 if self.step == last_step else 1,
            )

    def _site(self, *, of_main_thread: bool = True) -> int:
        site = call_site(sys._getframe(), of_main_thread=of_main_thread)
        if site is None:
            return -1
        with self._lock:
            return self._number_of(site)

    def _refusals(self) -> list[list[Any]]:
        """What the chip did not take since the start: operator, dtype, certainty, site, count."""
        new = refusals.met - self._refused_before
        with self._lock:
            return [
                [one.operator, one.dtype, one.certainty, self._number_of(CallSite(one.path, one.line, "")), count]
                for one, count in new.items()
            ]

    def _number_of(self, site: CallSite) -> int:
        return self._sites.setdefault(site, len(self._sites))

    def _optimizer_stepped(self, optimizer: Any, *_arguments: Any) -> None:
        import torch

        count = self._optimizers.get(optimizer, 0) + 1
        self._optimizers[optimizer] = count
        if count > self.step:
            self.step = count
            torch.ops.npuport_sim.recorder_step(count)
            self._write_now_and_then()

    def _look_at_memory(self) -> None:
        """The allocator's own peaks; kept here too, for a program may reset them."""
        import torch

        npu = torch.npu
        for device in range(npu.device_count() if npu.is_initialized() else 0):
            reserved = npu.max_memory_reserved(device)
            if reserved:
                allocated = npu.max_memory_allocated(device)
                before = self._memory.get(device, [0, 0])
                self._memory[device] = [max(before[0], allocated), max(before[1], reserved)]

    def _write_now_and_then(self) -> None:
        now = time.monotonic()
        if self.target is not None and now - self._written > _WRITE_EVERY_S:
            self._written = now
            write(self.target, self.snapshot())


def write(target: Path, record: dict[str, Any]) -> None:
    """Aside, then renamed: a reader sees a whole record or none."""
    aside = target.with_suffix(f".{threading.get_ident()}.part")
    aside.write_text(json.dumps(record), encoding="utf-8")
    aside.replace(target)


@contextlib.contextmanager
def running(recorder: Recorder) -> Iterator[Recorder]:
    """Let ``recorder`` record for the time of the block.

    Raises:
        RuntimeError: another one is recording.
    """
    if _active:
        raise RuntimeError("this process records already; a recording cannot start inside another")
    _active.append(recorder)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()
        _active.clear()


_active: list[Recorder] = []


def active() -> Recorder | None:
    """The recorder that records now."""
    return _active[0] if _active else None


@functools.cache
def _watch() -> None:
    """Put the recorder in front of torch_npu's fallbacks and of collectives, once."""
    import torch

    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    torch.ops.npuport_sim.recorder_watch([*_falling_back(), *(n for n in names if n.startswith("c10d::"))])


def _falling_back() -> list[str]:
    from npuport.facts.operators import all_operators, operator_status

    entries = filter(None, map(operator_status, all_operators()))
    return [f"aten::{name}" for entry in entries for name, way in entry.overloads.items() if way == "cpu_fallback"]


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None


def _rank_of_group() -> int | None:
    import torch.distributed as dist

    return dist.get_rank() if dist.is_initialized() else None


@functools.cache
def _complain(text: str) -> None:
    """Once for each kind of failure."""
    print(f"npuport: recording failed ({text}); the program goes on", file=sys.stderr)
