"""`npuport data mix`: sources by weights, decided by the seed alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("datatrove")
np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet  # noqa: E402

from npuport.errors import UserError  # noqa: E402
from npuport.llm.mixing.drawing import Part, drawn, shares  # noqa: E402

Npuport = Callable[..., int]
SIZES = st.lists(st.integers(1, 50), min_size=5, max_size=60)


def part(name: str, weight: float, sizes: list[int], epochs: float = 1.0) -> Part:
    return Part(name, weight, epochs, np.array(sizes, dtype=np.int64))


@settings(deadline=None, max_examples=60)
@given(SIZES, SIZES, st.floats(0.1, 10), st.floats(0.5, 3), st.integers(0, 1000))
def test_each_stretch_of_a_mixture_has_the_weights(
    first: list[int], second: list[int], weight: float, epochs: float, seed: int
) -> None:
    parts = [part("a", weight, first, epochs), part("b", 1.0, second, epochs)]
    found = drawn(parts, 0, seed)
    sizes = np.where(
        found.part == 0,
        np.array(first)[np.where(found.part == 0, found.text, 0)],
        np.array(second)[np.where(found.part == 1, found.text, 0)],
    )
    of_first = np.cumsum(np.where(found.part == 0, sizes, 0))
    of_second = np.cumsum(np.where(found.part == 1, sizes, 0))
    # At every place the two are due at the same time, but for one text of each.
    assert np.all(np.abs(of_first / weight - of_second) <= max(first) / weight + max(second))
    for number, sizes_of in enumerate((first, second)):
        times = Counter(found.text[found.part == number].tolist())
        assert max(times.values(), default=0) <= np.ceil(epochs)
        assert sum(sizes_of[text] * n for text, n in times.items()) <= sum(sizes_of) * epochs + max(sizes_of)
    again = drawn(parts, 0, seed)
    assert (again.part == found.part).all()
    assert (again.text == found.text).all()


def test_a_size_is_met_to_within_a_text_and_shares_are_told() -> None:
    parts = [part("a", 3, [10] * 100), part("b", 1, [7] * 100)]
    found = drawn(parts, 400, 0)
    told = shares(parts, found)
    assert told["a"]["size"] == 300
    assert abs(told["b"]["size"] - 100) <= 7
    assert told["a"]["epochs"] == 0.3


def test_a_source_more_leaves_the_order_of_the_others() -> None:
    two = [part("a", 1, [1] * 50), part("b", 1, [1] * 50)]
    three = [*two, part("c", 1, [1] * 50)]
    order = drawn(two, 0, 7).text[drawn(two, 0, 7).part == 0]
    assert (drawn(three, 0, 7).text[drawn(three, 0, 7).part == 0] == order).all()
    assert not (drawn(two, 0, 8).text[drawn(two, 0, 8).part == 0] == order).all()


def test_a_source_with_too_little_is_named() -> None:
    with pytest.raises(UserError, match="b has too little for its weight: the mixture can have 20, not 30"):
        drawn([part("a", 1, [1] * 50), part("b", 1, [1] * 10)], 30, 0)
    assert len(drawn([part("a", 1, [1] * 50), part("b", 1, [1] * 10, epochs=2)], 30, 0).part) == 30


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


@pytest.fixture
def sources(tmp_path: Path) -> tuple[str, str]:
    """Sixty records of JSONL, forty of Parquet."""
    text = [f'{{"id": {n},  "text": "{"word " * (1 + n % 7)}"}}' for n in range(60)]
    (tmp_path / "a.jsonl").write_text("\n".join(text), encoding="utf-8")
    table = pa.table({"id": range(100, 140), "text": [f"text {n} " * (n % 3 + 1) for n in range(40)]})
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet", row_group_size=10)
    return f"a={tmp_path}/a.jsonl:3", f"b={tmp_path}/b.parquet:1"


def test_files_are_mixed_alike_by_any_number_of_workers(
    sources: tuple[str, str], tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    assert npuport("data", "mix", *sources, "-o", tmp_path / "one", "--workers", 1, "--seed", 3) == 0
    assert "80 documents drawn" in capsys.readouterr().out
    config = tmp_path / "mix.yaml"
    config.write_text(
        f"""sources:
  a: {{inputs: [{tmp_path}/a.jsonl], weight: 3}}
  b: {{inputs: [{tmp_path}/b.parquet], weight: 1}}
seed: 3
task-megabytes: 0.01
""",
        encoding="utf-8",
    )
    assert npuport("data", "mix", config, "-o", tmp_path / "two", "--workers", 2) == 0
    one, two = rows(tmp_path / "one" / "mixed"), rows(tmp_path / "two" / "mixed")
    assert one == two
    ids = [row["id"] for row in one]
    assert len(set(ids)) == 80
    assert sum(number < 100 for number in ids) == 60
    assert sum(number < 100 for number in ids[:40]) == 30
    lines = (tmp_path / "one" / "mixed" / "00000.jsonl").read_text().splitlines()
    assert set(lines) >= set((tmp_path / "a.jsonl").read_text().splitlines())
    report = json.loads((tmp_path / "one" / "report.json").read_text())
    assert report["sources"]["b"] == {"documents": 20, "size": 20, "share": 0.25, "weight": 1.0, "epochs": 0.5}


@pytest.mark.usefixtures("sources")
def test_tokens_are_counted_and_parquet_is_written(tmp_path: Path, npuport: Npuport) -> None:
    tokenizers: Any = pytest.importorskip("tokenizers")
    transformers: Any = pytest.importorskip("transformers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "word": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(tmp_path / "t")
    config = tmp_path / "mix.yaml"
    config.write_text(
        f"""sources:
  a: {{inputs: [{tmp_path}/a.jsonl], weight: 1, max-epochs: 2}}
  b: {{inputs: [{tmp_path}/b.parquet], weight: 1, max-epochs: 5}}
unit: tokens
size: 600
tokenizer: {tmp_path}/t
format: parquet
output: {tmp_path}/out
""",
        encoding="utf-8",
    )
    assert npuport("data", "mix", config, "--workers", 1) == 0
    table = pyarrow.parquet.read_table(tmp_path / "out" / "mixed" / "00000.parquet")
    tokens = [len(text.split()) for text in table.column("text").to_pylist()]
    assert abs(sum(tokens) - 600) <= 7
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["size"] == sum(tokens)
    assert report["documents"] == table.num_rows
    assert report["sources"]["b"]["epochs"] > 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a.jsonl"], "a source is NAME=PATH:WEIGHT"),
        (["a=a.jsonl:much"], "a source is NAME=PATH:WEIGHT"),
        (["a=missing.jsonl:1"], "missing.jsonl: there is no such file"),
        (["a=a.jsonl:0"], "there is no source with a weight"),
        (["a=a.jsonl:1", "--unit", "tokens"], "the unit tokens takes a tokenizer"),
        (["a=a.jsonl:1", "--unit", "words"], "unit takes one of documents, characters, tokens, not words"),
        (["a=a.jsonl:1", "--size", "9"], "a has too little for its weight: the mixture can have 2, not 9"),
        (["a=b.jsonl:1"], "a record has no text in text"),
        (["mix.yaml", "a=a.jsonl:1"], "give one pipeline file, or sources"),
        (["mix.yaml"], "mix.yaml: sources.a.wieght is not known; did you mean weight?"),
    ],
)
def test_what_cannot_be_mixed_is_named(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    npuport: Npuport,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n', encoding="utf-8")
    Path("b.jsonl").write_text('{"text": "one"}\n{"body": "two"}\n', encoding="utf-8")
    Path("mix.yaml").write_text("sources: {a: {inputs: [a.jsonl], wieght: 1}}", encoding="utf-8")
    assert npuport("data", "mix", *arguments, "-o", "out", "--workers", "1") == 2
    assert told in capsys.readouterr().err
    assert not Path("out").exists()  # so that the corrected command can write it
    assert not Path("out/mixed").exists()


def test_a_folder_that_cleaning_wrote_stands_for_what_it_kept(tmp_path: Path, npuport: Npuport) -> None:
    texts = [f"This is sentence number {number}, long enough to be kept by the step length." for number in range(3)]
    lines = [json.dumps({"text": text}) for text in [*texts, "short"]]
    (tmp_path / "crawl.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert npuport("data", "clean", tmp_path / "crawl.jsonl", "-o", tmp_path / "in" / "cleaned", "--workers", "1") == 0
    assert list((tmp_path / "in" / "cleaned" / "dropped").iterdir())
    for name in ("in", "in/cleaned"):
        out = tmp_path / f"of {name.replace('/', ' ')}"
        assert npuport("data", "mix", f"a={tmp_path / name}:1", "-o", out, "--workers", "1") == 0
        assert npuport("data", "mix", f"a={out}:1", "-o", tmp_path / f"{out} again", "--workers", "1") == 0
        for mixed in (out, tmp_path / f"{out} again"):
            assert sorted(row["text"] for row in rows(mixed / "mixed")) == texts
