"""A process of `npuport run --sim` keeps its record in the directory of the run, where the launcher finds it."""

from __future__ import annotations

import atexit
import os
import sys
import time
from pathlib import Path
from typing import Any

from npuport.sim.call_site import call_site
from npuport.sim.recorder.live import Recorder, running, write
from npuport.sim.recorder.places import library_source

WANTED = "NPUPORT_SIM_RECORD"
DIRECTORY = "NPUPORT_SIM_RUN"
PATTERN = "record-*.json"


def install() -> None:
    """Record this process, if the run is to be recorded."""
    directory = os.environ.get(DIRECTORY)
    if os.environ.get(WANTED) != "1" or not directory:
        return
    recorder = Recorder()
    recorder.target = Path(directory) / PATTERN.replace("*", f"{os.getpid()}-{time.time_ns()}")
    recording = running(recorder)
    recording.__enter__()
    atexit.register(_finish, recorder, recording)
    os.register_at_fork(after_in_child=recorder.abandon)


def _finish(recorder: Recorder, recording: Any) -> None:
    if recorder.target is None:
        return  # a forked child, which cannot use the device
    recording.__exit__(None, None, None)
    record = recorder.snapshot()
    if record["operators"] or record["events"]:
        write(recorder.target, {**record, "ended": "exit", "error": _uncaught()})


def _uncaught() -> dict[str, Any] | None:
    """The exception that ended this process, and the user's line it came from."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return None
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    site = call_site(traceback.tb_frame) if traceback is not None else None
    place = None if site is None else [site.path, site.line, site.function, site.library, library_source(site)]
    return {"type": type(error).__name__, "message": str(error), "site": place}
