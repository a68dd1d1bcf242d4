"""What in a requirements file clashes with an NPU, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuport.environment.plan.requirements import clashes, read_requirements
from npuport.errors import UserError


def said(text: str, folder: Path) -> list[str]:
    path = folder / "requirements.txt"
    path.write_text(text)
    found = clashes(read_requirements(path))
    return [f"{one.code} {one.seen} {one.fix}".replace(f"{path}:", "") for one in found]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("torch==2.5.1\n", "ND302", "torch-npu==2.5.1.post1"),
        ("torch==2.5.0\n", "ND302", "No torch_npu is published"),
        ("torch==2.12.0\ntorch_npu==2.8.0.post2\n", "ND303", "2 torch_npu==2.8.0.post2 is built for torch 2.8.0"),
        ("torch==2.5.1\ntorch-npu==2.5.1.post9\n", "ND305", "Published are: 2.5.1.post1, 2.5.1"),
        ("torch==2.5.1+cu124\n", "ND306", "torch==2.5.1+cpu"),
        ("--extra-index-url https://download.pytorch.org/whl/cu121\n", "ND306", "whl/cpu"),
        (
            "torch==2.5.1\ntorch-npu==2.5.1\nnumpy>=2\n",
            "ND308",
            "3 numpy>=2, and torch_npu 2.5.1 goes with CANN 8.1.RC1",
        ),
        ("torch==2.5.1\ntorchvision==0.19.0\n", "ND310", "torchvision==0.20.1"),
        ("xformers\n", "ND314", "npu_fusion_attention"),
        ("nvidia-cudnn-cu12==9.1\n", "ND314", "Take the line out"),
        ("transformers==4.48.0\n", "ND315", "4.48.1"),
        ("torch==2.1.0\ntransformers==4.51.0\n", "ND315", "torch 2.5.1 or later"),
        ("torch>=2.0\n", "ND325", "Hold torch at the version of torch_npu: torch=="),
    ],
)
def test_a_clash_names_its_line_and_what_to_write(text: str, code: str, says: str, tmp_path: Path) -> None:
    found = [one.replace("  ", " ") for one in said(text, tmp_path) if one.startswith(code)]
    assert any(says in one.replace(":", "") or says in one for one in found), said(text, tmp_path)


def test_a_list_that_fits_has_no_clash(tmp_path: Path) -> None:
    text = (
        "# for the NPU\n--index-url https://download.pytorch.org/whl/cpu\ntorch==2.5.1 # held\ntorch-npu==2.5.1.post1\n"
        "torchvision==0.20.1\nnumpy<2\ntransformers==4.51.3\n./local\ngit+https://example.org/x.git\n"
        "accelerate>=1 --hash=sha256:00\n"
    )
    assert said(text, tmp_path) == []


def test_lists_may_name_lists_and_even_themselves(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("-r requirements.txt\nxformers\n")
    (one,) = said("-r base.txt\n", tmp_path)
    assert "base.txt:2: xformers is written for CUDA" in one


@pytest.mark.parametrize("text", ["torch 2.5\n", "-r missing.txt\n"])
def test_a_list_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"requirements.txt:1 is no requirement|missing.txt could not be read"):
        said(text, tmp_path)
