"""A pytest plugin that writes what happens to each case to a file, line by line, so that it survives a crash.

Each line is a JSON object: ``{"collected": [node, …]}``, ``{"started": node}``, ``{"finished": node, "outcome": …,
"text": …, "seconds": …}`` or ``{"ended": exit code}``. Cases named in the file at ``NPUPORT_CASES_DONE`` are left out.
"""

from __future__ import annotations

import inspect
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.unittest import UnitTestCase

LOG, DONE = "NPUPORT_CASE_LOG", "NPUPORT_CASES_DONE"
_RANK = ("pass", "skip", "fail", "error")  # of several phases or subtests of one case, the last in this order counts
_TEXT = 4000

_outcomes: dict[str, tuple[str, str]] = {}
_begun: dict[str, float] = {}


def _write(**event: object) -> None:
    with Path(os.environ[LOG]).open("a", encoding="utf-8") as log:
        log.write(json.dumps(event) + "\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    done = set(json.loads(Path(os.environ[DONE]).read_text(encoding="utf-8")))
    left_out = [item for item in items if item.nodeid in done or _is_no_case(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    _write(collected=[item.nodeid for item in items])


def _is_no_case(item: pytest.Item) -> bool:
    """A function with the name of a case that its file calls itself, with arguments no fixture gives."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(name != "request" and name not in known for name in getattr(item, "fixturenames", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj: object) -> list[pytest.Item] | None:
    """Leave out a generator with the name of a case, for which pytest would give up the whole file."""
    return [] if inspect.isgeneratorfunction(obj) else None


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(finished=report.nodeid, outcome="error", text=_text(report), seconds=0.0)
    elif report.skipped:
        _write(finished=report.nodeid, outcome="skip", text=_text(report), seconds=0.0)


def pytest_configure() -> None:
    """Let pytest collect classes that look up the method they are made for: it makes each one for "runTest"."""
    make: Callable[[UnitTestCase], object] = UnitTestCase.newinstance

    def newinstance(self: UnitTestCase) -> object:
        if hasattr(self.obj, "runTest"):
            return make(self)
        self.obj.runTest = lambda _case: None
        try:
            return make(self)
        finally:
            del self.obj.runTest

    UnitTestCase.newinstance = newinstance  # type: ignore[method-assign]


def pytest_runtest_logstart(nodeid: str) -> None:
    _begun[nodeid] = time.monotonic()
    _write(started=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    outcome = _outcome(report)
    known = _outcomes.get(report.nodeid, ("pass", ""))
    if _RANK.index(outcome) > _RANK.index(known[0]):
        _outcomes[report.nodeid] = (outcome, _text(report))


def _outcome(report: pytest.TestReport) -> str:
    if report.passed or (report.skipped and hasattr(report, "wasxfail")):  # a failure that the case itself expects
        return "pass"
    if report.skipped:
        return "skip"
    return "fail" if report.when == "call" else "error"


def _text(report: pytest.CollectReport | pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    message = f"{crash.message}\n" if crash else ""
    return message[:_TEXT] + "\n" + report.longreprtext[-_TEXT:]


def pytest_runtest_logfinish(nodeid: str) -> None:
    outcome, text = _outcomes.pop(nodeid, ("pass", ""))
    _write(finished=nodeid, outcome=outcome, text=text, seconds=round(time.monotonic() - _begun.pop(nodeid), 3))


def pytest_sessionfinish(exitstatus: int) -> None:
    _write(ended=int(exitstatus))
