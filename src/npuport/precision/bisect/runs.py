"""Running a training with a plan, and judging what came out; answers are kept."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from npuport.errors import UserError
from npuport.precision.bisect.plan import PLAN, Plan, Unit, read_seen
from npuport.precision.bisect.smallest import OutOfRunsError
from npuport.search_path import STARTUP, first

Told = Callable[[int, int, bool, float], None]
"""Told of each run: its number, how many units were raised, whether the difference went, seconds."""


@dataclass(frozen=True)
class Judge:
    """How a run is judged: a command that ends with 0 if it is right (``NPUPORT_LOG`` names the log, ``NPUPORT_EXIT``
    the exit code), or the log of a run that is right, or else that every loss is finite."""

    check: str = ""
    reference: Path | None = None

    def is_right(self, log: Path, code: int) -> bool:
        """The verdict on a run.

        Raises:
            UserError: the judging command cannot be started, or the log holds no curve.
        """
        if self.check:
            variables = {**os.environ, "NPUPORT_LOG": str(log), "NPUPORT_EXIT": str(code)}
            try:
                return subprocess.run(shlex.split(self.check), env=variables, check=False).returncode == 0
            except OSError as error:
                raise UserError("{command} cannot be started: {reason}.", command=self.check,
                                reason=error.strerror) from error  # fmt: skip
        from npuport.precision.curves.judging import judge
        from npuport.precision.curves.reading import read_run

        if code != 0:
            return False
        run = read_run(log)
        if self.reference is not None:
            return judge(read_run(self.reference), run).passes
        return all(math.isfinite(value) for curve in run.curves.values() for value in curve.values.values())


class Runs:
    """The runs of one search. A folder keeps logs and answers, so that a search that was ended goes on."""

    def __init__(
        self, command: Sequence[str], how: str, judge: Judge, folder: Path, most: int, told: Told
    ) -> None:  # fmt: skip
        self._command, self._how, self._judge, self._folder = list(command), how, judge, folder.resolve()
        self._most, self._told = most, told
        self.number = 0
        self._answers = self._kept()

    def goes(self, units: Sequence[Unit]) -> bool:
        """Whether the difference goes when these units are raised.

        Raises:
            OutOfRunsError: the limit is reached.
            UserError: what came out cannot be judged.
        """
        key = json.dumps(sorted((one.operator, one.module) for one in units))
        if key not in self._answers:
            if self.number >= self._most:
                raise OutOfRunsError
            started = time.monotonic()
            log, code = self._run(units)
            self._answers[key] = self._judge.is_right(log, code)
            self._keep()
            self.number += 1
            self._told(self.number, len(units), self._answers[key], time.monotonic() - started)
        return self._answers[key]

    def units(self) -> list[Unit]:
        """The units that the run with nothing raised has called; it must have been asked for.

        Raises:
            UserError: there are none.
        """
        found = read_seen(self._folder / "seen")
        if not found:
            raise UserError(
                "No process of the run has computed with torch to its end: look at {path}.",
                path=self._folder / "run000.log",
            )
        return found

    def _run(self, units: Sequence[Unit]) -> tuple[Path, int]:
        self._folder.mkdir(parents=True, exist_ok=True)
        plan, log = self._folder / "plan.json", self._folder / f"run{self.number:03}.log"
        Plan(self._how, frozenset(units), self._folder / ("seen" if not units else "seen_later")).write(plan)
        command = self._command
        if Path(command[0]).name != "npuport" and command[1:3] != ["-m", "npuport"]:
            command = [sys.executable, "-m", "npuport", "run", "--", *command]
        inside = {**os.environ, PLAN: str(plan), "PYTHONPATH": first(STARTUP, "PYTHONPATH")}
        with log.open("wb") as stream:
            done = subprocess.run(command, env=inside, stdout=stream, stderr=subprocess.STDOUT, check=False)
        return log, done.returncode

    def _question(self) -> list[str]:
        return [*self._command, self._how, self._judge.check, str(self._judge.reference or "")]

    def _kept(self) -> dict[str, bool]:
        path = self._folder / "answers.json"
        if not path.exists():
            return {}
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["question"] != self._question():
            raise UserError("{path} holds the answers of another search: choose another folder with --keep.", path=path)
        return dict(document["answers"])

    def _keep(self) -> None:
        aside = self._folder / "answers.new"
        text = json.dumps({"question": self._question(), "answers": self._answers}, ensure_ascii=False, indent=1)
        aside.write_text(text, encoding="utf-8")
        aside.replace(self._folder / "answers.json")
