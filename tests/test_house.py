"""The house stays in order: code, command line, rules, documents and configuration agree with one another."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

ROOT = Path(__file__).resolve().parents[1]
RULE_CODE = re.compile(r"\bNP\d{3}\b")


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
    def shown(path: str) -> list[str]:
        blocks = re.findall(r"^```\w*\n(.*?)^```", text_of(path), re.MULTILINE | re.DOTALL)
        lines = re.findall(r"^(?:\$ )?((?:pip|npuport|make) [^#\n]+)", "\n".join(blocks), re.MULTILINE)
        return [line.strip() for line in lines]

    assert shown("README.md")
    assert shown("README.zh.md") == shown("README.md")


@pytest.mark.parametrize(("page", "language"), [("README.md", "en"), ("README.zh.md", "zh")])
def test_the_output_in_the_readmes_is_what_the_program_prints(page: str, language: str) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "readme.py"))
    assert len(tool["COMMAND"].findall(text_of(page))) == 2
    assert text_of(page) == tool["refreshed"](text_of(page), language), "run `python tools/readme.py`"


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_between_documents_lead_somewhere(page: str) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)", text_of(page))
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert not missing


def test_no_two_tests_are_called_alike() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in ("conftest.py", "__init__.py")]
    assert len(names) == len(set(names)), sorted(name for name in set(names) if names.count(name) > 1)


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w-]+\.md)$", text_of("mkdocs.yml"), re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")}


def commands() -> dict[str, click.Command]:
    from npuport.cli.app import app

    return dict(_leaves(typer.main.get_command(app), ""))


def _leaves(group: click.Command, before: str) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group and of the groups in it, by their words."""
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from _leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def options_of(command: click.Command) -> list[str]:
    names = (name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts))
    return [name for name in names if name.startswith("--")]


@pytest.mark.parametrize("name", commands())
def test_every_command_and_option_has_help(name: str) -> None:
    command = commands()[name]
    assert command.help
    silent = [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]
    assert not silent


@pytest.mark.parametrize("name", commands())
def test_every_command_and_option_is_documented(name: str) -> None:
    section = re.search(rf"^## npuport {name}$(.*?)(?=^## |\Z)", text_of("docs/commands.md"), re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/commands.md has no section `## npuport {name}`"
    missing = [option for option in options_of(commands()[name]) if option not in section[1]]
    assert not missing


def test_the_documentation_names_no_option_that_does_not_exist() -> None:
    known = {option for command in commands().values() for option in options_of(command)} | {"--version", "--help"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text_of("docs/commands.md")))
    # Options of other programs, in examples.
    assert named - known <= {"--epochs", "--nproc-per-node"}


def test_every_rule_has_a_document_and_every_document_a_rule() -> None:
    in_code = {
        code
        for folder in ("rules", "analysis")
        for path in (ROOT / "src/npuport" / folder).rglob("*.py")
        for code in RULE_CODE.findall(path.read_text())
    }
    documented = {path.name[:5] for path in (ROOT / "tests/rules").glob("NP*.md")}
    assert documented
    assert documented == in_code - {"NP000"}


def test_documents_name_only_rules_that_exist() -> None:
    documented = {path.name[:5] for path in (ROOT / "tests/rules").glob("NP*.md")}
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "README.zh.md"]
    named = {code for page in pages for code in RULE_CODE.findall(page.read_text(encoding="utf-8"))}
    assert named <= documented


def test_the_hooks_for_pre_commit_call_commands_that_exist() -> None:
    entries = re.findall(r"^  entry: npuport (.+)$", text_of(".pre-commit-hooks.yaml"), re.MULTILINE)
    assert len(entries) == 2
    for entry in entries:
        code = f"from npuport.cli import main; import sys; sys.argv = {['npuport', *entry.split(), '--help']}; main()"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr


def test_the_wheel_carries_everything_and_no_tests(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name}
    documents = {f"npuport/rules/documents/{path.name}" for path in (ROOT / "tests/rules").glob("*.md")}
    assert {name for name in packed if ".dist-info/" not in name} == files | documents


def test_the_page_on_targets_shows_what_conversion_really_does() -> None:
    page = text_of("docs/targets.md")
    before, after = (
        re.search(rf'^```python title="{title}"\n(.*?)^```', page, re.M | re.S) for title in ("Before", "After")
    )
    assert before is not None
    assert after is not None
    argv = [sys.executable, "-c", "from npuport.cli import main; main()", "convert", "-"]
    run = subprocess.run(argv, input=before[1], capture_output=True, text=True, check=False)
    assert run.stdout == after[1]


def test_the_page_on_the_simulated_npu_lists_every_chip_whose_memory_is_known() -> None:
    from npuport.facts import all_chips

    rows = dict(re.findall(r"^\| (Ascend\S+).*? \| (\d+) \|$", text_of("docs/simulated-npu.md"), re.MULTILINE))
    assert rows == {chip.name: str(chip.memory_gib) for chip in all_chips() if chip.memory_gib is not None}
