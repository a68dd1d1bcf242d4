"""Every sentence of the command line has a Chinese translation with the same placeholders, and none is left over."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path
from typing import get_args

import pytest

import npuport
from npuport.cli.check_config import QUANTITIES
from npuport.cli.data_check import MEANINGS
from npuport.errors import UserError
from npuport.facts import all_config_checks, all_environment_checks, all_package_faults, all_preflight_checks
from npuport.findings import Applicability
from npuport.guidance.judging import Purpose
from npuport.llm.planning.activations import head_activations, layer_activations
from npuport.llm.planning.layout import FRAMEWORKS, Job, Layout, framework
from npuport.llm.planning.memory import Moment, estimate
from npuport.llm.planning.model import Model
from npuport.performance.step_split import Part
from npuport.report.chinese import SENTENCES
from npuport.report.groups import Group
from npuport.report.language import language, translate, translate_error

PACKAGE = Path(npuport.__file__).parent
SPEAKING = (
    "cli",
    "report",
    "source",
    "analysis",
    "conversion",
    "sim",
    "environment",
    "precision",
    "performance",
    "llm",
    "export",
    "guidance",
)
IN_TEMPLATE = re.compile(r"""\b(?:t|head)\((["'])(.+?)\1|\bcounted\([^"]*"([^"]+)"\)""")
CALLS = {"translate", "say", "UserError", "InputError", "OutputError", "Refused"}
MADE_ELSEWHERE = {"{message}.", "{problem}\n  {next_step}"}  # their words come from other packages


def sentences() -> set[str]:
    found = {group.value for group in Group} | {f"{level.value} fix" for level in Applicability} | {"no fix"}
    for package in SPEAKING:
        for path in (PACKAGE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and node.args and getattr(node.func, "id", "") in CALLS:
                    first = node.args[0]
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        found.add(first.value)
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "counted":
                    noun = ast.literal_eval(node.args[1])
                    found |= {f"{{number}} {noun}", f"{{number}} {noun}s"}
    for path in (PACKAGE / "report" / "templates").glob("*.j2"):
        for _, sentence, noun in IN_TEMPLATE.findall(path.read_text(encoding="utf-8")):
            found |= {sentence} if sentence else {f"{{number}} {noun}", f"{{number}} {noun}s"}
    found |= {part.value for part in Part} | names_of_memory()
    found |= {entry.why for entry in all_environment_checks()}
    found |= {text for fault in all_package_faults() for text in (fault.cause, fault.fix)}
    found |= {text for check in all_preflight_checks() for text in (check.why, check.next_step)}
    found |= {check.next_step for check in all_config_checks()} | set(QUANTITIES.values()) | set(MEANINGS.values())
    found |= set(get_args(Purpose)) - {"unknown"}
    return found - MADE_ELSEWHERE


def names_of_memory() -> set[str]:
    """The parts, terms and moments of `npuport plan`."""
    model, offered = Model(1, 8, 1, 1, 8, 8, 8), framework("deepspeed")
    parts = estimate(model, Job(1, 1, 8, 1), Layout(1, 1, 1, 1, 1, 0, "none", 1, 1), offered).parts
    policies = [framework(name).policy for name in FRAMEWORKS]
    terms = {name for one in policies for name in layer_activations(model, one, "none", 8, 1)}
    terms |= {name for one in policies for name in head_activations(model, one.kernels)}
    full = layer_activations(model, policies[0], "full", 8, 1)
    return {*parts, *terms, *full, *(moment.value for moment in Moment)}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_sentence_is_translated_and_none_is_left_over() -> None:
    assert sentences() == set(SENTENCES)


@pytest.mark.parametrize("english", sorted(SENTENCES))
def test_placeholders_agree(english: str) -> None:
    assert placeholders(SENTENCES[english]) == placeholders(english)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "en_US"}, "zh"),
        ({"LC_ALL": "", "LANG": "zh_CN"}, "zh"),
        ({"NPUPORT_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"NPUPORT_LANG": "zh", "LC_ALL": "C"}, "zh"),
    ],
)
def test_language(variables: dict[str, str], expected: str) -> None:
    assert language(variables) == expected


def test_errors_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    error = UserError("{path} does not exist. Check the path.", path="x")
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    assert translate_error(error) == "x 不存在。请检查路径。"
    assert str(error) == "x does not exist. Check the path."
    assert translate("no such sentence {a}", a=1) == "no such sentence 1"
