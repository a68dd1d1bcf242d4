"""What commands that run pipelines have in common: the packages that they need, and a bar."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.llm.pipelines.executors import Stage
    from npuport.llm.pipelines.folder import Folder
    from npuport.llm.pipelines.shards import Shard


def needs_pipelines() -> None:
    """Say what to install where a package is missing.

    Raises:
        UserError: one is.
    """
    from importlib.util import find_spec

    missing = [name for name in ("datatrove", "pyarrow", "py3langid", "regex") if find_spec(name) is None]
    if missing:
        raise UserError("this takes the packages {names}:\n  pip install 'npuport[data]'", names=", ".join(missing))


@contextmanager
def bar() -> Iterator[Any]:
    """A bar for each stage on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from npuport.report.language import translate

    ended, current = Event(), list[Any]()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    # No thread of rich's own: pools are started while the bar is shown.
    with Progress(*columns, console=Console(file=sys.stderr), transient=True, auto_refresh=False) as shown:

        def started(stage: Stage, shards: list[Shard], folder: Folder) -> None:
            total, done = _measure(stage, shards, folder)
            current[:] = [shown.add_task(translate("stage {name}", name=stage.name), total=total), done]

        def draw() -> None:
            while not ended.wait(0.2):
                if current:
                    task, done = current
                    shown.update(task, completed=done(), refresh=True)

        drawing = Thread(target=draw, daemon=True)
        drawing.start()
        try:
            yield started
        finally:
            ended.set()
            drawing.join()


def _measure(stage: Stage, shards: list[Shard], folder: Folder) -> tuple[int, Any]:
    """What a stage's progress is counted in: MiB of input where it reads that, else tasks."""
    from npuport.llm.pipelines.progress import done, units

    meters = folder.unfinished / "progress" / stage.name
    if meters.exists():
        return units(shards), lambda: done(meters)
    completions = folder.logs / stage.name / "completions"
    return stage.tasks, lambda: len(list(completions.glob("*")))
