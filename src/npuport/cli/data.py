"""`npuport data`: training data of language models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npuport.cli.shared import guard

app = typer.Typer(
    help="Prepare the training data of language models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def data() -> None:
    """Prepare the training data of language models."""


@app.command(short_help="Drop texts that spoil a training, each with its reason.")
@guard()
def clean(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG|INPUT...", help="A pipeline file (.yaml), or JSONL or Parquet files or folders."
        ),
    ] = None,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="A new folder.", show_default="the pipeline file's")
    ] = "",
    text: Annotated[
        str, typer.Option("--text", metavar="FIELD", help="The field with the text.", show_default="text")
    ] = "",
    form: Annotated[
        str, typer.Option("--format", metavar="jsonl|parquet", help="Of what is kept.", show_default="jsonl")
    ] = "",
    language: Annotated[
        list[str] | None, typer.Option("--language", metavar="CODE", help="A language to keep, such as en.")
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", min=0, metavar="N", help="Tasks at the same time.", show_default="cores")
    ] = 0,
    write_default: Annotated[
        Path | None,
        typer.Option("--write-default", metavar="FILE", help="Write a pipeline file with every key, and end."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Drop texts that spoil a training: garbled, encoded, repeated, leaked from test sets, ….

    Every record is kept as it stood, or dropped with its reason. A run that was ended goes on where it was.
    """
    from npuport.cli.data_clean import Options, clean_files

    options = Options(output, text, form, tuple(language or ()), workers, write_default, as_json=json_)
    clean_files(inputs or [], options)


@app.command(short_help="Show what cleaning dropped, and why.")
@guard()
def dropped(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that `npuport data clean` wrote.")],
    *,
    reason: Annotated[str, typer.Option("--reason", help="Only what was dropped for this.", show_default="all")] = "",
    first: Annotated[int, typer.Option("--first", min=0, metavar="N", help="The first record to show, from 0.")] = 0,
    number: Annotated[int, typer.Option("--number", min=0, metavar="N", help="Records to show.")] = 5,
    json_: Annotated[bool, typer.Option("--json", help="Print the records as JSON, one a line.")] = False,
) -> None:
    """Show dropped records: where each stood, why it was dropped, and its text."""
    from npuport.cli.data_dropped import show

    show(folder, reason=reason, first=first, number=number, as_json=json_)


@app.command(short_help="Mix texts of several sources by weights.")
@guard()
def mix(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="CONFIG|NAME=PATH:WEIGHT...", help="A pipeline file (.yaml), or sources with weights."),
    ],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="A new folder.", show_default="the pipeline file's")
    ] = "",
    size: Annotated[
        int, typer.Option("--size", min=0, metavar="N", help="Of the mixture.", show_default="as much as there is")
    ] = 0,
    unit: Annotated[
        str,
        typer.Option(
            "--unit",
            metavar="documents|characters|tokens",
            help="What weights and size count.",
            show_default="documents",
        ),
    ] = "",
    tokenizer: Annotated[str, typer.Option("--tokenizer", metavar="FOLDER", help="For tokens.")] = "",
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Another gives another order.")] = 0,
    workers: Annotated[
        int, typer.Option("--workers", min=0, metavar="N", help="Tasks at the same time.", show_default="cores")
    ] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Mix texts of several sources by weights; every stretch of the result has them, and a seed decides it wholly."""
    from npuport.cli.data_mix import Options, mix_files

    mix_files(sources, Options(output, size, unit, tokenizer, seed, workers, as_json=json_))


@app.command(short_help="Check training data before it is used.")
@guard()
def check(
    inputs: Annotated[list[str], typer.Argument(metavar="DATA...", help="JSONL or Parquet: files, folders, patterns.")],
    *,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", metavar="FOLDER", help="Count tokens with it; not needed for ids.")
    ] = "",
    max_length: Annotated[
        int | None, typer.Option("--max-length", min=1, metavar="N", help="Tokens that the training takes of a record.")
    ] = None,
    vocabulary: Annotated[
        int | None, typer.Option("--vocab", min=1, metavar="N", help="Tokens of the vocabulary.", show_default="its")
    ] = None,
    parameters: Annotated[
        float | None, typer.Option("--parameters", min=1, metavar="N", help="Size of the model to pretrain, as 7e9.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Find records that end a training with an error or teach nothing, and say what to know of the others.

    Documents, dialogues (messages, ShareGPT, Alpaca, prompt and completion, preferences) and token ids. Nothing is
    changed: `npuport data clean` drops. Ends with 1 when a record is at fault; notes do not count.
    """
    from npuport.cli.data_check import check_files

    raise SystemExit(
        check_files(
            inputs,
            tokenizer=tokenizer,
            max_length=max_length,
            vocabulary=vocabulary,
            parameters=parameters,
            as_json=json_,
        )
    )


@app.command(short_help="Pack documents or dialogues into samples of one length.")
@guard()
def pack(
    inputs: Annotated[list[Path], typer.Argument(metavar="FILE...", help="JSONL or Parquet files.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="A new folder for the samples.")],
    purpose: Annotated[str, typer.Option("--for", metavar="pretraining|fine-tuning", help="What the samples are for.")],
    max_length: Annotated[int, typer.Option("--max-length", min=2, metavar="N", help="Tokens of each sample.")],
    form: Annotated[str, typer.Option("--format", metavar="arrow|megatron|pt", help="What is written.")] = "arrow",
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", metavar="FOLDER", help="A tokenizer's folder or name; not needed for ids.")
    ] = "",
    field: Annotated[
        str,
        typer.Option("--field", help="The field with the text, messages or ids.", show_default="text, or messages"),
    ] = "",
    labels: Annotated[
        str, typer.Option("--labels", metavar="FIELD", help="Labels beside given ids; negative: not in the loss.")
    ] = "",
    role: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="ROLE=TOKENS", help="What opens a message of a role: text, or ids as 1,2,3."),
    ] = None,
    end_of_turn: Annotated[
        str, typer.Option("--end-of-turn", metavar="TOKENS", help="What ends a message, with --role.")
    ] = "",
    end_of_document: Annotated[
        int, typer.Option("--end-of-document", metavar="ID", help="The token behind each document.", show_default="eos")
    ] = -1,
    pad: Annotated[
        int,
        typer.Option("--pad", metavar="ID", help="The padding token.", show_default="the tokenizer's, or 0"),
    ] = -1,
    too_long: Annotated[
        str,
        typer.Option("--too-long", metavar="split|cut|skip", help="What becomes of dialogues longer than a sample."),
    ] = "split",
    json_: Annotated[bool, typer.Option("--json", help="Print the statistics as JSON.")] = False,
) -> None:
    """Pack documents or dialogues into samples of one length, and say what became of every token.

    Fine-tuning: several dialogues to a sample, each seeing only itself, and only answers in the loss. Pretraining:
    documents one after the other, cut into samples; every token is learned once.
    """
    from npuport.cli.data_pack import Options, pack_files

    pack_files(
        inputs,
        output,
        Options(
            purpose=purpose,
            max_length=max_length,
            form=form,
            tokenizer=tokenizer,
            field=field,
            labels=labels,
            roles=tuple(role or ()),
            end_of_turn=end_of_turn,
            end_of_document=end_of_document,
            pad=pad,
            too_long=too_long,
        ),
        as_json=json_,
    )


@app.command(short_help="Show packed samples, with what the loss counts.")
@guard()
def inspect(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder that `npuport data pack` wrote, or its file.")],
    *,
    first: Annotated[int, typer.Option("--first", min=0, metavar="N", help="The first sample to show, from 0.")] = 0,
    number: Annotated[int, typer.Option("--number", min=1, metavar="N", help="Samples to show.")] = 1,
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", metavar="FOLDER", help="Show tokens as text.", show_default="ids")
    ] = "",
) -> None:
    """Show packed samples: each dialogue with its bounds and positions, and what the loss counts in it.

    That is green in a terminal, and in [brackets] elsewhere.
    """
    from npuport.cli.data_inspect import show

    show(path, first=first, number=number, tokenizer=tokenizer)
