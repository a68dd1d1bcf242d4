"""Attention as public code spells it: each form is found, and put into one call or left for the reason it tells.

A line ``# Left:`` of a fragment gives the reason. test_fragments.py proves the calls for the target "npu".
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from npuport.findings import Claim, Finding, Outcome
from npuport.proof import prove
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project

FRAGMENTS = sorted(Path(__file__).parent.glob("fragments/attention_*.py"))
LOOK_ALIKES = sorted(Path(__file__).parent.glob("fragments/alike_attention_*.py"))
CODES = {"NP641", "NP651", "NP652"}
LEFT = re.compile(r"^# Left: (.*)$", re.MULTILINE)


def found(text: str, target: str = "npu") -> list[Finding]:
    source = SourceFile("model.py", FileKind.PYTHON, text)
    every = check_file(source, Project([source]), Settings(fuse=True, target=target))
    return [finding for finding in every if finding.code in CODES]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FRAGMENTS])
def test_each_form_is_found_and_rewritten_or_left_for_its_reason(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Form: ") and "Origin: " in text
    findings = found(text)
    assert findings, "not found"
    left = LEFT.search(text)
    for finding in findings:
        assert (finding.fix is None) == (left is not None), finding.message
        assert finding.fix is None or finding.fix.claim is not None
        assert left is None or left[1] in finding.message


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in LOOK_ALIKES])
def test_no_look_alike_is_found(path: Path) -> None:
    assert [finding.message for finding in found(path.read_text(encoding="utf-8"))] == []


WRONG = {  # a fragment, and what is changed in the call that would be put in
    "flash_llama": ("sparse_mode=3", "sparse_mode=2"),
    "flash_window": ("pre_tockens=2", "pre_tockens=3"),
    "flash_kvpacked": ("scale=q.shape[-1] ** (-0.5)", "scale=1.0"),
    "flash_qwen_vl": ("actual_seq_kvlen=ends", "actual_seq_kvlen=[4, 5, 12]"),
    "xformers_llama": ("sparse_mode=2", "sparse_mode=3"),
    "bert_bool": ("attn_mask=~mask", "attn_mask=mask"),
    "timm": ("scale=1.0", "scale=None"),
}


def claims_made_wrong() -> dict[str, Claim]:
    made = {}
    for name, (right, wrong) in WRONG.items():
        path = next(one for one in FRAGMENTS if one.stem == f"attention_{name}")
        fix = found(path.read_text(encoding="utf-8"))[-1].fix
        assert fix is not None and fix.claim is not None and right in fix.claim.after, (name, fix)
        made[name] = replace(fix.claim, after=fix.claim.after.replace(right, wrong))
    return made


def claims_for_every_device() -> dict[str, Claim]:
    return {
        f"{path.stem}: {finding.location}": finding.fix.claim
        for path in FRAGMENTS
        for finding in found(path.read_text(encoding="utf-8"), target="agnostic")
        if finding.fix is not None and finding.fix.claim is not None and finding.code != "NP641"
    }


@pytest.mark.sim
def test_calls_of_libraries_are_proved_for_every_device_and_wrong_ones_withheld() -> None:
    right, wrong = claims_for_every_device(), claims_made_wrong()
    assert len(right) >= 5
    verdicts = dict(zip([*right, *wrong], prove([*right.values(), *wrong.values()]), strict=True))
    outcomes = {name: verdict.outcome for name, verdict in verdicts.items()}
    assert outcomes == dict.fromkeys(right, Outcome.PROVED) | dict.fromkeys(wrong, Outcome.WITHHELD), verdicts
