"""Writing recorded steps while the training goes on, and never at its cost: a full disk ends the recording only."""

from __future__ import annotations

import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from npuport.findings import Sentence, say
from npuport.precision.operators.calls import Recorded, aside, step_file, write_step

_SPARE = 1.05  # of the bytes of a step: what the file holds besides


@dataclass(frozen=True)
class Written:
    """A step that is in its file."""

    step: int
    size: int  # bytes
    seconds: float  # that writing took, in the background


class Writer:
    """Writes one step at a time in the background. Handing over the next one waits until that is done: no more than the
    step that is recorded and the one that is written are in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread: threading.Thread | None = None
        self.problem: Sentence | None = None
        self.written: list[Written] = []

    def write(self, step: Recorded) -> None:
        """Begin to write a step; what goes wrong is told by ``problem``."""
        self.wait()
        if self.problem is None:
            self.problem = self._obstacle(step)
        if self.problem is None:
            self._thread = threading.Thread(target=self._write, args=(step,), name="npuport-dump")
            self._thread.start()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _obstacle(self, step: Recorded) -> Sentence | None:
        path = step_file(self._folder, step.step, step.rank)
        if path.exists():
            return say("{path} is there already, of another process; this one records nothing more.", path=path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(path.parent).free
        except OSError as error:
            return _failed(path, error)
        size = sum(storage.numel() for storage in step.storages.values())
        if size * _SPARE > free:
            return say(
                "step {step} has {size} MB, and {path} has room for {free}: nothing more is recorded.",
                step=step.step,
                size=f"{size / 1e6:.0f}",
                path=self._folder,
                free=f"{free / 1e6:.0f}",
            )
        return None

    def _write(self, step: Recorded) -> None:
        began = time.perf_counter()
        step.storages = shared(step.storages)
        try:
            path = write_step(self._folder, step)
        except (OSError, RuntimeError) as error:  # torch.save tells what the system says as a RuntimeError
            path = step_file(self._folder, step.step, step.rank)
            aside(path).unlink(missing_ok=True)
            self.problem = _failed(path, error)
            return
        self.written.append(Written(step.step, path.stat().st_size, time.perf_counter() - began))


def shared(storages: dict[int, torch.Tensor]) -> dict[int, torch.Tensor]:
    """The same storages, those with the same bytes as one tensor, which a file holds once."""
    first: dict[tuple[int, int], torch.Tensor] = {}
    result = {}
    for number, storage in storages.items():
        words = storage[: storage.numel() // 8 * 8].view(torch.int64)
        key = storage.numel(), int(words.sum())
        known = first.setdefault(key, storage)
        result[number] = known if torch.equal(known, storage) else storage
    return result


def _failed(path: Path, error: OSError | RuntimeError) -> Sentence:
    reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    return say("{path} cannot be written ({reason}): nothing more is recorded.", path=path, reason=reason)
