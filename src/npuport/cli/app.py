"""The commands of `npuport`, one module each."""

from __future__ import annotations

from typing import Annotated

import typer

from npuport import __version__
from npuport.cli.analyze import analyze
from npuport.cli.apex import app as apex
from npuport.cli.check_config import check_config
from npuport.cli.convert import convert
from npuport.cli.data import app as data
from npuport.cli.doctor import doctor
from npuport.cli.explain import explain
from npuport.cli.export import app as export
from npuport.cli.guide import guide
from npuport.cli.launch import launch
from npuport.cli.model import app as model
from npuport.cli.perf import app as perf
from npuport.cli.plan import plan
from npuport.cli.precision import app as precision
from npuport.cli.run import run
from npuport.cli.shared import guard
from npuport.cli.undo import undo

app = typer.Typer(
    name="npuport",
    help="Move PyTorch training from NVIDIA GPUs to Huawei Ascend NPUs.",
    epilog="Exit codes: 0 nothing to report; 1 findings, or files that would change; 2 misuse or unreadable input.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="Say what a source tree needs before it trains on an NPU.")(guard()(analyze))
app.command(short_help="Rewrite CUDA code for the NPU.")(guard()(convert))
app.command(short_help="Take a conversion in place back.")(guard()(undo))
app.command(short_help="Write a migration guide for one source tree.")(guard()(guide))
app.command(short_help="Say what on this machine keeps training from running on an NPU.")(guard()(doctor))
app.command(short_help="Explain a rule, torch.cuda name, variable, library or chip.")(guard()(explain))
app.command(short_help="Turn a CUDA job's launcher into one for NPUs.")(guard()(launch))
app.command(short_help="Divide the training of a large model over devices.")(guard()(plan))
app.command(short_help="Check a training's configuration before it starts.")(guard()(check_config))
app.add_typer(precision, name="precision")
app.add_typer(perf, name="perf")
app.add_typer(data, name="data")
app.add_typer(model, name="model")
app.add_typer(export, name="export")
app.add_typer(apex, name="apex")
# Everything after the command's own first word belongs to that command.
app.command(
    short_help="Run a command on the NPU, or on the simulated NPU.",
    context_settings={"allow_interspersed_args": False},
)(guard()(run))


def _version(wanted: bool) -> None:
    if wanted:
        print(f"npuport {__version__}")
        raise typer.Exit


@app.callback()
def npuport(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Move PyTorch training from NVIDIA GPUs to Huawei Ascend NPUs."""
