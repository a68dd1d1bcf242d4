"""`npuport data clean`: each record is kept as it stood, or dropped with its reason."""

from __future__ import annotations

import fcntl
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datatrove")
pytest.importorskip("py3langid")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet  # noqa: E402

from npuport.llm.cleaning.settings import Cleaning  # noqa: E402
from npuport.llm.pipelines.options import filled, read  # noqa: E402

Npuport = Callable[..., int]
EN = "The training of large models needs data that was cleaned with care, for a network learns whatever it is shown."
ZH = "昇腾处理器上的训练需要把数据清洗干净，否则模型会学到错误的内容。研究人员发现，重复的文本会让损失曲线出现尖峰。"
DE = "Das ist ein deutscher Text, der hier nicht behalten werden soll, weil nur Englisch und Chinesisch gewünscht sind."
ITEM = "Which of the seven old harbours did the quiet painter visit before the long winter of that year came to an end?"
ITEM_ZH = "那位安静的画家在漫长的冬天结束之前究竟参观了七个古老港口中的哪一个，没有人知道答案。"
LONG = """Every autumn the ferry to the island stopped running, and those who lived there had to plan for a long
season alone. My grandmother kept flour in three barrels, salted fish under a stone, and a stack of books
that nobody else was allowed to touch before the first snow. She used to say that patience is a kind of
food. When I was nine I asked her why she had never moved to the town across the water, where shops stayed
open and doctors came at once. She laughed, put another log on the fire, and told me about the night when
the lighthouse went dark. Forty boats were out; the keeper had fallen on the stairs. Children climbed up
with lanterns, one behind the other, and held them out of the windows until dawn. Not a single boat was
lost. A place that needs you, she said, is harder to leave than one which only feeds you."""


def lines(path: Path) -> list[bytes]:
    return [line for file in sorted(path.glob("*.jsonl")) for line in file.read_bytes().splitlines()]


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


@pytest.fixture
def clean(tmp_path: Path, npuport: Npuport) -> Callable[..., list[dict[str, Any]]]:
    """Clean texts with the steps given, in this process; what was dropped."""

    def run(texts: list[str], steps: str = "") -> list[dict[str, Any]]:
        source = written(tmp_path / "texts.jsonl", [{"id": n, "text": text} for n, text in enumerate(texts)])
        config = tmp_path / "pipeline.yaml"
        config.write_text(
            f"inputs: [{source}]\noutput: {tmp_path / 'out'}\nexecutor: {{workers: 1}}\nsteps: {{{steps}}}\n",
            encoding="utf-8",
        )
        assert npuport("data", "clean", config) == 0
        return [json.loads(line) for line in lines(tmp_path / "out" / "dropped")]

    return run


FAULTS = [
    ("short", "too-short"),
    (ZH.encode().decode("gbk", "replace"), "garbled"),
    (EN.replace("a", "\ue000"), "garbled"),
    (f"{EN[:40]} {'4f6b' * 40}a1", "encoded"),
    ("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", "digits"),
    ("<div><p>a text</p><span class='b'>another</span></div><br/>", "html"),
    ("see https://a.example/b and https://c.example/d or www.e.example", "links"),
    ("★☆★☆★☆★☆★☆★☆★☆ news ===============================", "symbols"),
    (f"{EN} Buy a GROBNAK!", "words"),
    (f"{ZH}坏词{ZH[:9]}", "words"),
    ("spam and eggs, spam and eggs; " * 20, "repetition"),
    (ZH[:31] * 8, "repetition"),
    (DE, "language"),
    (f"{EN} {ITEM[:-20].upper()}", "contamination"),
    (f"{ZH[:30]}{ITEM_ZH[3:]}", "contamination"),
]
SOUND = [
    EN,
    ZH,
    "A short text that repeats nothing at all in it.",
    f"{EN} The key was c2VjcmV0LWtleS1mb3ItYS1zaG9ydC1xdW90ZQ==, he said.",
    f"{LONG} See https://example.org/some/page for more.",
    "Population: Oslo 709,037; Bergen 291,940; Trondheim 212,660; Stavanger 149,048; Drammen 104,487 (2023).",
    "std::vector<int> rows; for (const auto& row : rows) { if (row < 0x1f && row > 2) total += row; } // keeps all",
    "Grobnakians are not on the list, and neither is a pregrobnak; both words are only like one of it.",
    f"{ITEM[:50]} — so it began; nobody knew how the question went on, or who had asked it first.",
]


def test_each_fault_has_its_reason_and_sound_texts_have_none(
    clean: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("# list\ngrobnak\n坏词\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text(f"{ITEM}\n{ITEM_ZH}\n", encoding="utf-8")
    steps = f"language: {{keep: [en, zh]}}, words: {{files: [{tmp_path}/words.txt]}}"
    texts = [*SOUND, *(text for text, _ in FAULTS)]
    found = clean(texts, f"{steps}, contamination: {{tests: [{tmp_path}/test.txt]}}, near-duplicates: false")
    assert [(one["record"]["text"], one["reason"]) for one in found] == FAULTS
    assert [one["place"].rpartition(":")[2] for one in found] == [
        str(number) for number in range(len(SOUND) + 1, len(texts) + 1)
    ]


def test_of_duplicates_the_first_is_kept_and_named(clean: Callable[..., list[dict[str, Any]]]) -> None:
    near = LONG.replace("laughed", "smiled")
    related = LONG[: len(LONG) // 2] + " " + LONG[len(LONG) // 2 :].translate(str.maketrans("aeiou", "uoiea"))
    found = clean([LONG, EN, f"  {EN}\n", near, related, near + " "])
    places = [(one["reason"], one["place"][-1], one["of"][-1]) for one in found]
    assert places == [("duplicate", "3", "2"), ("near-duplicate", "4", "1"), ("duplicate", "6", "4")]
    assert found[1]["measured"] > 0.7


def test_what_has_no_text_is_dropped_and_named_too(tmp_path: Path, npuport: Npuport) -> None:
    source = tmp_path / "a.jsonl"
    source.write_bytes(b'{"text": "' + EN.encode() + b'"}\n\n{"body": 1}\n[1]\n{"text": " "}\nnot json\xff')
    assert npuport("data", "clean", source, "-o", tmp_path / "out", "--workers", 1) == 0
    found = [json.loads(line) for line in lines(tmp_path / "out" / "dropped")]
    assert [(one["place"].rpartition(":")[2], one["reason"]) for one in found] == [
        ("3", "no-text"),
        ("4", "not-json"),
        ("5", "no-text"),
        ("6", "not-json"),
    ]
    assert found[3]["line"] == "not json�"
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["records"], report["kept"], report["dropped"]) == (5, 1, 4)


def test_kept_records_are_the_lines_that_stood_there(tmp_path: Path, npuport: Npuport) -> None:
    odd = [f'{{"n": 1.50,  "text":"{EN} {n} \\u00e9"}}'.encode() for n in range(40)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(odd[:20]))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"\r\n".join(odd[20:])))
    config = tmp_path / "p.yaml"
    config.write_text(
        f"inputs: ['{tmp_path}/*.jsonl*']\noutput: {tmp_path}/out\ntask-megabytes: 0.01\n"
        "steps: {near-duplicates: false}\nexecutor: {workers: 1}\n"
    )
    assert npuport("data", "clean", config) == 0
    assert lines(tmp_path / "out" / "kept") == odd


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_parquet_in_and_out(form: str, tmp_path: Path, npuport: Npuport) -> None:
    schema = pa.schema([("id", pa.int32()), ("text", pa.string()), ("tags", pa.list_(pa.string()))])
    rows = [{"id": 1, "text": EN, "tags": ["a"]}, {"id": 2, "text": "short", "tags": []}, {"id": 3, "text": ZH}]
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "a.parquet")
    out = tmp_path / "out"
    assert npuport("data", "clean", tmp_path / "a.parquet", "-o", out, "--format", form, "--workers", 1) == 0
    if form == "parquet":
        table = pyarrow.parquet.read_table(out / "kept" / "00000.parquet")
        assert table.schema == schema
        assert table.column("id").to_pylist() == [1, 3]
    else:
        assert [json.loads(line)["id"] for line in lines(out / "kept")] == [1, 3]
    (found,) = map(json.loads, lines(out / "dropped"))
    assert found["place"] == f"{tmp_path}/a.parquet:2"


def test_jsonl_becomes_parquet_with_columns_for_all(tmp_path: Path, npuport: Npuport) -> None:
    source = written(tmp_path / "a.jsonl", [{"text": EN, "n": 1}, {"text": ZH, "n": 2.5, "more": {"x": 1}}])
    assert npuport("data", "clean", source, "-o", tmp_path / "out", "--format", "parquet", "--workers", 1) == 0
    rows = pyarrow.parquet.read_table(tmp_path / "out" / "kept" / "00000.parquet").to_pylist()
    assert rows == [{"text": EN, "n": 1.0, "more": None}, {"text": ZH, "n": 2.5, "more": {"x": 1}}]


def test_fields_of_several_kinds_are_refused_for_parquet(
    tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "a.jsonl", [{"text": EN, "n": 1}, {"text": ZH, "n": "one"}])
    assert npuport("data", "clean", source, "-o", tmp_path / "out", "--format", "parquet", "--workers", 1) == 2
    assert "write the format jsonl" in capsys.readouterr().err
    assert npuport("data", "clean", source, "-o", tmp_path / "out", "--workers", 1) == 0


def test_dropped_records_are_shown(tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]) -> None:
    source = written(tmp_path / "a.jsonl", [{"text": EN}, {"text": "short"}, {"text": DE}, {"text": EN}])
    out = tmp_path / "out"
    assert npuport("data", "clean", source, "-o", out, "--language", "en", "--workers", 1) == 0
    said = capsys.readouterr().out
    assert "4 records, 1 kept, 3 dropped" in said
    assert "not run: words (no word lists), contamination (no test sets), perplexity (no model)" in said
    assert npuport("data", "dropped", out, "--reason", "language") == 0
    shown = capsys.readouterr().out
    assert f"{source}:3  language 1 (limit 0.5): de\n  {DE}" in shown
    assert "too-short" not in shown
    assert npuport("data", "dropped", out, "--json", "--first", 2) == 0
    (last,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (last["reason"], last["of"]) == ("duplicate", f"{source}:1")
    assert npuport("data", "dropped", out, "--reason", "size") == 2
    assert npuport("data", "dropped", tmp_path) == 2


def test_a_complete_run_is_not_repeated_and_nothing_is_overwritten(
    tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = written(tmp_path / "a.jsonl", [{"text": EN}]), tmp_path / "out"
    assert npuport("data", "clean", source, "-o", out, "--workers", 1) == 0
    before = (out / "report.json").stat().st_mtime_ns
    assert npuport("data", "clean", source, "-o", out, "--workers", 1) == 0
    assert (out / "report.json").stat().st_mtime_ns == before
    assert npuport("data", "clean", source, "-o", out, "--language", "en", "--workers", 1) == 2
    assert "choose another folder" in capsys.readouterr().err
    (out / "unfinished").mkdir()
    assert npuport("data", "clean", source, "-o", out, "--language", "en", "--workers", 1) == 2
    assert "an unfinished run with other settings" in capsys.readouterr().err


def test_a_file_that_is_broken_is_named(tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]) -> None:
    whole = gzip.compress(b"\n".join(f'{{"text": "{EN} {n}"}}'.encode() for n in range(2_000)))
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    assert npuport("data", "clean", tmp_path / "a.jsonl.gz", "-o", tmp_path / "out", "--workers", 1) == 2
    assert f"{tmp_path}/a.jsonl.gz cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "out" / "kept").exists()


def test_an_unfinished_run_is_not_continued_with_another_word_list(
    tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source, words = written(tmp_path / "a.jsonl", [{"text": EN}]), tmp_path / "words.txt"
    config = tmp_path / "p.yaml"
    config.write_text(
        f"inputs: [{source}]\noutput: {tmp_path}/out\nexecutor: {{workers: 1}}\nsteps: {{words: {{files: [{words}]}}}}"
    )
    words.write_text("one\n")
    assert npuport("data", "clean", config) == 0
    (tmp_path / "out" / "unfinished").mkdir()
    words.write_text("network\n")
    assert npuport("data", "clean", config) == 2
    assert "its input has changed since" in capsys.readouterr().err


def test_nothing_kept_is_a_result_too(clean: Callable[..., list[dict[str, Any]]], tmp_path: Path) -> None:
    assert len(clean(["short", "\ud800 half a character, which no file of UTF-8 can hold, is dropped as well"])) == 2
    assert json.loads((tmp_path / "out" / "report.json").read_text())["kept"] == 0


def test_two_runs_do_not_write_the_same_folder(
    tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = written(tmp_path / "a.jsonl", [{"text": EN}]), tmp_path / "out"
    (out / "unfinished").mkdir(parents=True)
    with (out / "unfinished" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert npuport("data", "clean", source, "-o", out, "--workers", 1) == 2
    assert "another run is writing" in capsys.readouterr().err
    assert npuport("data", "clean", source, "-o", out, "--workers", 1) == 0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("inputs: [a.jsonl]\nsteps: {lenght: {}}", "p.yaml: steps.lenght is not known; did you mean length?"),
        ("steps: {length: {min-characters: x}}", "p.yaml: steps.length.min-characters takes a whole number, not x."),
        ("steps: {digits: {max-share: 2}}", "p.yaml: steps.digits.max-share takes 0 … 1, not 2."),
        ("executor: {kind: spark}", "p.yaml: executor.kind takes one of local, ray, slurm, not spark."),
        ("steps: [length]", "p.yaml: steps takes keys of its own"),
        ("inputs: 3", "p.yaml: inputs takes a list of texts, not 3."),
        ("inputs: [a.jsonl", "p.yaml is no YAML"),
        ("- a", "p.yaml holds no keys"),
        ("output: out", "there is no input"),
        ("inputs: [missing.jsonl]\noutput: out", "missing.jsonl: there is no such file"),
        ("inputs: [p.yaml]\noutput: out", "p.yaml is neither JSONL"),
        ("inputs: [a.jsonl]", "there is no output"),
        ("inputs: [a.jsonl]\noutput: out\nsteps: {language: {keep: [xx]}}", "xx is none of the languages"),
        ("inputs: [a.jsonl]\noutput: out\nexecutor: {kind: slurm}", "not on this machine"),
        ("inputs: [a.jsonl]\noutput: out\nsteps: {words: {files: [w.txt]}}", "w.txt cannot be read"),
    ],
)
def test_what_a_pipeline_file_has_wrong_is_named(
    content: str,
    told: str,
    tmp_path: Path,
    npuport: Npuport,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.jsonl", [{"text": EN}])
    (tmp_path / "p.yaml").write_text(content, encoding="utf-8")
    assert npuport("data", "clean", "p.yaml") == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out" / "kept").exists()


def test_the_starter_file_says_every_key_at_its_default(tmp_path: Path, npuport: Npuport) -> None:
    path = tmp_path / "pipeline.yaml"
    assert npuport("data", "clean", "a.jsonl", "-o", "out", "--write-default", path) == 0
    found = filled(Cleaning, read(path), str(path))
    assert found == Cleaning(inputs=["a.jsonl"], output="out")
    assert npuport("data", "clean", "--write-default", path) == 2


def test_perplexity_by_a_model_of_ones_own(
    clean: Callable[..., list[dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torch_npu", None)  # without CANN transformers could not load it
    transformers: Any = pytest.importorskip("transformers")
    tokenizers: Any = pytest.importorskip("tokenizers")
    words = ["[UNK]", "the", "cat", "sat", "on", "a", "mat"]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    folder = tmp_path / "model"
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(folder)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=len(words), n_positions=64, n_embd=16, n_layer=1, n_head=1)
    )
    sentence = torch.tensor([[1, 2, 3, 4, 5, 6] * 4])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        optimizer.zero_grad()
        model(sentence, labels=sentence).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    steps = "length: false, repetition: false, near-duplicates: false, language: false"
    found = clean(
        ["the cat sat on a mat " * 4, "mat mat cat the a on sat on the on cat"],
        f"{steps}, perplexity: {{model: {folder}, max: 3}}",
    )
    assert [(one["reason"], one["record"]["id"]) for one in found] == [("perplexity", 1)]
    assert found[0]["measured"] > 3


def test_the_next_command_can_be_pasted(tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]) -> None:
    source, config = written(tmp_path / "a.jsonl", [{"text": EN}, {"text": "short"}]), tmp_path / "my pipeline.yaml"
    assert npuport("data", "clean", source, "-o", tmp_path / "my texts", "--workers", 1) == 0
    assert f"Next: npuport data dropped '{tmp_path / 'my texts'}'" in capsys.readouterr().out
    assert npuport("data", "clean", "--write-default", config) == 0
    assert f"npuport data clean '{config}'" in capsys.readouterr().out


def test_an_array_is_no_file_of_broken_records(
    tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"text": EN}], indent=1), encoding="utf-8")
    assert npuport("data", "clean", tmp_path / "a.json", "-o", tmp_path / "out", "--workers", 1) == 2
    assert "a.json is one JSON array" in capsys.readouterr().err
