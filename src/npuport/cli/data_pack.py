"""`npuport data pack`: options to a job, and its statistics in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.llm.packing.encoding import RoleTokens
    from npuport.llm.packing.job import Job

_NAMED = 5  # records named in the terminal; statistics.json names all


@dataclass(frozen=True)
class Options:
    """The command's options as they were given; "" and -1 stand for none."""

    purpose: str
    max_length: int
    form: str
    tokenizer: str
    field: str
    labels: str
    roles: tuple[str, ...]
    end_of_turn: str
    end_of_document: int
    pad: int
    too_long: str


def pack_files(inputs: Sequence[Path], output: Path, options: Options, *, as_json: bool) -> None:
    """Pack the files into a new folder; print what became of the tokens."""
    needs_packages()
    from npuport.llm.packing.job import run

    _one_of("--for", options.purpose, ("pretraining", "fine-tuning"))
    _one_of("--format", options.form, ("arrow", "megatron", "pt"))
    _one_of("--too-long", options.too_long, ("split", "cut", "skip"))
    summary = run(_job(inputs, options), output).summary()
    if as_json:
        print(json.dumps(summary, indent=2, ensure_ascii=False))
    else:
        print("\n".join(in_words(summary, output)))


def needs_packages() -> None:
    """Say what to install where numpy or pyarrow is missing.

    Raises:
        UserError: one is.
    """
    from importlib.util import find_spec

    if find_spec("numpy") is None or find_spec("pyarrow") is None:
        raise UserError("npuport data takes the packages numpy and pyarrow:\n  pip install 'npuport[data]'")


def _one_of(option: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UserError("{option} takes {known}, not {given}.", option=option, known=", ".join(known), given=given)


def _job(inputs: Sequence[Path], options: Options) -> Job:
    from npuport.llm.packing.encoding import encode_by_roles, encode_by_template, encode_texts, load_tokenizer
    from npuport.llm.packing.job import Job

    tokenizer: Any = load_tokenizer(options.tokenizer) if options.tokenizer else None
    end: int | None = None
    if options.purpose == "pretraining":
        encode = encode_texts(tokenizer)
        eos = getattr(tokenizer, "eos_token_id", None)
        end = options.end_of_document if options.end_of_document >= 0 else eos
        if end is None:
            raise UserError("what ends a document? Give its id with --end-of-document, or a tokenizer that has one.")
    elif options.roles:
        encode = encode_by_roles(_roles(options, tokenizer), tokenizer)
    elif tokenizer is not None and tokenizer.chat_template:
        encode = encode_by_template(tokenizer)
    elif options.labels:
        encode = encode_texts(None)
    else:
        raise UserError(
            "what is an answer? Give a --tokenizer with a chat template, tokens of each --role, or ids with --labels."
        )
    own_pad = getattr(tokenizer, "pad_token_id", None)
    default = ("text" if options.purpose == "pretraining" else "messages") if not options.labels else "input_ids"
    return Job(
        inputs=inputs,
        field=options.field or default,
        encode=encode,
        max_length=options.max_length,
        pad=options.pad if options.pad >= 0 else (own_pad or 0),
        labels=options.labels or None,
        end=end,
        too_long=options.too_long,
        form=options.form,
    )


def _roles(options: Options, tokenizer: Any) -> RoleTokens:
    from npuport.llm.packing.encoding import RoleTokens

    opening = {}
    for given in options.roles:
        role, separator, tokens = given.partition("=")
        if not separator:
            raise UserError("--role takes ROLE=TOKENS, such as user=<|user|> or user=5,6, not {given}.", given=given)
        opening[role] = _ids(tokens, tokenizer)
    return RoleTokens(opening, _ids(options.end_of_turn, tokenizer))


def _ids(tokens: str, tokenizer: Any) -> list[int]:
    parts = tokens.split(",")
    if all(part.strip().isdigit() for part in parts):
        return [int(part) for part in parts]
    if not tokens:
        return []
    if tokenizer is None:
        raise UserError("{tokens} is text: name its tokenizer with --tokenizer, or give ids as 1,2,3.", tokens=tokens)
    ids: list[int] = tokenizer(tokens, add_special_tokens=False)["input_ids"]
    return ids


def in_words(summary: dict[str, Any], output: Path) -> list[str]:
    """The statistics, a line for each thing to know; what was left out is never silent."""
    from npuport.report.language import counted, translate

    tokens, lengths = summary["tokens"], summary["lengths"]
    lines = [
        translate(
            "{path}: {records} with {tokens} tokens",
            path=output,
            records=counted(summary["records"], "record"),
            tokens=f"{tokens['read']:,}",
        )
    ]
    if summary["samples"]:
        lines.append(
            translate(
                "{samples} of {length} tokens, filled to {share}",
                samples=counted(summary["samples"], "sample"),
                length=f"{summary['max_length']:,}",
                share=f"{summary['fill_rate']:.2%}",
            )
        )
    lines.append(translate("in the loss: {number} tokens", number=f"{tokens['in_loss']:,}"))
    shown = ", ".join(f"{name} {value:,.0f}" for name, value in lengths.items())
    lines.append(translate("tokens of a record: {lengths}", lengths=shown))
    if tokens["cut"]:
        lines.append(translate("cut off: {number} tokens, which are in no sample", number=f"{tokens['cut']:,}"))
    if tokens["answers_without_context"]:
        number = f"{tokens['answers_without_context']:,}"
        lines.append(
            translate(
                "not in the loss, for nothing stands before them that could predict them: {number} tokens of answers",
                number=number,
            )
        )
    if summary["too_long"]:
        lines.append(translate("longer than a sample: {places}", places=_named(summary["too_long"])))
    if summary["empty"]:
        lines.append(translate("empty, in no sample: {places}", places=_named(summary["empty"])))
    if summary["no_answer"]:
        lines.append(translate("no answer in the loss: {places}", places=_named(summary["no_answer"])))
    return lines


def _named(places: list[str]) -> str:
    from npuport.report.language import translate

    shown = ", ".join(places[:_NAMED])
    if len(places) > _NAMED:
        return shown + " " + translate("… and {number} more (statistics.json)", number=len(places) - _NAMED)
    return shown
