"""tools/isolated_cases.py: a case that crashes or hangs costs nothing but itself."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
isolated_cases = pytest.importorskip("isolated_cases")
known_failures = pytest.importorskip("known_failures")

TESTS = """
import os, signal, time, unittest

class TestAll(unittest.TestCase):
    def test_a_passes(self):
        pass
    def test_b_fails(self):
        self.assertEqual(1, 2, "wrong number")
    def test_c_crashes(self):
        os.kill(os.getpid(), signal.SIGSEGV)
    def test_d_hangs(self):
        time.sleep(600)
    def test_e_leaves(self):
        os._exit(0)
    @unittest.skip("no such device")
    def test_f_is_skipped(self):
        pass
    @unittest.expectedFailure
    def test_g_fails_as_expected(self):
        self.fail("known")
    def test_h_has_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1, "one")
    def test_i_passes(self):
        pass

def test_of_a_process(rank, size):
    pass

def test_configurations():
    yield "not a case"
"""


def run(folder: Path, text: str, seconds: float = 8) -> dict[str, tuple[str, str]]:
    (folder / "test_them.py").write_text(text)
    cases = isolated_cases.run_file([], folder, "test_them.py", folder, {}, seconds)
    return {case.name: (case.outcome, case.text) for case in cases}


def test_every_case_has_its_outcome(tmp_path: Path) -> None:
    found = run(tmp_path, TESTS)
    assert {name.removeprefix("TestAll::test_")[0]: outcome for name, (outcome, _text) in found.items()} == {
        "a": "pass", "b": "fail", "c": "crash", "d": "timeout", "e": "crash", "f": "skip", "g": "pass", "h": "fail",
        "i": "pass",
    }  # fmt: skip
    assert "wrong number" in found["TestAll::test_b_fails"][1]
    assert "SIGSEGV" in found["TestAll::test_c_crashes"][1]
    assert "no such device" in found["TestAll::test_f_is_skipped"][1]
    assert "one" in found["TestAll::test_h_has_subtests"][1]


@pytest.mark.parametrize(
    ("text", "outcome", "says"),
    [
        ("import no_such_module_anywhere", "error", "no_such_module_anywhere"),
        ("import os; os._exit(3)", "crash", "exit code 3"),
        ("import time; time.sleep(600)", "timeout", "no end after 8 s"),
    ],
)
def test_a_file_that_does_not_load(tmp_path: Path, text: str, outcome: str, says: str) -> None:
    ((name, (found, message)),) = run(tmp_path, text).items()
    assert (name, found) == ("(collection)", outcome)
    assert says in message


def test_the_list_of_known_failures() -> None:
    Known, Case = known_failures.Known, isolated_cases.Case
    known = [
        Known("test/npu/test_graph_*.py", "*", "graph mode", ""),
        Known("test/nn/test_a.py", "TestA::test_[x]", "gap", ""),
        Known("test/nn/test_a.py", "TestA::test_gone", "gap", ""),
        Known("test/nn/test_b.py", "*", "test itself", "", run="varies"),
        Known("test/nn/test_other.py", "*", "gap", ""),
    ]
    cases = [
        Case("test/npu/test_graph_a.py", "TestG::test_1", "crash"),
        Case("test/nn/test_a.py", "TestA::test_[x]", "pass"),
        Case("test/nn/test_a.py", "TestA::test_x", "fail"),
        Case("test/nn/test_a.py", "TestA::test_y", "skip", "this test is disabled now"),
        Case("test/nn/test_b.py", "TestB::test_now", "pass"),
        Case("test/nn/test_b.py", "TestB::test_then", "fail"),
    ]
    columns = [known_failures.column_of(case, known) for case in cases]
    assert columns == ["graph mode", "pass", "not listed", "disabled", "pass", "test itself"]
    assert [row.cases for row, _ in known_failures.stale(cases, known)] == ["TestA::test_[x]", "TestA::test_gone"]
    lines = known_failures.table(cases, known, ["graph mode"]).splitlines()
    assert lines[1].split()[-1] == "%" and lines[1].split()[-2] == "50.0"  # test/nn
    assert lines[2].split()[-1] == "-"  # test/npu: nothing but graph mode


@pytest.mark.parametrize("project", ["run_torch_npu_tests", "run_accelerate_tests"])
def test_the_list_is_in_order(project: str) -> None:
    rows = [(row.file, row.cases) for row in known_failures.read_known(importlib.import_module(project).PROJECT.known)]
    assert rows == sorted(set(rows))


def test_classes_that_look_up_their_method_are_collected(tmp_path: Path) -> None:
    text = """
import unittest

class TestPicky(unittest.TestCase):
    def __init__(self, method_name="runTest"):
        super().__init__(method_name)
        getattr(self, method_name)
    def test_one(self):
        self.assertFalse(hasattr(self, "runTest"))
"""
    assert run(tmp_path, text) == {"TestPicky::test_one": ("pass", "")}


def test_a_run_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    other_tests = importlib.import_module("other_tests")
    known = tmp_path / "known.csv"
    known.write_text("file,cases,reason,note,run\nsuite/test_a.py,test_it,gap,,yes\n")
    for name in "abc":
        (tmp_path / "suite").mkdir(exist_ok=True)
        (tmp_path / f"suite/test_{name}.py").touch()
    project = other_tests.Project("nobody", ("suite",), known, ".", (), (), lambda *_: {})
    ran: list[str] = []

    def run_one(_project: object, _checkout: Path, file: str, *_: object) -> list[object]:
        if "c.py" in file and len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(file)
        return [isolated_cases.Case(file, "test_it", "fail" if "a.py" in file else "pass", "text")]

    monkeypatch.setattr(other_tests, "run", run_one)
    log = tmp_path / "cases.json"
    monkeypatch.setattr("sys.argv", ["run", str(tmp_path), "--json", str(log), "--resume"])
    with pytest.raises(KeyboardInterrupt):
        other_tests.main(project)
    ran.append("interrupted")
    assert other_tests.main(project) == 0  # the listed failure of the first run counts
    assert ran == ["suite/test_a.py", "suite/test_b.py", "interrupted", "suite/test_c.py"]
    assert "66.7 %" in capsys.readouterr().out
    log.write_text("{}]")
    with pytest.raises(SystemExit, match="without --resume"):
        other_tests.main(project)
