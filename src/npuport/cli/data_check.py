"""`npuport data check`: options to a check of training data, and what it says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.guidance.judging import Judgement
    from npuport.llm.checking.data import Found
    from npuport.llm.checking.records import Turn

SCHEMA = "npuport-data-check/1"
_EVERY = 1_000  # records between two words on how many there were

MEANINGS = {
    "unreadable": "no JSON object",
    "other-fields": "fields that tell no kind, or another kind than the first record's",
    "malformed": "a message, text or list of ids is missing, or of another type",
    "empty": "an empty text or answer",
    "unknown-role": "a role that no chat template knows",
    "no-answer": "a dialogue without an answer: nothing is learned of it",
    "label-length": "as many labels as ids are wanted",
    "label-range": "a label outside of the vocabulary",
    "id-range": "an id outside of the vocabulary",
    "nothing-learned": "every label is ignored (-100): nothing is learned of it",
    "roles-in-a-row": "two questions in a row: some chat templates refuse that",
    "too-long": "longer than --max-length",
    "duplicate": "the same as an earlier record",
    "garbled": "garbled: read in a wrong encoding, or characters of no writing",
    "encoded": "mostly encoded data (base64, hexadecimal)",
    "digits": "nothing but digits",
}
"""What the findings mean."""


def check_files(
    inputs: Sequence[str],
    *,
    tokenizer: str,
    max_length: int | None,
    vocabulary: int | None,
    parameters: float | None,
    as_json: bool,
) -> int:
    """Check the records and say what was found; the exit code."""
    from npuport.cli.data_pack import needs_packages
    from npuport.cli.shared import CLEAN, FINDINGS

    needs_packages()
    from npuport.llm.checking.data import Wish, check_data

    loaded, size = _tokenizer(tokenizer) if tokenizer else (None, None)
    with _counter() as watch:
        found = check_data(inputs, Wish(loaded, max_length, vocabulary or size), watch)
    judgement = _enough(found, parameters)
    if as_json:
        print(json.dumps(_as_json(found, judgement), indent=2, ensure_ascii=False))
    else:
        print("\n".join(_as_text(found, judgement, max_length, knows_tokens=bool(found.lengths))))
    return FINDINGS if found.is_faulty else CLEAN


@contextmanager
def _counter() -> Iterator[Callable[[int], None]]:
    """How many records were read, on stderr, where a person looks at it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    from npuport.report.language import counted

    with Console(stderr=True).status("") as status:
        yield lambda number: status.update(counted(number, "record")) if number % _EVERY == 0 else None


def _tokenizer(source: str) -> tuple[Callable[[Sequence[Turn]], int], int]:
    """What counts the tokens of a record, as its chat template writes it where there is one; and the vocabulary."""
    from npuport.llm.packing.encoding import load_tokenizer

    loaded: Any = load_tokenizer(source)

    def tokens(turns: Sequence[Turn]) -> int:
        text = "\n".join(turn.text for turn in turns)
        if loaded.chat_template and turns[0].role:
            messages = [{"role": turn.role, "content": turn.text} for turn in turns]
            with suppress(Exception):  # templates raise what they like; the messages alone are nearly as long
                text = loaded.apply_chat_template(messages, tokenize=False)
        return len(loaded(text, add_special_tokens=False)["input_ids"])

    return tokens, len(loaded)


def _enough(found: Found, parameters: float | None) -> Judgement | None:
    from npuport.guidance.judging import Recipe, judge

    if parameters is None:
        return None
    if found.tokens is None:
        raise UserError("how many tokens there are is not known: name the --tokenizer.")
    recipe = Recipe("pretraining", round(parameters), tokens=float(found.tokens))
    return next((one for one in judge(recipe) if one.quantity == "tokens"), None)


def _as_text(found: Found, judgement: Judgement | None, max_length: int | None, *, knows_tokens: bool) -> Iterator[str]:
    from npuport.cli.precision_preflight import said
    from npuport.llm.checking.data import FAULTS, NOTES
    from npuport.report.language import counted, translate

    kinds = ", ".join(f"{kind or '?'} {number:,}" for kind, number in found.kinds.items())
    yield counted(found.records, "record") + (f" ({kinds})" if kinds else "")
    if knows_tokens:
        lengths = sorted(found.lengths)
        yield "  " + translate(
            "{tokens} tokens; a record has {median} (half of them), {most} (95 %), at most {largest}",
            tokens=f"{sum(lengths):,}",
            median=f"{lengths[len(lengths) // 2]:,}",
            most=f"{lengths[min(len(lengths) - 1, len(lengths) * 95 // 100)]:,}",
            largest=f"{lengths[-1]:,}",
        )
    elif found.characters:
        yield "  " + translate("{number} characters; tokens need --tokenizer", number=f"{found.characters:,}")
    if max_length and not knows_tokens:
        yield "  ? " + translate("lengths are not known: name the --tokenizer")
    for name in (*FAULTS, *NOTES):
        if name in found.findings:
            seen = found.findings[name]
            mark = "✗" if name in FAULTS else "·"
            share = f"{seen.number / found.records:.2%}"
            yield f"  {mark} {name}: {seen.number:,} ({share}): {translate(MEANINGS[name])}"
            yield "      " + ", ".join(seen.places) + (" …" if seen.number > len(seen.places) else "")
    if not found.findings:
        yield "  ✓ " + translate("no record stands out")
    if judgement is not None:
        yield f"  {'✓' if judgement.status == 'usual' else '·'} {said(judgement.text)}"


def _as_json(found: Found, judgement: Judgement | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "records": found.records,
        "kinds": found.kinds,
        "tokens": found.tokens,
        "learned_tokens": found.learned or None,
        "characters": found.characters,
        "findings": {name: asdict(seen) for name, seen in found.findings.items()},
        "tokens_per_parameter": None
        if judgement is None
        else {"status": judgement.status, "text": str(judgement.text)},
    }
