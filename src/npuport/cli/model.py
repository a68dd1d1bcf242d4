"""`npuport model`: choosing, measuring and evaluating language models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npuport.cli.shared import codes, guard
from npuport.errors import UserError

app = typer.Typer(
    help="Choose, measure and evaluate language models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def model() -> None:
    """Choose, measure and evaluate language models."""


@app.command(short_help="Name models that meet a need on given devices.")
@guard()
def choose(
    *,
    task: Annotated[
        str,
        typer.Option("--task", help="chat, writing, code, summarization, translation, classification or extraction."),
    ] = "chat",
    rate: Annotated[
        float | None, typer.Option("--need", min=0, metavar="RATE", help="Tokens per second that each chat must get.")
    ] = None,
    quality: Annotated[
        float | None, typer.Option("--mmlu", min=0, max=100, metavar="PERCENT", help="The least published MMLU.")
    ] = None,
    licences: Annotated[
        str, typer.Option("--licence", metavar="NAME,…", help="Licences that will do, such as Apache-2.0.")
    ] = "",
    served: Annotated[
        bool, typer.Option("--served", help="Only what vllm-ascend says it serves on this family of chips.")
    ] = False,
    context: Annotated[int, typer.Option("--context", min=1, help="Tokens of a chat in the end.")] = 4096,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Chats at the same time.")] = 1,
    chip: Annotated[str, typer.Option("--chip", help="The chip, such as Ascend910B3.")] = "Ascend910B3",
    devices: Annotated[int, typer.Option("--devices", min=1, help="Devices that share one model.")] = 1,
    memory: Annotated[
        float | None, typer.Option("--memory", min=1, metavar="GIB", help="Of one device, instead of the chip's.")
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option("--bandwidth", min=1, metavar="GBS", help="GB/s of one device's memory.")
    ] = None,
    reserve: Annotated[
        float, typer.Option("--reserve", min=0, max=0.9, help="Share of the memory that is left free.")
    ] = 0.1,
    dtype: Annotated[str, typer.Option("--dtype", help="Of the weights: bfloat16, float16 or int8.")] = "bfloat16",
    configs: Annotated[
        list[Path] | None,
        typer.Option("--config", metavar="PATH", help="A config.json to consider too; can be given several times."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the arithmetic and sources of the first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Name models of Ascend's libraries that meet a need, with reasons, and why the others do not.

    Memory and the highest possible rate are computed from each model's sizes. Ends with 1 when nothing meets the need.
    """
    from npuport.cli.model_choose import Options, choose_model

    choose_model(
        Options(
            task=task,
            rate=rate,
            quality=quality,
            licences=tuple(one.lower() for one in codes([licences])) if licences else (),
            served=served,
            context=context,
            batch=batch,
            chip=chip,
            devices=devices,
            memory=memory,
            bandwidth=bandwidth,
            reserve=reserve,
            dtype=dtype,
            configs=tuple(configs or ()),
        ),
        explain=explain,
        as_json=as_json,
    )


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


@app.command(short_help="Evaluate a model's answers with lm-eval.")
@guard()
def evaluate(
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="A Hugging Face model with its weights.")],
    *,
    tasks: Annotated[
        str, typer.Option("--tasks", metavar="NAME,…", help="lm-eval's names, such as mmlu,hellaswag,truthfulqa,glue.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option("--task-folder", help="Tasks of your own, as lm-eval's YAML files.")
    ] = None,
    rouge: Annotated[
        Path | None,
        typer.Option("--rouge", metavar="FILE", help="JSONL of inputs and right outputs to score by ROUGE."),
    ] = None,
    rouge_fields: Annotated[
        str, typer.Option("--rouge-fields", metavar="INPUT,OUTPUT", help="The fields of that file.")
    ] = "input,output",
    rouge_tokens: Annotated[int, typer.Option("--rouge-tokens", min=1, help="Tokens of its longest answers.")] = 256,
    device: Annotated[str, typer.Option("--device", help="auto, npu, npu:1, cuda, cuda:1 or cpu.")] = "auto",
    dtype: Annotated[
        str, typer.Option("--dtype", help="auto (the checkpoint's), bfloat16, float16 or float32.")
    ] = "auto",
    few_shot: Annotated[
        int | None, typer.Option("--few-shot", min=0, help="Examples before each question.", show_default="the task's")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first samples of each task: for trying out.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples at the same time.")] = 1,
    chat_template: Annotated[
        bool,
        typer.Option("--chat-template", help="Ask in the model's chat template, for models that were tuned to it."),
    ] = False,
    own_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let Python files of the folder run, where the model has some.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="lm-eval's results with every sample.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as one JSON document.")] = False,
) -> None:
    """Score a model's answers with lm-eval on the device that is there.

    `npuport model compare` says whether the scores of two devices are the same.
    """
    from npuport.cli.model_evaluate import evaluate_folder
    from npuport.llm.evaluation.running import Evaluation, Rouge

    fields = tuple(field.strip() for field in rouge_fields.split(","))
    if len(fields) != 2 or not all(fields):
        raise UserError("--rouge-fields takes two names, such as input,output, not {given}.", given=rouge_fields)
    wanted = Evaluation(
        tasks=tuple(codes([tasks])) if tasks else (),
        folder=folder,
        rouge=Rouge(rouge, fields[0], fields[1], rouge_tokens) if rouge is not None else None,
        few_shot=few_shot,
        limit=limit,
        batch=batch,
        chat_template=chat_template,
    )
    if not wanted.tasks and wanted.rouge is None:
        raise UserError("say what to evaluate: --tasks mmlu,hellaswag, or --rouge FILE.")
    evaluate_folder(path, device, dtype, wanted, own_code=own_code, output=output, as_json=as_json)


@app.command(short_help="Compare the scores of two evaluations.")
@guard()
def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Results of lm-eval, such as those of the GPU.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Results of the same tasks, such as the NPU's.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say whether two evaluations scored the same, as far as chance allows. Ends with 1 where one score does not.

    Both files are what `npuport model evaluate -o` or lm-eval wrote. With the samples of both, the answers are compared
    one by one.
    """
    from npuport.cli.model_compare import compare_files

    compare_files(first, second, as_json=as_json)
