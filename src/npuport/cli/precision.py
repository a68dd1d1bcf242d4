"""`npuport precision`: whether the numbers of two runs agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from npuport.cli.shared import CLEAN, FINDINGS, guard, print_json, write_aside

if TYPE_CHECKING:
    from npuport.findings import Sentence
    from npuport.precision.curves.curve import Run
    from npuport.precision.curves.judging import Judgement

app = typer.Typer(help="Say whether the numbers of two runs agree.", no_args_is_help=True, rich_markup_mode=None)


@app.command(short_help="Compare the loss and gradient norm of two runs.")
@guard()
def curves(
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="The log of the run that is right.")],
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The log of the run to judge.")],
    *,
    again: Annotated[
        Path | None,
        typer.Option(
            "--again", metavar="LOG", help="A second run of the reference: how far it is from itself is no fault."
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with charts.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the training curves of two runs by published criteria.

    A log may be what a script printed (nanoGPT, transformers, Megatron, …), JSON lines, trainer_state.json, a CSV of
    Lightning or exported from W&B, or TensorBoard's event files.

    Exit codes: 0 the curves agree; 1 they do not; 2 misuse, or a log without curves.
    """
    from npuport.precision.curves.judging import judge
    from npuport.precision.curves.reading import read_run

    runs = [read_run(path) for path in (reference, candidate, again) if path is not None]
    judgement = judge(*runs)
    if html is not None:
        write_aside(html, _page(runs, judgement).encode())
    if json_:
        print_json(_as_json(runs, judgement))
    else:
        print("\n".join(_as_text(runs, judgement)))
    raise SystemExit(CLEAN if judgement.passes else FINDINGS)


@app.command(short_help="Name the operators that break the numbers of a run.")
@guard()
def compare(
    reference: Annotated[
        Path, typer.Argument(metavar="REFERENCE", help="The recorded steps of the run that is right.")
    ],
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="The recorded steps of the run to judge.")],
    *,
    msprobe: Annotated[
        Path | None,
        typer.Option(
            "--msprobe", metavar="FILE", help="Write the table of `msprobe compare` too, with its results; a CSV."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with the model, all calls and histograms."),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            "--rename",
            metavar="REFERENCE=CANDIDATE",
            help="What a part of module paths is called in both, such as attn=self_attn; can be given several times.",
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find the operator calls that break the numbers: compare the recorded steps of two runs (`npuport run --dump`).

    Suspects are, surest first: values that become NaN or infinite in a call, other operators, other arguments, inputs
    that no recorded operator made and that differ, other dtypes, and calls whose own error, replayed alone in float64
    with their own inputs, is larger than that of the same call of the reference by more than other calls differ.

    Exit codes: 0 nothing is suspected; 1 something is; 2 misuse, or files that are no recorded steps.
    """
    import os

    from npuport.cli.precision_compare import compare_folders

    # The comparison computes on the CPU, also where torch_npu is installed and CANN is not.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    raise SystemExit(compare_folders(reference, candidate, json_, msprobe, html, rename or ()))


@app.command(short_help="Say what two runs differ in before their first operator.")
@guard()
def preflight(
    reference: Annotated[
        Path,
        typer.Argument(metavar="REFERENCE", help="What `npuport run --preflight DIR` wrote: the folder, or a file."),
    ],
    candidate: Annotated[
        Path | None,
        typer.Argument(metavar="[CANDIDATE]", help="The same of the run to judge.", show_default=False),
    ] = None,
    *,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare what two runs are made of: model, first weights, batches, optimizer, precision, seeds, versions.

    What differs is ranked by how likely it explains a difference of the losses, each with the next step. Of one run
    alone it says what is random in it and what a comparison will not know.

    Exit codes: 0 nothing important differs; 1 something does; 2 misuse, or files that are no facts of a run.
    """
    from npuport.cli.precision_preflight import preflight as compare_facts

    raise SystemExit(compare_facts(reference, candidate, json_))


@app.command("convert-dump", short_help="Write recorded steps in the layout of msprobe.")
@guard()
def convert_dump(
    recorded: Annotated[Path, typer.Argument(metavar="DUMP", help="The recorded steps of a run, or the file of one.")],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write; a new folder.")],
) -> None:
    """Write recorded steps (`npuport run --dump`) as dumps of msprobe: dump.json, construct.json, stack.json, tensors.

    `msprobe compare` and `npuport precision compare` read them.

    Operator calls become APIs of type Aten, module calls Module entries.
    """
    import os

    from npuport.cli import precision_convert_dump

    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    precision_convert_dump.convert_dump(recorded, output)


@app.command(short_help="Check what the ranks of one run did together.")
@guard()
def ranks(
    folder: Annotated[Path, typer.Argument(metavar="DUMP", help="The recorded steps of all ranks.")],
    *,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the recorded steps of several ranks (`npuport run --dump`); no other run is needed.

    Each collective is computed again in float64 from what the ranks put in: a wrong sum, a missing rank, a result that
    was read too early. And parameters of which the ranks have copies must stay the same.

    Exit codes: 0 nothing is wrong; 1 something is; 2 misuse, or files that are no recorded steps.
    """
    import os

    from npuport.cli.precision_ranks import check_ranks

    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    raise SystemExit(check_ranks(folder, json_))


@app.command("check-ops", short_help="Judge every recorded operator call alone.")
@guard()
def check_ops(
    dump: Annotated[
        Path,
        typer.Argument(metavar="DUMP", help="The recorded steps of a run or one of them, or a dump of msprobe."),
    ],
    *,
    only: Annotated[
        str, typer.Option("--only", metavar="GLOB", help="Only these operators or modules, such as layers.7.attn.")
    ] = "*",
    device: Annotated[
        str, typer.Option("--device", metavar="D", help="Execute each call again on npu, cuda or cpu, and judge that.")
    ] = "",
    reference: Annotated[
        Path | None,
        typer.Option("--reference", metavar="DUMP", help="The same steps of another device: errors may be as large."),
    ] = None,
    repro: Annotated[
        Path | None, typer.Option("--repro", metavar="DIR", help="Write a script of its own for each wrong call.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Judge every recorded operator call by its own inputs: its result against float64 on the CPU. No second run and no
    device is needed; with one (`--device`) each call is executed there again.

    Example: npuport precision check-ops npu_dump/ --only layers.7.attn --repro bug/

    Exit codes: 0 every call that can be judged is right; 1 one is not; 2 misuse, or files that are no recorded steps.
    """
    import os

    from npuport.cli.precision_check_ops import check_folder

    # torch_npu is loaded for --device npu only: it may be installed where CANN is not.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    raise SystemExit(check_folder(dump, only, device, reference, repro, json_))


@app.command(short_help="Say what is wrong with gradients, weights and updates of a training.")
@guard()
def state(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="What `npuport run --monitor DIR` wrote: the folder.")],
    candidate: Annotated[
        Path | None,
        typer.Argument(metavar="[CANDIDATE]", help="The same of a run to compare it with.", show_default=False),
    ] = None,
    *,
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer", metavar="T", help="Judge texts of kept batches too: a name or folder of transformers'."
        ),
    ] = "",
    all_layers: Annotated[bool, typer.Option("--all", help="Every layer, however many.")] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page with the layers over time, curves and alerts."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the layers of a training over its steps, and what is wrong with it.

    Of two runs the gradients of the first step are compared layer by layer, in the order of the backward pass: whether
    a difference jumps at one layer, or grows as noise does.

    Exit codes: 0 nothing is wrong; 1 something is; 2 misuse, or files that hold no training.
    """
    import os

    from npuport.cli.precision_state import state as judge_state

    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    raise SystemExit(judge_state(run, candidate, tokenizer, all_layers, json_, html))


@app.command(short_help="Find where NaN or infinity begins in a run.")
@guard()
def overflow(
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="The recorded steps of a run, or a dump of msprobe.")],
    *,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find the first operator call that turns finite values into NaN or infinity, in all steps and ranks of one run
    (`npuport run --dump`); no other run is needed.

    A mask of -inf that a softmax takes is none. With it: the rank that had it first, the loss scale over the steps, the
    odd batch, and what does not fit into float16.

    Exit codes: 0 nothing, or the loss scaler caught it; 1 a call is named; 2 misuse, or no recorded steps.
    """
    import os

    from npuport.cli.precision_overflow import look_into

    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    raise SystemExit(look_into(dump, json_))


@app.command(
    short_help="Find which operators must compute in higher precision for a difference to go.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@guard()
def bisect(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="What trains, after `--`.")],
    *,
    by: Annotated[
        str,
        typer.Option("--by", metavar="HOW", help="float64 (on the CPU), cpu (same dtype), or float32 (on the device)."),
    ] = "float64",
    check: Annotated[
        str, typer.Option("--check", metavar="COMMAND", help="Ends with 0 if a run is right; NPUPORT_LOG is its log.")
    ] = "",
    reference: Annotated[
        Path | None,
        typer.Option("--reference", metavar="LOG", help="The log of a run that is right: curves agree."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, metavar="N", help="At most so many runs.")] = 40,
    keep: Annotated[
        Path, typer.Option("--keep", metavar="DIR", help="Logs and answers; the same search goes on from there.")
    ] = Path("npuport-bisect"),
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a training again and again with some operators in higher precision, half by half, until it is known which
    must be for the run to be right. Without a judge a run is right if every loss and norm in its log is finite.

    Example: npuport precision bisect --reference gpu.log -- python train.py --epochs 1

    Exit codes: 0 found, or right as it is; 1 not found, or the limit of runs is reached; 2 misuse.
    """
    from npuport.cli.precision_bisect import bisect as search

    raise SystemExit(search(command, by, check, reference, runs, keep, json_))


@app.command(short_help="Run a training in which each module gets the input that it had in a recorded run.")
@guard()
def substitute(
    reference: Annotated[
        Path, typer.Argument(metavar="REFERENCE", help="The recorded steps, with tensors, of the run that is right.")
    ],
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="What trains, after `--`.")],
    *,
    step: Annotated[int, typer.Option("--step", min=0, metavar="N", help="Which optimizer step, counted from 0.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a training in which each module gets the input that it had in the reference, so that errors do not add up:
    how far each module is off by itself, and where the code between modules is.

    Example: npuport precision substitute gpu_dump/ -- python train.py --epochs 1

    Exit codes: 0 no module is further off than the others; 1 one is; 2 misuse, or nothing was called as there.
    """
    from npuport.cli.precision_substitute import substitute as run_with

    raise SystemExit(run_with(reference, command, step, json_))


def _as_text(runs: list[Run], judgement: Judgement) -> Iterator[str]:
    from npuport.report.language import translate

    yield translate("The curves agree") if judgement.passes else translate("The curves do not agree")
    for run in runs:
        metrics = ", ".join(f"{metric} {len(curve.values):,}" for metric, curve in run.curves.items())
        yield f"  {run.name} ({run.form}): {metrics}"
    yield ""
    for one in judgement.measured:
        verdict = (
            translate("holds")
            if one.holds
            else translate("within the reference's own fluctuation")
            if one.is_own_fluctuation
            else translate("FAILS")
        )
        own = "" if one.own is None else f"   {translate('reference against itself')} {one.own:.3%}"
        yield f"  {one.criterion.name:24} {one.absolute:<10.3g} {one.relative:<9.3%} {_limits(one):18} {verdict}{own}"
        yield f"      [{one.criterion.basis}]"
    if judgement.observations:
        yield ""
    for seen in judgement.observations:
        yield f"  {'✗' if seen.is_failure else '·'} {_said(seen.text)}"


def _limits(one: Any) -> str:
    absolute, relative = one.criterion.absolute, one.criterion.relative
    parts = [f"{absolute:g}" if absolute is not None else "", f"{relative:.1%}" if relative is not None else ""]
    return "≤ " + " | ".join(part for part in parts if part)


def _said(sentence: Sentence) -> str:
    from npuport.report.language import translate

    values = {name: translate(str(value)) if name == "which" else value for name, value in sentence.values.items()}
    return translate(sentence.template, **values)


def _as_json(runs: list[Run], judgement: Judgement) -> dict[str, Any]:
    return {
        "version": 1,
        "reference": runs[0].name,
        "candidate": runs[1].name,
        "passes": judgement.passes,
        "criteria": [
            {
                "name": one.criterion.name,
                "metric": one.criterion.metric,
                "absolute": one.absolute,
                "relative": one.relative,
                "limits": _limits(one),
                "own": one.own,
                "holds": one.holds,
                "is_own_fluctuation": one.is_own_fluctuation,
                "source": str(one.criterion.basis),
            }
            for one in judgement.measured
        ],
        "observations": [
            {"name": one.name, "text": str(one.text), "is_failure": one.is_failure, "step": one.step}
            for one in judgement.observations
        ],
        "steps": {metric: len(pair.steps) for metric, pair in judgement.pairs.items()},
    }


def _page(runs: list[Run], judgement: Judgement) -> str:
    from npuport.report.curves_page import chart_of, curves_page

    marks = [one.step for one in judgement.observations if one.step is not None]
    charts = [
        chart_of(metric, pair.steps, pair.reference, pair.candidate, marks) for metric, pair in judgement.pairs.items()
    ]
    sentences = {
        "failures": [_said(one.text) for one in judgement.observations if one.is_failure],
        "notes": [_said(one.text) for one in judgement.observations if not one.is_failure],
    }
    return curves_page(_as_json(runs, judgement), charts, sentences)
