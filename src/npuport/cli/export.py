"""`npuport export`: from a trained model to an offline model for inference on NPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npuport.cli.shared import guard

app = typer.Typer(
    help="Turn a trained model into an offline model for inference on NPUs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def export() -> None:
    """Turn a trained model into an offline model for inference on NPUs."""


@app.command(short_help="Write a model as ONNX, compared with PyTorch.")
@guard()
def onnx(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="MODULE:CALLABLE or FILE.py:CALLABLE that gives a torch.nn.Module, or a Hugging Face folder.",
        ),
    ],
    *,
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            metavar="NAME=DTYPE[AXES]",
            help="An input: image=float32[batch,3,224,224]; an axis with a name is dynamic. Values of ids: "
            "ids=int64[batch,sequence]:0..999.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The ONNX file to write.")],
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="FILE", help="Weights: .pt, .pth or .safetensors, read as data alone."),
    ] = None,
    checkpoint_key: Annotated[
        str, typer.Option("--checkpoint-key", metavar="KEY", help="Where in the checkpoint the weights are.")
    ] = "",
    arguments: Annotated[
        str, typer.Option("--arguments", metavar="JSON", help='What the callable is called with: {"classes": 10}.')
    ] = "",
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", metavar="NAME=SIZE,SIZE", help="Sizes of a dynamic axis to export and compare with."),
    ] = None,
    output_names: Annotated[
        str, typer.Option("--output-names", metavar="NAME,NAME", help="Names of the outputs, in order.")
    ] = "",
    opset: Annotated[
        int, typer.Option("--opset", min=11, max=18, help="The operator set; ATC's documents name 11 to 18.")
    ] = 18,
) -> None:
    """Write a model as ONNX, if onnxruntime computes with it what PyTorch computes; otherwise no file.

    Each dynamic axis is compared with several sizes. The model runs on the CPU, also where its code names CUDA or NPUs.
    """
    from npuport.cli.export_onnx import Options, export_onnx

    export_onnx(
        Options(
            model=model,
            inputs=tuple(inputs),
            output=output,
            checkpoint=checkpoint,
            checkpoint_key=checkpoint_key,
            arguments=arguments,
            sizes=tuple(sizes or ()),
            output_names=tuple(name.strip() for name in output_names.split(",") if name.strip()),
            opset=opset,
        )
    )
