"""The fragments of docs/fused.md: every form is found, no look-alike is rewritten, and the page says what happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from npuport.conversion.rounds import convert_files
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import fragment_table
from fragment_table import Row


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return fragment_table.rows()


def test_every_form_is_found(rows: list[Row]) -> None:
    forms = [row for row in rows if row.is_form]
    missed = [row.file for row in forms if not row.codes]
    assert len(forms) >= 50
    assert missed == []


def test_most_forms_are_rewritten_after_a_proof_and_the_others_say_why_not(rows: list[Row]) -> None:
    forms = [row for row in rows if row.is_form]
    assert sum(row.rewritten for row in forms) >= 0.85 * len(forms)
    assert [row.file for row in forms if not row.rewritten and not row.reason] == []
    assert [row.file for row in rows if row.rewritten and not row.verdicts] == []


def test_no_look_alike_is_rewritten(rows: list[Row]) -> None:
    alike = [row for row in rows if not row.is_form]
    assert len(alike) >= 20
    assert [row.file for row in alike if row.rewritten] == []


def test_what_looks_like_rms_norm_is_withheld_with_the_difference(rows: list[Row]) -> None:
    found = {row.file: row.reason for row in rows}
    assert found["alike_eps_outside"].startswith("it is not equal: the result differs by")
    assert found["alike_detached"].startswith("it is not equal: the gradient of x differs by")


def test_the_page_shows_these_results(rows: list[Row]) -> None:
    shown = fragment_table.outcomes(fragment_table.PAGE.read_text(encoding="utf-8"))
    assert shown == {row.what.replace("|", "\\|"): row.outcome for row in rows}, "run tools/fragment_table.py --write"


CALLS = {
    "norm_timm": "rms_norm(torch.randn(2, 3, 8), torch.randn(8))",
    "norm_root": "norm(torch.randn(2, 3, 8), torch.randn(8))",
    "rope_llama": "apply_rotary_pos_emb(*torch.randn(2, 2, 3, 5, 8), *torch.randn(2, 2, 5, 8))[1]",
    "rope_pairs": "apply_rotary(torch.randn(2, 3, 5, 8), *torch.randn(2, 1, 1, 5, 4))",
    "swiglu_glm": "swiglu(torch.randn(2, 8))",
    "softmax_zero": "attention_weights(torch.randn(2, 5, 8), torch.ones(5, 8).tril(4))",
}
RUN = """
import sys, torch
calls, texts = eval(sys.stdin.read())
for name, call in calls.items():
    given = []
    for text in texts[name]:
        names = {}
        exec(text, names)
        torch.manual_seed(0)
        given.append(eval(call, names))
    assert torch.equal(*given), name
print(len(calls))
"""


def test_for_target_agnostic_a_cpu_computes_the_same_bits_and_needs_no_torch_npu() -> None:
    sources = [
        SourceFile(f"{name}.py", FileKind.PYTHON, (fragment_table.FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        for name in CALLS
    ]
    done = convert_files(sources, Settings(target="agnostic"), unsafe=True, jobs=1)
    texts = {file.source.path.removesuffix(".py"): (file.source.text, file.text) for file in done.files}
    for old, new in texts.values():
        assert new != old
        assert "import torch_npu" not in new
    child = subprocess.run(
        [sys.executable, "-c", RUN],
        input=repr((CALLS, texts)),
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.stdout.strip() == str(len(CALLS)), child.stderr
