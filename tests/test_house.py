"""The house stays in order: code, command line, rules, documents and configuration agree with one another."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RULE_DOCUMENTS = sorted((ROOT / "tests" / "rules").glob("*.md"))


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_packages_import_one_another_only_in_the_allowed_direction() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_changelog_knows_this_version() -> None:
    from npuport import __version__

    headings = re.findall(r"^## (.+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased" or headings[0].startswith(__version__), "the newest section comes first"


def test_the_makefile_installs_the_versions_that_pyproject_names() -> None:
    def pins(path: str) -> set[str]:
        return set(re.findall(r"\btorch(?:-npu)?==[\d.]+", text_of(path)))

    assert len(pins("pyproject.toml")) == 2
    assert pins("Makefile") == pins("pyproject.toml")


def test_both_readmes_show_the_same_commands() -> None:
    def blocks(path: str) -> list[str]:
        return re.findall(r"^```\w*\n(.*?)^```", text_of(path), re.MULTILINE | re.DOTALL)

    assert blocks("README.md")
    assert blocks("README.zh.md") == blocks("README.md")


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_between_documents_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)", text_of(page))
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert not missing


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w-]+\.md)$", text_of("mkdocs.yml"), re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")}
