"""Every file is checked, crashes are contained, and effort counts lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuport.analysis import analyze, effort, select
from npuport.errors import UserError
from npuport.findings import Applicability, Edit, Finding, Fix, Location, Severity
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, Skipped, SourceFile, Tree
from npuport.source.parallel import failure, map_files, worker_count

SETTINGS = Settings()


def python(path: str, text: str = "import torch\nd = torch.device('cuda')\n") -> SourceFile:
    return SourceFile(path, FileKind.PYTHON, text)


def tree(*files: SourceFile, skipped: tuple[Skipped, ...] = ()) -> Tree:
    return Tree(Path("demo"), files, skipped)


def finding(line: int, severity: Severity, level: Applicability | None = None, code: str = "NP101") -> Finding:
    fix = Fix((Edit(0, 1, ""),), level) if level else None
    return Finding(code, "a-word", severity, Location("a.py", line, 1, line, 2), "m", fix=fix)


def test_findings_in_order_of_files() -> None:
    analysis = analyze(tree(python("a.py"), python("b.py"), SourceFile("c.yaml", FileKind.YAML, "x: 1\n")), SETTINGS)
    assert [(one.location.path, one.code) for one in analysis.findings] == [("a.py", "NP101"), ("b.py", "NP101")]
    assert analysis.files == {FileKind.PYTHON: 2, FileKind.YAML: 1}
    assert analysis.complete


def test_progress_counts_every_file() -> None:
    done: list[int] = []
    analyze(tree(python("a.py"), python("b.py")), SETTINGS, progress=done.append)
    assert sum(done) == 2


def test_several_processes_find_what_one_finds() -> None:
    text = "import torch\nd = torch.device('cuda')\n" + "# filler\n" * 1000
    files = [python(f"m{number:02}.py", text) for number in range(50)]
    done: list[int] = []
    several = analyze(tree(*files), SETTINGS, jobs=2, progress=done.append)
    assert sum(done) == 50
    assert several.findings == analyze(tree(*files), SETTINGS, jobs=1).findings
    assert len(several.findings) == 50


def test_a_crash_names_file_and_rule_and_costs_only_that_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Crashing:
        code = "NP555"

        def check(self) -> list[Finding]:
            raise KeyError("boom")

    monkeypatch.setattr(
        "npuport.rules.cache.check_file",
        lambda source, *_: Crashing().check() if source.path == "a.py" else [finding(1, Severity.ERROR)],
    )
    analysis = analyze(tree(python("a.py"), python("b.py")), SETTINGS)
    (failed,) = analysis.failures
    assert (failed.path, failed.rule, failed.message) == ("a.py", "NP555", "KeyError: 'boom'")
    assert "in check" in failed.detail
    assert len(analysis.findings) == 1
    assert not analysis.complete


def test_unreadable_input_makes_it_incomplete_and_large_input_does_not() -> None:
    assert analyze(tree(python("a.py"), skipped=(Skipped("b", "big", unreadable=False),)), SETTINGS).complete
    assert not analyze(tree(python("a.py"), skipped=(Skipped("b", "denied", unreadable=True),)), SETTINGS).complete


def test_effort_counts_each_line_once_under_its_hardest_finding() -> None:
    work = effort(
        [
            finding(1, Severity.ERROR, Applicability.SAFE),
            finding(1, Severity.ERROR, Applicability.SAFE, "NP102"),
            finding(2, Severity.ERROR, Applicability.SAFE),
            finding(2, Severity.ERROR, Applicability.UNSAFE),
            finding(3, Severity.WARNING),
            finding(4, Severity.ERROR),
            finding(4, Severity.ERROR, Applicability.SAFE),
            finding(5, Severity.ERROR, Applicability.MANUAL),
            finding(6, Severity.ADVICE),
            finding(7, Severity.INFO),
        ]
    )
    assert (work.automatic, work.to_read, work.by_hand, work.files) == (1, 2, 2, 1)
    assert work.blocked


def test_select() -> None:
    found = [finding(1, Severity.ERROR, code="NP101"), finding(2, Severity.INFO, code="NP901")]
    assert [one.code for one in select(found, [], [])] == ["NP101", "NP901"]
    assert [one.code for one in select(found, ["np1"], [])] == ["NP101"]
    assert [one.code for one in select(found, [], ["NP9"])] == ["NP101"]
    assert select(found, ["NP101"], ["NP1"]) == ()
    with pytest.raises(UserError, match="no rule is called NP7777"):
        select(found, ["NP7777"], [])


def test_small_work_needs_no_pool() -> None:
    assert worker_count([python("a.py")], 8) == 1
    assert worker_count([python("a.py", "#" * 1_000_000)] * 3, 8) == 3
    assert worker_count([python("a.py", "#" * 1_000_000)] * 3, 2) == 2


def test_results_keep_the_order_of_files() -> None:
    files = [python(f"{number}.py", "#" * 10_000) for number in range(100)]
    assert map_files(path_of, files, None, jobs=2) == [file.path for file in files]


def path_of(source: SourceFile, context: None) -> str:  # noqa: ARG001
    return source.path


def test_a_failure_without_a_rule() -> None:
    try:
        raise ValueError("x")
    except ValueError as error:
        assert failure("a.py", error).rule == ""
