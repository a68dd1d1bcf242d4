"""A tree is converted until another run would change nothing, and a file that cannot be converted keeps its text."""

from __future__ import annotations

import pytest
from words import Checker, finding_at, replacing

from npuport.conversion.rounds import Conversion, convert_files
from npuport.findings import Applicability, Edit, Finding, Fix
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project

SETTINGS = Settings()


def python(text: str, path: str = "a.py") -> SourceFile:
    return SourceFile(path, FileKind.PYTHON, text)


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def run(checker: Checker, *files: SourceFile) -> Conversion:
        monkeypatch.setattr("npuport.rules.cache.check_file", checker)
        return convert_files(files, SETTINGS)

    return run


def test_fixes_that_overlap_follow_one_after_the_other(convert) -> None:  # type: ignore[no-untyped-def]
    def checker(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:  # noqa: ARG001
        found = []
        for code, old, new in (("NP101", "f(x)", "g(x)"), ("NP102", "(x)", "(y)")):
            at = source.text.find(old)
            if at >= 0:
                fix = Fix((Edit(at, at + len(old), new),), Applicability.SAFE)
                found.append(finding_at(source, at, at + len(old), code, fix))
        return found

    conversion = convert(checker, python("f(x)\n"))
    assert conversion.files[0].text == "g(y)\n"
    assert [(change.line, change.before, change.after) for change in conversion.files[0].changes] == [
        (1, "f(x)\n", "g(x)\n"),
        (1, "g(x)\n", "g(y)\n"),
    ]
    assert convert(checker, python(conversion.files[0].text)).changed == ()


def test_one_file_is_seen_in_its_new_form_by_the_others(convert) -> None:  # type: ignore[no-untyped-def]
    def checker(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:
        settled = source.path == "b.py" or "new" in project.texts["b.py"]
        level = Applicability.SAFE if settled else Applicability.UNSAFE
        return replacing({"old": "new"}, level)(source, project, settings)

    conversion = convert(checker, python("from b import x\nold\n", "a.py"), python("old\n", "b.py"))
    assert [file.text for file in conversion.files] == ["from b import x\nnew\n", "new\n"]


def test_only_what_changed_and_what_imports_it_is_looked_at_again(convert) -> None:  # type: ignore[no-untyped-def]
    seen: list[str] = []

    def checker(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:
        seen.append(source.path)
        level = Applicability.SAFE if source.path == "b.py" else Applicability.UNSAFE
        return replacing({"old": "new"}, level)(source, project, settings)

    texts = {
        "a.py": "import os, b\nold\n",
        "b.py": "old\n",
        "c.py": "import os\nold\n",
        "d.py": "from .b import x\nold\n",
        "e.py": "import b\n",
    }
    convert(checker, *(python(text, path) for path, text in texts.items()))
    assert seen == ["a.py", "b.py", "c.py", "d.py", "e.py", "b.py", "a.py", "d.py"]


def test_fixes_that_never_settle_are_a_failure_and_change_nothing(convert) -> None:  # type: ignore[no-untyped-def]
    conversion = convert(replacing({"ping": "pong", "pong": "ping"}), python("ping\n"), python("x = 1\n", "b.py"))
    assert conversion.changed == ()
    (failure,) = conversion.failures
    assert (failure.path, failure.message) == ("a.py", "its fixes do not settle after 10 rounds")
    assert failure.rule in ("NP101", "NP102")
    assert [finding.code for finding in conversion.left] == ["NP101"]


def test_a_fix_that_breaks_a_file_leaves_that_file_alone(convert) -> None:  # type: ignore[no-untyped-def]
    conversion = convert(replacing({"bad": "(((", "old": "new"}), python("bad = old\n"), python("old\n", "b.py"))
    assert [file.text for file in conversion.files] == ["bad = old\n", "new\n"]
    (failure,) = conversion.failures
    assert failure.path == "a.py"
    assert "NP101" in failure.message
    assert {finding.location.path for finding in conversion.left} == {"a.py"}


def test_a_rule_that_crashes_costs_only_its_file(convert) -> None:  # type: ignore[no-untyped-def]
    class Crashing:
        code = "NP777"

        def check(self) -> None:
            raise ZeroDivisionError("boom")

    def checker(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:
        if source.path == "a.py":
            Crashing().check()
        return replacing({"old": "new"})(source, project, settings)

    conversion = convert(checker, python("old\n"), python("old\n", "b.py"))
    assert [file.text for file in conversion.files] == ["old\n", "new\n"]
    (failure,) = conversion.failures
    assert (failure.path, failure.rule, failure.message) == ("a.py", "NP777", "ZeroDivisionError: boom")


def test_words_left_without_a_finding_are_unexplained(convert) -> None:  # type: ignore[no-untyped-def]
    conversion = convert(replacing({"nccl": None}), python("nccl\ncudnn\n"))
    assert [(word.line, word.word) for word in conversion.unexplained] == [(2, "cudnn")]


def test_the_line_of_a_change_is_that_of_the_original(convert) -> None:  # type: ignore[no-untyped-def]
    def checker(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:
        found = replacing({"old": "later"})(source, project, settings)
        if "later" in source.text:
            found += replacing({"later": "new"})(source, project, settings)
        elif "import added" not in source.text:
            fix = Fix((Edit(0, 0, "import added\n"),), Applicability.SAFE)
            found.append(finding_at(source, 0, 0, "NP109", fix))
        return found

    (file,) = convert(checker, python("x = 1\ny = old\n")).files
    assert file.text == "import added\nx = 1\ny = new\n"
    assert [(change.line, change.before, change.after) for change in file.changes] == [
        (1, "", "import added\n"),
        (2, "y = old\n", "y = later\n"),
        (2, "y = later\n", "y = new\n"),
    ]


def test_many_files_in_several_processes_give_the_same_result_as_in_one() -> None:
    text = 'import torch\nx = torch.zeros(3, device="cuda")\n' + "# filler\n" * 1000
    files = [python(text, f"m{number:02}.py") for number in range(60)]
    one, several = convert_files(files, SETTINGS, jobs=1), convert_files(files, SETTINGS, jobs=2)
    assert len(one.changed) == 60
    assert (one.files, one.left, one.failures) == (several.files, several.left, several.failures)
