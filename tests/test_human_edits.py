"""What tools/human_edits.py takes for an edit of devices in a commit, and where a finding would speak of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from human_edits import HumanEdit, Span, human_edits, modified

BEFORE = """\
import torch
from .tests import is_xpu_available


def seed(value):
    torch.manual_seed(value)
    torch.cuda.manual_seed_all(value)


def free(size):
    # frees CUDA memory
    if is_xpu_available():
        torch.xpu.empty_cache()
    else:
        torch.cuda.empty_cache()
    return size + 1
"""
AFTER = """\
import torch
from .tests import is_npu_available, is_xpu_available


def seed(value):
    torch.manual_seed(value)
    torch.npu.manual_seed_all(value)


def free(size):
    # frees NPU memory
    if is_xpu_available():
        torch.xpu.empty_cache()
    elif is_npu_available():
        torch.npu.empty_cache()
    else:
        torch.cuda.empty_cache()
    return size + 2
"""


def _git(folder: Path, *arguments: str) -> str:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    _git(folder, "init", "-q")
    (folder / "tests").mkdir()
    for text in (BEFORE, AFTER):
        (folder / "run.py").write_text(text)
        (folder / "tests" / "test_run.py").write_text(text)
        (folder / "README.md").write_text(text)
        _git(folder, "add", "-A")
        _git(folder, "commit", "-q", "-m", "change")
    return folder / ".git"


@pytest.fixture(scope="module")
def edits(repository: Path) -> list[HumanEdit]:
    return list(human_edits(repository, "HEAD", "run.py"))


def test_tests_and_documentation_are_left_out(repository: Path) -> None:
    assert modified(repository, "HEAD") == ["run.py"]


def test_statements_of_devices_are_edits_and_others_are_none(edits: list[HumanEdit]) -> None:
    assert [(edit.place, edit.plumbing) for edit in edits] == [
        (Span(2, 2), True),  # the import of the project's own test
        (Span(7, 7), False),
        (Span(13, 13), False),  # the new branch; neither the comment nor the other return
    ]


def test_a_branch_put_in_is_spoken_of_by_what_is_said_in_its_chain(edits: list[HumanEdit]) -> None:
    branch = edits[2]
    assert branch.inserted
    assert any(around.overlaps(Span(15, 15)) for around in branch.around)  # torch.cuda.empty_cache()
    assert not any(around.overlaps(Span(7, 7)) for around in branch.around)  # another function
