"""An output folder that is filled aside and shows its results when they are complete.

::

    OUT/unfinished/   what is being written, and what tells a second start where the first one ended
    OUT/logs/         datatrove's logs, statistics and completions of each stage
    OUT/…             the results, once the last stage has checked them
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from npuport.errors import UserError
from npuport.llm.pipelines.shards import Shard

REPORT = "report.json"


class Refused(UserError):
    """A task refuses the input or a setting: this very run can never end well, so nothing of it is kept."""


@dataclass(frozen=True)
class Folder:
    """Where a pipeline writes."""

    path: Path

    @property
    def unfinished(self) -> Path:
        return self.path / "unfinished"

    def part(self, name: str) -> Path:
        """A folder of intermediate files."""
        folder = self.unfinished / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def report(self) -> dict[str, Any] | None:
        """The report of a run that is complete."""
        return _read(self.path / REPORT)


@contextmanager
def held(
    folder: Folder, settings: Mapping[str, Any], shards: Sequence[Shard], beside: Sequence[str] = ()
) -> Iterator[bool]:
    """Take the folder for one run; False where that very run is complete already.

    Args:
        beside: files that the settings name, beside the input.

    Raises:
        UserError: it holds something else, another run has it, or it cannot be written.

    A run that is refused leaves no folder, so that the corrected command can take its place.
    """
    identity = {
        "settings": settings,
        "shards": [asdict(shard) | _state(shard.path) for shard in shards],
        "beside": [{"path": path} | _state(path) for path in beside],
    }
    run = json.loads(json.dumps(identity))
    if _complete(folder, run):
        yield False
        return
    try:
        lock = _taken(folder, run)
    except OSError as error:
        raise UserError(
            "{path} cannot be written: {reason}.", path=folder.path, reason=error.strerror or error
        ) from error
    with lock:
        try:
            yield True
        except Refused:
            _withdraw(folder)
            raise


def _taken(folder: Folder, run: Mapping[str, Any]) -> TextIO:
    path = folder.path
    if path.exists() and not folder.unfinished.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError("{path} is there already: choose another folder.", path=path)
    folder.unfinished.mkdir(parents=True, exist_ok=True)
    lock = (folder.unfinished / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _same_run(folder, run)
    except BaseException as error:
        lock.close()
        if isinstance(error, BlockingIOError):
            raise UserError("another run is writing {path}: wait for its end.", path=path) from error
        raise
    return lock


def _withdraw(folder: Folder) -> None:
    discard(folder)
    shutil.rmtree(folder.logs)
    with suppress(OSError):  # what others put there stays
        folder.path.rmdir()


def _complete(folder: Folder, run: Mapping[str, Any]) -> bool:
    return not folder.unfinished.exists() and folder.report() is not None and _read(folder.logs / "run.json") == run


def _state(path: str) -> dict[str, Any]:
    state = Path(path).stat()
    return {"bytes": state.st_size, "changed": state.st_mtime_ns}


def _same_run(folder: Folder, run: Mapping[str, Any]) -> None:
    """What a killed run left is continued only with the settings and the input that it had."""
    folder.logs.mkdir(exist_ok=True)
    path = folder.logs / "run.json"
    before = _read(path)
    if before is None:
        write_json(path, run)
        return
    if before == run:
        return
    if before.get("settings") == run["settings"]:
        raise UserError(
            "{path} holds an unfinished run, and its input has changed since: choose another folder.", path=folder.path
        )
    raise UserError(
        "{path} holds an unfinished run with other settings: go on with those, or choose another folder.",
        path=folder.path,
    )


def write_json(path: Path, content: object) -> None:
    """A JSON file, whole or not at all."""
    aside = path.with_name(f".{path.name}")
    aside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    aside.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content


def show(folder: Folder, names: Sequence[str], report: Mapping[str, Any]) -> None:
    """Move the parts ``names`` to where people look, the report last; a second call goes on where a first one ended."""
    for name in names:
        part = folder.unfinished / name
        if part.exists():
            part.replace(folder.path / name)
    write_json(folder.path / REPORT, report)


def discard(folder: Folder) -> None:
    """Remove what only an unfinished run needs."""
    shutil.rmtree(folder.unfinished)
