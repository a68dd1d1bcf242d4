"""Dialogues as token ids: by a chat template, and by role tokens with text."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("tokenizers")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

from npuport.llm.packing import megatron

CHATML = (
    "{% for m in messages %}<|im_start|> {{ m['role'] }} {{ m['content'] }} <|im_end|> {% endfor %}"
    "{% if add_generation_prompt %}<|im_start|> assistant {% endif %}"
)
FORGETFUL = "{% for m in messages %}{% if loop.last %}now {% endif %}{{ m['role'] }} {{ m['content'] }} {% endfor %}"
WORDS = [
    "<|pad|>",
    "<|im_start|>",
    "<|im_end|>",
    "user",
    "assistant",
    "hello",
    "there",
    "good",
    "day",
    "now",
    "<|eos|>",
]
DIALOGUE = (
    '{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"},'
    ' {"role": "user", "content": "there"}, {"role": "assistant", "content": "now"}]}\n'
)


def tokenizer_at(folder: Path, template: str) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder.mkdir()
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<|pad|>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": template,
        "pad_token": "<|pad|>",
        "eos_token": "<|eos|>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


Npuport = Callable[..., int]
TO_PACK = ("--max-length", 20, "--format", "megatron")


def rows(prefix: Path) -> list[list[int]]:
    return [row.tolist() for row in megatron.read(prefix)]


@pytest.fixture
def dialogues(tmp_path: Path) -> Path:
    path = tmp_path / "dialogues.jsonl"
    path.write_text(DIALOGUE, encoding="utf-8")
    return path


def words(ids: list[int]) -> str:
    return " ".join(WORDS[one] if one >= 0 else "." for one in ids)


def test_a_chat_template_tells_answers_from_the_rest(dialogues: Path, tmp_path: Path, npuport: Npuport) -> None:
    tokenizer, out = tokenizer_at(tmp_path / "tokenizer", CHATML), tmp_path / "packed"
    code = npuport("data", "pack", dialogues, "-o", out, *TO_PACK, "--for", "fine-tuning", "--tokenizer", tokenizer)
    assert code == 0
    (ids,) = rows(out / "packed_packed_input_ids_document")
    (labels,) = rows(out / "packed_packed_labels_document")
    whole = "<|im_start|> user hello <|im_end|> <|im_start|> assistant good day <|im_end|>"
    whole += " <|im_start|> user there <|im_end|> <|im_start|> assistant now <|im_end|>"
    assert words(ids) == whole + " <|pad|>" * 3
    assert words(labels) == ". . . . . . good day <|im_end|> . . . . . . now <|im_end|> . . ."


def test_a_template_that_rewrites_what_was_before_is_refused(
    dialogues: Path, tmp_path: Path, npuport: Npuport, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer, out = tokenizer_at(tmp_path / "tokenizer", FORGETFUL), tmp_path / "packed"
    code = npuport("data", "pack", dialogues, "-o", out, *TO_PACK, "--for", "fine-tuning", "--tokenizer", tokenizer)
    assert code == 2
    assert (
        "dialogues.jsonl:1 cannot be packed: the chat template writes an earlier part otherwise"
        in capsys.readouterr().err
    )
    assert not out.exists()


def test_role_tokens_may_be_text(dialogues: Path, tmp_path: Path, npuport: Npuport) -> None:
    tokenizer, out = tokenizer_at(tmp_path / "tokenizer", ""), tmp_path / "packed"
    roles = ("--role", "user=user", "--role", "assistant=assistant", "--end-of-turn", "<|eos|>")
    code = npuport(
        "data", "pack", dialogues, "-o", out, *TO_PACK, "--for", "fine-tuning", "--tokenizer", tokenizer, *roles
    )
    assert code == 0
    (ids,) = rows(out / "packed_packed_input_ids_document")
    (labels,) = rows(out / "packed_packed_labels_document")
    assert words(ids[:13]) == "user hello <|eos|> assistant good day <|eos|> user there <|eos|> assistant now <|eos|>"
    assert words(labels[:13]) == ". . . . good day <|eos|> . . . . now <|eos|>"


def test_texts_end_with_the_tokenizers_own_token(tmp_path: Path, npuport: Npuport) -> None:
    source = tmp_path / "texts.jsonl"
    source.write_text('{"text": "hello there"}\n{"text": "good"}\n', encoding="utf-8")
    tokenizer, out = tokenizer_at(tmp_path / "tokenizer", ""), tmp_path / "packed"
    code = npuport("data", "pack", source, "-o", out, *TO_PACK, "--for", "pretraining", "--tokenizer", tokenizer)
    assert code == 0
    assert [words(row) for row in rows(out / "packed_text_document")] == ["hello there <|eos|>", "good <|eos|>"]
