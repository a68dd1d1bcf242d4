"""`npuport data pack`: files in, files out that others read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet  # noqa: E402

from npuport.llm.packing import megatron  # noqa: E402

Npuport = Callable[..., int]
ROLES = ("--role", "user=100", "--role", "assistant=101", "--end-of-turn", "99")
DIALOGUES = [
    [("user", [1, 2, 3]), ("assistant", [4, 5]), ("user", [6]), ("assistant", [7, 8])],
    [("user", [11, 12]), ("assistant", [14, 15])],
    [("user", [1])],
    [],
    [("user", [21] * 8), ("assistant", [22] * 12)],
]
FIRST = [100, 1, 2, 3, 99, 101, 4, 5, 99, 100, 6, 99, 101, 7, 8, 99]
FIRST_LABELS = [-100] * 6 + [4, 5, 99] + [-100] * 4 + [7, 8, 99]


@pytest.fixture
def dialogues(tmp_path: Path) -> Path:
    path = tmp_path / "dialogues.jsonl"
    rows = [{"messages": [{"role": role, "content": ids} for role, ids in one]} for one in DIALOGUES]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def fine_tuning(form: str, source: Path, output: Path) -> list[object]:
    return ["data", "pack", source, "-o", output, "--for", "fine-tuning", "--max-length", 16, "--format", form, *ROLES]


def test_arrow_is_read_back_by_datasets(dialogues: Path, tmp_path: Path, npuport: Npuport) -> None:
    datasets = pytest.importorskip("datasets")
    out = tmp_path / "packed"
    assert npuport(*fine_tuning("arrow", dialogues, out)) == 0
    rows = list(datasets.load_from_disk(str(out)))
    assert rows[0]["input_ids"] == FIRST
    assert rows[0]["labels"] == FIRST_LABELS
    assert rows[1]["actual_seq_qlen"] == [8, 16]
    assert rows[1]["position_ids"] == [*range(8), *range(8)]
    assert rows[1]["sequence_ids"] == [1] * 8 + [2] * 8
    assert rows[1]["records"] == [1, 4]
    assert datasets.load_from_disk(str(out)).select([1, 0]).map(lambda row: {"n": len(row["input_ids"])})[0]["n"] == 16


def test_indexed_data_sets_are_read_back_by_megatron_core(dialogues: Path, tmp_path: Path, npuport: Npuport) -> None:
    indexed = pytest.importorskip("megatron.core.datasets.indexed_dataset", exc_type=ImportError)
    out = tmp_path / "packed"
    assert npuport(*fine_tuning("megatron", dialogues, out)) == 0
    read = {
        field: indexed.IndexedDataset(str(out / f"packed_packed_{field}_document"))
        for field in ("input_ids", "labels", "attention_mask")
    }
    assert read["input_ids"][0].tolist() == FIRST
    assert read["labels"][0].tolist() == FIRST_LABELS
    assert read["attention_mask"][1].tolist() == [1] * 8 + [2] * 8
    assert [len(one) for one in read.values()] == [4, 4, 4]


def test_the_index_has_the_bytes_that_the_format_names(dialogues: Path, tmp_path: Path, npuport: Npuport) -> None:
    out = tmp_path / "packed"
    assert npuport(*fine_tuning("megatron", dialogues, out)) == 0
    index = (out / "packed_packed_labels_document.idx").read_bytes()
    assert index[:34] == b"MMIDIDX\0\0" + bytes([1, *[0] * 7, 4, 4, *[0] * 7, 5, *[0] * 7])
    assert len(index) == 34 + 4 * 4 + 4 * 8 + 5 * 8
    assert megatron.read(out / "packed_packed_labels_document")[0].tolist() == FIRST_LABELS


def test_documents_for_megatron_stay_whole(tmp_path: Path, npuport: Npuport) -> None:
    source, out = tmp_path / "ids.parquet", tmp_path / "packed"
    rows = [[1, 2, 3], [], [4, 5]]
    pyarrow.parquet.write_table(pa.table({"ids": rows}), source)
    options = ("--for", "pretraining", "--max-length", 4, "--field", "ids", "--end-of-document", 0)
    assert npuport("data", "pack", source, "-o", out, "--format", "megatron", *options) == 0
    found = [one.tolist() for one in megatron.read(out / "packed_text_document")]
    assert found == [[1, 2, 3, 0], [0], [4, 5, 0]]
    assert json.loads((out / "statistics.json").read_text())["tokens"]["packed"] == 8


def test_tensors_are_read_back_by_torch(dialogues: Path, tmp_path: Path, npuport: Npuport) -> None:
    torch: Any = pytest.importorskip("torch")
    out = tmp_path / "packed"
    assert npuport(*fine_tuning("pt", dialogues, out)) == 0
    read = torch.load(out / "samples.pt")
    assert read["input_ids"].shape == (4, 16)
    assert read["labels"][0].tolist() == FIRST_LABELS
    assert read["actual_seq_qlen"] == [[16], [8, 16], [3, 16], [16]]


def test_what_became_of_every_token_is_said(
    dialogues: Path, tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "packed"
    assert npuport(*fine_tuning("arrow", dialogues, out), "--too-long", "cut") == 0
    said = capsys.readouterr().out
    assert f"longer than a sample: {dialogues}:5" in said
    assert f"empty, in no sample: {dialogues}:4" in said
    assert f"no answer in the loss: {dialogues}:3" in said
    assert "cut off: 8 tokens" in said
    summary = json.loads((out / "statistics.json").read_text())
    assert summary["tokens"] == {
        "read": 51,
        "packed": 43,
        "cut": 8,
        "in_loss": 14,
        "answers_without_context": 0,
    }


def test_labels_beside_ids_say_what_is_learned(tmp_path: Path, npuport: Npuport) -> None:
    ids, labels = [[5, 6, 7], [8, 9]], [[-100, 6, 7], [-100, 9]]
    table = pa.table({"input_ids": ids, "labels": labels})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    rows = [{"input_ids": one, "labels": other} for one, other in zip(ids, labels, strict=True)]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name in ("a.parquet", "b.jsonl"):
        out = tmp_path / f"packed-{name}"
        options = ("--for", "fine-tuning", "--max-length", 6, "--labels", "labels", "--format", "megatron")
        assert npuport("data", "pack", tmp_path / name, "-o", out, *options) == 0
        (row,) = megatron.read(out / f"packed-{name}_packed_labels_document")
        assert row.tolist() == [-100, 6, 7, -100, 9, -100]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is not a JSON object"),
        ('{"text": "a"}', "dialogues.jsonl:2 has no messages: it has text"),
        ('{"messages": [{"role": "robot", "content": [1]}]}', "dialogues.jsonl:2 cannot be packed: the role 'robot'"),
        ('{"messages": [{"role": "user", "content": "Hi"}]}', "--tokenizer"),
    ],
)
def test_a_bad_record_is_named_and_nothing_is_left_behind(
    line: str, told: str, tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "dialogues.jsonl"
    source.write_text('{"messages": [{"role": "user", "content": [1]}]}\n' + line + "\n", encoding="utf-8")
    assert npuport(*fine_tuning("arrow", source, tmp_path / "packed")) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["dialogues.jsonl"]


def test_a_folder_that_holds_something_is_left_alone(
    dialogues: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    assert npuport(*fine_tuning("arrow", dialogues, dialogues.parent)) == 2
    assert "choose another folder" in capsys.readouterr().err


@pytest.mark.parametrize("bad", [[1, -1], [1, 2**31], [1, None]])
@pytest.mark.parametrize("name", ["ids.parquet", "ids.jsonl"])
def test_what_is_no_token_id_is_named(
    name: str, bad: list[int | None], tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, source = [[5], bad], tmp_path / name
    if name == "ids.parquet":
        pyarrow.parquet.write_table(pa.table({"text": rows}), source)
    else:
        source.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8")
    options = ("--for", "pretraining", "--max-length", 4, "--end-of-document", 0)
    assert npuport("data", "pack", source, "-o", tmp_path / "packed", *options) == 2
    assert f"{name}:2 holds something that is no token id" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["arrow", "megatron"])
def test_nothing_to_pack_is_said(
    form: str, tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "empty.jsonl"
    source.write_bytes(b"")
    options = ("--for", "pretraining", "--max-length", 4, "--end-of-document", 0, "--format", form)
    assert npuport("data", "pack", source, "-o", tmp_path / "packed", *options) == 2
    assert "there is nothing to pack" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["empty.jsonl"]


@pytest.mark.parametrize("name", ["ids.parquet", "ids.jsonl"])
def test_a_mask_of_zeros_and_ones_is_not_taken_for_labels(
    name: str, tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    row, source = {"input_ids": [5, 6], "mask": [0, 1]}, tmp_path / name
    if name == "ids.parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist([row]), source)
    else:
        source.write_text(json.dumps(row) + "\n", encoding="utf-8")
    options = ("--for", "fine-tuning", "--max-length", 4, "--labels", "mask")
    assert npuport("data", "pack", source, "-o", tmp_path / "packed", *options) == 2
    assert f"{name}:1: mask is neither negative nor" in capsys.readouterr().err
