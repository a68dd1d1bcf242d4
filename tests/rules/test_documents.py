"""Every rule has a document in this folder, and every block of it holds."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import pytest
from documents import Case, Document, read

from npuport.conversion.rounds import convert_files
from npuport.findings import Finding
from npuport.rules.engine import all_rules, check_file
from npuport.rules.files import FILE_RULES
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.kinds import kind_by_name
from npuport.source.project import Project

FOLDER = Path(__file__).parent
DOCUMENTS = [read(path) for path in sorted(FOLDER.glob("NP*.md"))]
# Findings that the engine makes itself, without a rule class.
OF_THE_ENGINE = {
    "NP001": "entry-point-without-import",
    "NP613": "wait-in-run",
    "NP614": "shapes-change-in-run",
    "NP900": "unparsable-python",
    "NP901": "cuda-in-text",
    "NP902": "cuda-in-own-name",
    "NP903": "cuda-outside-python",
    "NP990": "unused-suppression",
}
FROM_A_RUN = {"NP613", "NP614"}  # tests/analysis/test_findings_of_a_run.py shows them
NAMES = {rule.code: rule.name for rule in all_rules()} | {rule.code: rule.name for rule in FILE_RULES} | OF_THE_ENGINE


def _sources(files: dict[str, str]) -> list[SourceFile]:
    return [SourceFile(path, kind_by_name(path) or FileKind.TEXT, text) for path, text in files.items()]


def _settings(case: Case) -> Settings:
    asked = {"target": case.options.get("target"), "torch_version": case.options.get("torch")}
    asked |= {name: case.options.get(name) for name in ("chip", "apex")}
    return Settings(**{key: value for key, value in asked.items() if value is not None})


def _converted(files: dict[str, str], case: Case) -> dict[str, str]:
    done = convert_files(_sources(files), _settings(case), case.options.get("unsafe") == "true", jobs=1)
    assert not done.failures, "\n".join(f"{one.path}: {one.rule}: {one.message}\n{one.detail}" for one in done.failures)
    return {file.source.path: file.text for file in done.files}


def _findings(document: Document, case: Case) -> list[Finding]:
    """Findings of the document's rule in the files of the case, without those beside it."""
    sources = _sources(case.files | case.beside)
    project = Project(sources)
    found = [
        finding
        for source in sources
        if source.path in case.files
        for finding in check_file(source, project, _settings(case))
        if finding.code == document.code
    ]
    wrong = {finding.name for finding in found} - {document.name}
    assert not wrong, f"{document.code} calls itself {wrong}"
    return found


def _difference(wanted: str, got: str, path: str) -> str:
    lines = difflib.unified_diff(
        wanted.splitlines(keepends=True), got.splitlines(keepends=True), f"{path} as documented", f"{path} as converted"
    )
    return "".join(lines)


def _assert_same(wanted: dict[str, str], got: dict[str, str], why: str) -> None:
    differing = [path for path in wanted if wanted[path] != got[path]]
    assert not differing, why + "\n" + "".join(_difference(wanted[path], got[path], path) for path in differing)


def _check(document: Document, case: Case) -> None:
    found = _findings(document, case)
    files = case.files | case.beside
    if case.kind == "noop":
        shown = "\n".join(f"{finding.location} {finding.message}" for finding in found)
        assert not found, f"{document.code} should say nothing here, but says:\n{shown}"
        _assert_same(files, _converted(files, case), "nothing here should change:")
        return
    assert found, f"{document.code} does not see this"
    if case.kind == "report":
        wanted = case.options.get("severity")
        severities = {finding.severity.value for finding in found}
        assert wanted is None or wanted in severities, f"severity is {severities}"
        says = case.options.get("says", "")
        assert any(says in finding.message for finding in found), [finding.message for finding in found]
        _assert_same(files, _converted(files, case), "this is for people to change, not for us:")
        return
    once = _converted(files, case)
    _assert_same(case.files | case.beside | case.after, once, "converted otherwise than documented:")
    for path, text in once.items():
        if path.endswith(".py"):
            ast.parse(text, path)
    _assert_same(once, _converted(once, case), "a second conversion changes it again:")


CASES = [
    pytest.param(document, case, id=f"{document.code}-{case.kind}-line{case.line}")
    for document in DOCUMENTS
    for case in document.cases
]


@pytest.mark.parametrize(("document", "case"), CASES)
def test_block(document: Document, case: Case) -> None:
    _check(document, case)


@pytest.mark.parametrize("code", sorted(NAMES))
def test_every_rule_has_a_document(code: str) -> None:
    found = [document for document in DOCUMENTS if document.code == code]
    assert len(found) == 1, f"write tests/rules/{code}-{NAMES[code]}.md"
    assert (found[0].name, found[0].path.stem) == (NAMES[code], f"{code}-{NAMES[code]}")


@pytest.mark.parametrize("document", [pytest.param(document, id=document.path.stem) for document in DOCUMENTS])
def test_a_document_shows_what_is_found_and_what_is_left_alone(document: Document) -> None:
    assert document.code in NAMES, f"there is no rule {document.code}"
    kinds = {case.kind for case in document.cases}
    assert "noop" in kinds, "a rule without a case that it leaves alone is not tested where it can do harm"
    if document.code not in FROM_A_RUN:
        assert kinds & {"before", "report"}, "nothing shows what the rule finds"
