"""`npuport data inspect`: what was packed is shown as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

Npuport = Callable[..., int]
ROLES = ("--role", "user=100", "--role", "assistant=101", "--end-of-turn", "99")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "dialogues.jsonl"
    rows = [[("user", [11, 12]), ("assistant", [14, 15])], [("user", [1]), ("assistant", [2])]]
    with path.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps({"messages": [{"role": role, "content": ids} for role, ids in row]}) + "\n")
    return path


@pytest.mark.parametrize("form", ["arrow", "pt", "megatron"])
def test_each_dialogue_is_shown_with_its_bounds_and_what_is_learned(
    form: str, source: Path, tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    if form == "pt":
        pytest.importorskip("torch")
    out = tmp_path / "packed"
    options = ("--for", "fine-tuning", "--max-length", 16, "--format", form, *ROLES)
    assert npuport("data", "pack", source, "-o", out, *options) == 0
    capsys.readouterr()
    file = out / "packed_packed_labels_document.bin" if form == "megatron" else out
    assert npuport("data", "inspect", file) == 0
    shown = capsys.readouterr().out
    record, positions = (", record {}", " · positions {}") if form != "megatron" else ("", "")
    assert shown.splitlines() == [
        "sample 0",
        f"  sequence 1{record.format(0)} · tokens 0-7{positions.format('0-7')} · 3 in the loss",
        "    100 11 12 99 101 [14 15 99]",
        f"  sequence 2{record.format(1)} · tokens 8-13{positions.format('0-5')} · 2 in the loss",
        "    100 1 99 101 [2 99]",
        f"  padding · tokens 14-15{positions.format('0-1')} · 0 in the loss",
        "In the loss: [like this].",
    ]


def test_of_documents_only_the_very_first_token_is_not_learned(
    tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "ids.jsonl", tmp_path / "packed"
    source.write_text('{"text": [1, 2, 3]}\n{"text": [4]}\n', encoding="utf-8")
    options = ("--for", "pretraining", "--max-length", 4, "--end-of-document", 0)
    assert npuport("data", "pack", source, "-o", out, *options) == 0
    assert "in the loss: 5 tokens" in capsys.readouterr().out
    assert npuport("data", "inspect", out, "--number", 2) == 0
    assert capsys.readouterr().out.splitlines()[2::3] == ["    1 [2 3 0]", "    [4 0]"]


def test_documents_for_megatron_are_shown_whole(
    tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "ids.jsonl", tmp_path / "packed"
    source.write_text('{"text": [1, 2, 3]}\n{"text": [4]}\n', encoding="utf-8")
    options = ("--for", "pretraining", "--max-length", 4, "--end-of-document", 0, "--format", "megatron")
    assert npuport("data", "pack", source, "-o", out, *options) == 0
    capsys.readouterr()
    assert npuport("data", "inspect", out, "--first", 1) == 0
    assert "    [4 0]" in capsys.readouterr().out.splitlines()


def test_what_is_not_there_is_named(
    source: Path, tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "packed"
    assert npuport("data", "pack", source, "-o", out, "--for", "fine-tuning", "--max-length", 16, *ROLES) == 0
    assert npuport("data", "inspect", out, "--first", 3) == 2
    assert "there is no sample 3: the last is 0" in capsys.readouterr().err
    assert npuport("data", "inspect", source) == 2
    assert "holds no samples" in capsys.readouterr().err
