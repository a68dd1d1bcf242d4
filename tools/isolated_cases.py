"""Run one test file of another project in a process of its own, and get an outcome for every case, whatever happens.

A case that ends the process or hangs is one outcome more; the cases after it run in a new process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import case_log

FAILED = ("fail", "error", "crash", "timeout")
_POLL_SECONDS = 0.2
_TAIL = 4000


@dataclasses.dataclass(frozen=True)
class Case:
    """One case: ``file`` relative to the root of the checkout, ``name`` within the file (``Class::test_name``).

    ``outcome`` is pass, skip, or one of ``FAILED``; ``text`` says why, its first line in short.
    """

    file: str
    name: str
    outcome: str
    text: str = ""
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class _Attempt:
    finished: list[Case]
    running: str | None
    ended: bool
    collected: bool
    output: str
    code: int | None  # None: stopped because nothing happened for too long


def run_file(
    launcher: Sequence[str],
    root: Path,
    file: str,
    cwd: Path,
    variables: Mapping[str, str],
    seconds: float,
    select: str = "",
    without: Sequence[str] = (),
    options: Sequence[str] = (),
) -> list[Case]:
    """Every case of ``root/file``, run as ``launcher… python -m pytest`` in ``cwd``; ``seconds`` is for one case.

    ``select`` is pytest's ``-k`` expression; cases named in ``without`` are not run; ``options`` are pytest's.
    """
    cases: dict[str, Case] = {}
    while True:
        attempt = _run(launcher, root, file, cwd, variables, seconds, select, [*without, *cases], options)
        cases.update((case.name, case) for case in attempt.finished)
        if attempt.ended:
            return list(cases.values())
        broken = attempt.running if attempt.running is not None else "(end)" if attempt.collected else "(collection)"
        cases[broken] = Case(file, broken, *_ending(attempt, seconds))
        if attempt.running is None:
            return list(cases.values())


def _ending(attempt: _Attempt, seconds: float) -> tuple[str, str]:
    if attempt.code is None:
        return "timeout", f"no end after {seconds:g} s\n{attempt.output[-_TAIL:]}"
    how = signal.Signals(-attempt.code).name if attempt.code < 0 else f"exit code {attempt.code}"
    if attempt.code > 128 and attempt.code - 128 in set(signal.Signals):  # the launcher passes a signal on as 128 + n
        how = signal.Signals(attempt.code - 128).name
    return "crash", f"the process ended: {how}\n{attempt.output[-_TAIL:]}"


def _run(
    launcher: Sequence[str],
    root: Path,
    file: str,
    cwd: Path,
    variables: Mapping[str, str],
    seconds: float,
    select: str,
    done: Sequence[str],
    options: Sequence[str],
) -> _Attempt:
    with tempfile.TemporaryDirectory(prefix="npuport-cases-", ignore_cleanup_errors=True) as scratch:
        log, output = Path(scratch, "log"), Path(scratch, "output")
        log.touch()
        Path(scratch, "done").write_text(json.dumps([f"{file}::{name}" for name in done]), encoding="utf-8")
        command = [
            *launcher, sys.executable, "-m", "pytest", str(root / file), "-q", "-s", "-k", select,
            "--rootdir", str(root), "-c", os.devnull, "-p", Path(case_log.__file__).stem,
            "-p", "no:cacheprovider", "-p", "no:warnings", *options,
        ]  # fmt: skip
        environment = {
            **os.environ,
            **variables,
            case_log.LOG: str(log),
            case_log.DONE: str(Path(scratch, "done")),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(
                [str(Path(__file__).parent), *filter(None, [variables.get("PYTHONPATH"), os.environ.get("PYTHONPATH")])]
            ),
        }
        with output.open("w") as sink:
            child = subprocess.Popen(
                command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                start_new_session=True,
            )  # fmt: skip
            code = _wait(child, log, seconds)
        return _read(file, log, output.read_text(encoding="utf-8", errors="replace"), code)


def _wait(child: subprocess.Popen[bytes], log: Path, seconds: float) -> int | None:
    """The child's exit code, or None if the log did not grow for ``seconds``. Its descendants end with it."""
    size, since = 0, time.monotonic()
    try:
        while child.poll() is None:
            time.sleep(_POLL_SECONDS)
            if log.stat().st_size != size:
                size, since = log.stat().st_size, time.monotonic()
            elif time.monotonic() - since > seconds:
                return None
        return child.returncode
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _read(file: str, log: Path, output: str, code: int | None) -> _Attempt:
    events: list[dict[str, Any]] = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    finished = [
        Case(file, _name(file, event["finished"]), event["outcome"], event["text"], event["seconds"])
        for event in events
        if "finished" in event
    ]
    names = {case.name for case in finished}
    started = [_name(file, event["started"]) for event in events if "started" in event]
    return _Attempt(
        finished,
        running=next((name for name in started if name not in names), None),
        ended=any("ended" in event for event in events),
        collected=any("collected" in event for event in events),
        output=output,
        code=code,
    )


def _name(file: str, node: str) -> str:
    return node.removeprefix(file).removeprefix("::") or "(collection)"
