"""What the patterns hand on to whoever rewrites the code: the region, and what is what in it."""

from __future__ import annotations

import ast
import gc

import pytest

from npuport.conversion.rounds import convert_files
from npuport.facts import all_fused_operators, custom_operator
from npuport.findings import Finding
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\n"


def source_of(text: str) -> SourceFile:
    return SourceFile("model.py", FileKind.PYTHON, text)


def found(text: str, code: str, settings: Settings | None = None) -> list[Finding]:
    source = source_of(HEAD + text)
    every = check_file(source, Project([source]), settings or Settings())
    return [finding for finding in every if finding.code == code]


ATTENTION = """
def attend(self, q, k, v, mask, bias):
    scores = q @ k.transpose(-2, -1)
    scores = scores / math.sqrt(64)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    scores = F.softmax(scores, dim=-1)
    scores = F.dropout(scores, p=0.1, training=self.training)
    return scores @ v
"""


def test_roles_and_region_of_attention() -> None:
    (finding,) = found(ATTENTION, "NP641")
    assert {role: finding.evidence[role] for role in ("query", "key", "value", "scale", "mask", "bias", "dropout")} == {
        "query": "q",
        "key": "k",
        "value": "v",
        "scale": "math.sqrt(64)",
        "mask": "mask == 0",
        "bias": "bias",
        "dropout": "0.1",
    }
    lines = (HEAD + ATTENTION).split("\n")
    assert lines[finding.location.line - 1].strip() == "scores = q @ k.transpose(-2, -1)"
    assert lines[finding.location.end_line - 1].strip() == "return scores @ v"


def test_one_attention_with_two_softmaxes_is_one() -> None:
    text = """
def attend(self, q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) * 0.125
    if self.upcast:
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    else:
        weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights, v)
"""
    assert len(found(text, "NP641")) == 1


def test_a_name_given_anew_is_another_value() -> None:
    text = """
def attend(q, k, v, other):
    scores = q @ k
    scores = other
    return F.softmax(scores, dim=-1) @ v
"""
    assert found(text, "NP641") == []


def test_a_branch_that_returns_gives_nothing_to_what_follows() -> None:
    text = """
def attend(q, k, v, other, early):
    scores = other
    if early:
        scores = q @ k
        return scores
    return F.softmax(scores, dim=-1) @ v
"""
    assert found(text, "NP641") == []


def test_names_of_other_frameworks_and_own_functions_are_not_torch() -> None:
    text = """
from numpy import matmul

def attend(q, k, v):
    return matmul(F.softmax(matmul(q, k), dim=-1), v)
"""
    assert found(text, "NP641") == []


def test_an_imported_name_is_followed() -> None:
    text = """
import torch as t
from torch import matmul
from torch.nn.functional import softmax

def attend(q, k, v):
    weights = softmax(matmul(q, k), -1)
    return t.bmm(weights, v)
"""
    assert len(found(text, "NP641")) == 1


def test_roles_of_a_rotary_embedding() -> None:
    text = """
def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)

def turn(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
"""
    (finding,) = found(text, "NP644")
    assert (finding.evidence["cos"], finding.evidence["sin"], finding.evidence["tensors"]) == ("cos", "sin", 2)


def test_an_operator_that_this_torch_lacks_is_not_named() -> None:
    text = "\ndef norm(x, w):\n    return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))\n"
    assert found(text, "NP643", Settings(torch_version="2.1.0"))
    assert not found(text, "NP643", Settings(torch_version="2.0.1"))


def test_gelu_is_for_the_chips_that_the_documents_of_its_operators_name() -> None:
    quick = "\ndef quick(x):\n    return x * torch.sigmoid(1.702 * x)\n"
    exact = "\ndef gelu(x):\n    return 0.5 * x * (1 + torch.erf(x / 2**0.5))\n"
    chips = ("Ascend910A", "Ascend310P3", "Ascend910B3", "Ascend910_9391")
    assert [bool(found(quick, "NP648", Settings(chip=chip))) for chip in chips] == [False, False, True, True]
    assert [bool(found(exact, "NP648", Settings(chip=chip))) for chip in chips] == [True, True, True, False]


def test_conversions_leave_these_rules_out_and_their_suppressions_alone() -> None:
    assert found(ATTENTION, "NP641", Settings(edits_only=True)) == []
    line = "    scores = F.softmax(scores, dim=-1)"
    text = HEAD + ATTENTION.replace(line, f"{line}  # npuport: ignore[NP641] known")
    done = convert_files([source_of(text)], Settings(), jobs=1)
    assert done.files[0].text == text
    assert found(text.removeprefix(HEAD), "NP641") == []


def test_fused_operators_are_operators_of_torch_npu() -> None:
    for operator in all_fused_operators():
        assert operator.limits
        if operator.name.startswith("npu_"):
            assert custom_operator(operator.name) is not None, operator.name


def test_functions_that_were_followed_leave_memory_with_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and their uses point at each other; uncut, they kept the expressions of thousands of files."""

    def calls() -> int:
        return sum(type(one) is ast.Call for one in gc.get_objects())

    code = "import torch\n\ndef f(x, w):\n    return torch.nn.functional.silu(x @ w) * (x @ w)\n"
    files = [SourceFile(f"m{number}.py", FileKind.PYTHON, code) for number in range(40)]
    monkeypatch.setattr("npuport.source.project._KEPT", 2 * len(code))
    project = Project(files)
    gc.collect()
    gc.disable()
    try:
        before = calls()
        for file in files:
            check_file(file, project, Settings())
        assert 0 < calls() - before <= 10
    finally:
        gc.enable()
