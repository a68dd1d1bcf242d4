"""`npuport data check`: records that fail or teach nothing are found, and sound data needs no word."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet  # noqa: E402

from npuport.cli.data_check import MEANINGS  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.llm.checking.data import FAULTS, NOTES, Wish, check_data  # noqa: E402
from npuport.llm.checking.records import Turn  # noqa: E402

Record = Mapping[str, Any]


def asks(question: str, answer: str = "Yes.") -> Record:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def written(folder: Path, records: Sequence[Record | str]) -> str:
    path = folder / "data.jsonl"
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def findings(folder: Path, records: Sequence[Record | str], wish: Wish | None = None) -> dict[str, list[str]]:
    found = check_data([written(folder, records)], wish or Wish())
    assert all(seen.number == len(seen.places) for seen in found.findings.values())
    return {name: [place.rpartition(":")[2] for place in seen.places] for name, seen in found.findings.items()}


SOUND: Mapping[str, Sequence[Record]] = {
    "messages": [
        asks("Is it?"),
        {"messages": [{"role": "system", "content": "Be brief."}, *asks("Why?")["messages"], *asks("So?")["messages"]]},
    ],
    "messages of ids, as npuport data pack takes them": [
        {"messages": [{"role": "user", "content": [15] * 50}, {"role": "assistant", "content": [7, 2]}]}
    ],
    "sharegpt": [{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}],
    "alpaca": [
        {"instruction": "Add.", "input": "1 2", "output": "3"},
        {"instruction": "Hi", "input": "", "output": "!"},
    ],
    "completion": [{"prompt": "Once", "completion": " upon a time"}],
    "preference": [
        {"prompt": "Hi", "chosen": "Hello", "rejected": "Go away"},
        {
            "conversations": [{"from": "human", "value": "Hi"}],
            "chosen": {"from": "gpt", "value": "Hello"},
            "rejected": {"from": "gpt", "value": "Go away"},
        },
        {"chosen": asks("Why?", "So.")["messages"], "rejected": asks("Why?", "No.")["messages"]},
    ],
    "tools": [
        {
            "messages": [
                {"role": "user", "content": "Weather?"},
                {"role": "assistant", "content": None, "tool_calls": [{"name": "weather"}]},
                {"role": "tool", "content": "sun"},
                {"role": "assistant", "content": "Sunny."},
            ]
        }
    ],
    "text": [
        {"text": "The whole text of a document that somebody wrote, with words in it."},
        {"text": "这是一段文字。"},
    ],
    "ids": [{"input_ids": [5, 6, 7], "labels": [-100, 6, 7]}, {"input_ids": [1, 2]}],
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_records_need_no_word(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, SOUND[name], Wish(vocabulary=10)) == {}


@pytest.mark.parametrize(
    ("record", "finding"),
    [
        ("{", "unreadable"),
        ({"title": "x"}, "other-fields"),
        ({"text": "a document among dialogues"}, "other-fields"),
        ({"messages": "Hi"}, "malformed"),
        ({"messages": [{"role": "user"}]}, "malformed"),
        (asks("Is it?", "  "), "empty"),
        ({"messages": [{"role": "narrator", "content": "Hi"}]}, "unknown-role"),
        ({"messages": [{"role": "user", "content": "Hi"}]}, "no-answer"),
        ({"messages": []}, "no-answer"),
        ({"messages": [{"role": "user", "content": "Hi"}, *asks("Well?")["messages"]]}, "roles-in-a-row"),
        (asks("Sound"), "duplicate"),
        (asks("Ã¤Ã¶Ã¼ das ist schÃ¶n fÃ¼r mÃ¶gliche GrÃ¶ÃŸen und Ã„nderungen"), "garbled"),
        (asks("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=" * 8, "."), "encoded"),
        (asks("1234567890 " * 20, "2"), "digits"),
        (asks("long " * 50), "too-long"),
    ],
)
def test_what_is_wrong_with_a_dialogue(tmp_path: Path, record: Record | str, finding: str) -> None:
    def words(turns: Sequence[Turn]) -> int:
        return sum(len(turn.text.split()) for turn in turns)

    assert findings(tmp_path, [asks("Sound"), record], Wish(words, max_length=40)) == {finding: ["2"]}


@pytest.mark.parametrize(
    ("record", "finding"),
    [
        ({"input_ids": [], "labels": []}, "empty"),
        ({"input_ids": ["a"]}, "malformed"),
        ({"input_ids": [3, 10]}, "id-range"),
        ({"input_ids": [3, -1]}, "id-range"),
        ({"input_ids": [3, 4], "labels": [3]}, "label-length"),
        ({"input_ids": [3, 4, 5], "labels": [3, 4, 10]}, "label-range"),
        ({"input_ids": [3, 4, 5], "labels": [3, 4, -1]}, "label-range"),
        ({"input_ids": [3, 4, 5], "labels": [-100, -100, -100]}, "nothing-learned"),
        ({"input_ids": [3, 4, 5], "labels": [3, -100, -100]}, "nothing-learned"),
        ({"input_ids": [1] * 9}, "too-long"),
        ({"input_ids": [1, 2], "labels": [1, 2]}, "duplicate"),
    ],
)
def test_what_is_wrong_with_token_ids(tmp_path: Path, record: Record, finding: str) -> None:
    found = findings(tmp_path, [{"input_ids": [1, 2]}, record], Wish(max_length=8, vocabulary=10))
    assert finding in found
    assert found[finding] == ["2"]


def test_every_finding_is_explained() -> None:
    assert set(MEANINGS) == {*FAULTS, *NOTES}


def test_parquet_and_lengths(tmp_path: Path) -> None:
    table = pa.table({"input_ids": [[1, 2, 3], [4, 5]], "labels": [[-100, 2, 3], [4, -100]]})
    pyarrow.parquet.write_table(table, tmp_path / "ids.parquet")
    found = check_data([str(tmp_path)], Wish())
    assert (found.records, found.lengths, found.tokens, found.learned) == (2, [3, 2], 5, 2)
    assert list(found.findings) == ["nothing-learned"]  # only the first token counts, which nothing predicts


def test_a_file_that_is_one_array(tmp_path: Path) -> None:
    path = tmp_path / "alpaca.json"
    path.write_text(json.dumps([*SOUND["alpaca"], {"instruction": "Hi", "output": ""}, 3], indent=1), encoding="utf-8")
    found = check_data([str(path)], Wish())
    assert {name: seen.places for name, seen in found.findings.items()} == {
        "empty": [f"{path}:3"],
        "unreadable": [f"{path}:4"],
    }
    path.write_text("[{", encoding="utf-8")
    with pytest.raises(UserError, match=r"alpaca\.json"):
        check_data([str(path)], Wish())


def test_the_command(tmp_path: Path, npuport: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, [{"input_ids": list(range(100))}, {"input_ids": [7] * 300}])
    assert npuport("data", "check", path, "--max-length", 200, "--parameters", 1e9) == 0
    said = capsys.readouterr().out
    assert "2 records (token ids 2)" in said
    assert "400 tokens" in said
    assert "· too-long: 1 (50.00%)" in said
    assert "tokens for each parameter" in said
    path = written(tmp_path, [asks("Is it?", "")])
    assert npuport("data", "check", path, "--json") == 1
    assert json.loads(capsys.readouterr().out)["findings"] == {"empty": {"number": 1, "places": [f"{path}:1"]}}
    assert npuport("data", "check", path, "--parameters", 1e9) == 2  # no tokenizer, no tokens
    with pytest.raises(UserError):
        check_data([str(tmp_path / "none.jsonl")], Wish())
