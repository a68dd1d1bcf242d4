"""`npuport model`: choosing, measuring and evaluating language models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npuport.cli.shared import guard

app = typer.Typer(
    help="Measure language models on the device that is there.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def model() -> None:
    """Measure language models on the device that is there."""


@app.command(short_help="Measure how fast a model answers in a chat.")
@guard()
def bench(
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="A Hugging Face model, or its config.json.")],
    *,
    device: Annotated[str, typer.Option("--device", help="auto, npu, npu:1, cuda, cuda:1 or cpu.")] = "auto",
    dtype: Annotated[
        str, typer.Option("--dtype", help="auto (the checkpoint's), bfloat16, float16 or float32.")
    ] = "auto",
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="Only the config is read: speed and memory of a model to come.")
    ] = False,
    own_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let Python files of the folder run, where the model has some.")
    ] = False,
    batches: Annotated[str, typer.Option("--batch", metavar="N,…", help="Chats at the same time.")] = "1",
    contexts: Annotated[str, typer.Option("--context", metavar="N,…", help="Tokens of the first prompt.")] = "512",
    turns: Annotated[int, typer.Option("--turns", min=1, help="Messages of the user in each chat.")] = 3,
    message: Annotated[int, typer.Option("--message-tokens", min=1, help="Tokens of each later message.")] = 32,
    answer: Annotated[int, typer.Option("--answer-tokens", min=2, help="Tokens of each answer.")] = 64,
    warm_ups: Annotated[int, typer.Option("--warm-ups", min=0, help="Chats of each kind before those that count.")] = 1,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Chats of each kind that count.")] = 3,
    need: Annotated[
        float | None, typer.Option("--need", min=0, metavar="RATE", help="Tokens per second that each chat must get.")
    ] = None,
    need_first: Annotated[
        str, typer.Option("--need-first", metavar="TIME", help="The longest time to a first token: 200ms, 1.5s.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure chats of several turns: time to the first token, time of each further one, rates, and memory.

    Keys and values of earlier turns are kept, as chat servers do; the time to the first token without that is measured
    beside it. Ends with 1 when --need or --need-first is not met.
    """
    from npuport.cli.model_bench import Options, bench_folder

    bench_folder(
        path,
        Options(
            device=device,
            dtype=dtype,
            random_weights=random_weights,
            own_code=own_code,
            batches=batches,
            contexts=contexts,
            turns=turns,
            message=message,
            answer=answer,
            warm_ups=warm_ups,
            repeats=repeats,
            need=need,
            need_first=need_first,
        ),
        as_json=as_json,
    )
