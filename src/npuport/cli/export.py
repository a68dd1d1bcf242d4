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
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=DTYPE[AXES]",
            help="An input: image=float32[batch,3,224,224]; an axis with a name is dynamic. Values of ids: "
            "ids=int64[batch,sequence]:0..999.",
        ),
    ] = None,
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
    cache: Annotated[
        bool,
        typer.Option("--cache", help="Of a decoder in a Hugging Face folder: keys and values are inputs and outputs."),
    ] = False,
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
            inputs=tuple(inputs or ()),
            output=output,
            checkpoint=checkpoint,
            checkpoint_key=checkpoint_key,
            arguments=arguments,
            sizes=tuple(sizes or ()),
            output_names=tuple(name.strip() for name in output_names.split(",") if name.strip()),
            opset=opset,
            cache=cache,
        )
    )


@app.command(short_help="Build the ATC command for an ONNX model, checked.")
@guard()
def atc(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The ONNX model.")],
    *,
    soc: Annotated[str, typer.Option("--soc", metavar="CHIP", help="The chip of the inference: Ascend310P3, …")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="The .om without its ending.", show_default="as MODEL")
    ] = "",
    input_shape: Annotated[
        str,
        typer.Option(
            "--input-shape",
            metavar="TEXT",
            help='"image:1,3,224,224;ids:1,-1": by input; -1 goes with profiles.',
            show_default="as the model has them",
        ),
    ] = "",
    dynamic_batch: Annotated[str, typer.Option("--dynamic-batch", metavar="N,N", help="Batches: 1,2,4,8.")] = "",
    dynamic_image_size: Annotated[
        str, typer.Option("--dynamic-image-size", metavar="H,W;H,W", help="Heights and widths: 416,416;832,832.")
    ] = "",
    dynamic_dims: Annotated[
        str,
        typer.Option("--dynamic-dims", metavar="N,N;N,N", help="Profiles: a size for each -1, in order."),
    ] = "",
    input_format: Annotated[
        str,
        typer.Option("--input-format", metavar="NCHW|NCDHW|ND", help="Of all inputs.", show_default="by the inputs"),
    ] = "",
    output_type: Annotated[
        str, typer.Option("--output-type", metavar="TYPE", help="FP32, FP16, … of the outputs, or NODE:0:FP16.")
    ] = "",
    out_nodes: Annotated[
        str, typer.Option("--out-nodes", metavar="NAME;NAME", help="Outputs, by name or as NODE:0.")
    ] = "",
    precision_mode: Annotated[
        str,
        typer.Option("--precision-mode", metavar="MODE", help="A value of --precision_mode_v2 or --precision_mode."),
    ] = "",
    insert_op_conf: Annotated[
        str, typer.Option("--insert-op-conf", metavar="FILE", help="An AIPP configuration, which is checked too.")
    ] = "",
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="Any further option of ATC.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the command as a script instead.")
    ] = None,
) -> None:
    """Build the ATC command that compiles an ONNX model into an .om, and check it against CANN's documents.

    Ends with 1 and without a command when ATC would refuse it. ATC itself is part of CANN and is not run.
    """
    from npuport.cli.export_atc import build
    from npuport.errors import UserError
    from npuport.export.atc.building import Wish

    further = {}
    for text in option or ():
        name, equals, value = text.removeprefix("--").partition("=")
        if not equals:
            raise UserError("--option {text} is not understood. Write NAME=VALUE such as log=error.", text=text)
        further[name.replace("-", "_")] = value
    wish = Wish(
        soc,
        output or str(model.with_suffix("")),
        input_shape=input_shape,
        dynamic_batch_size=dynamic_batch,
        dynamic_image_size=dynamic_image_size,
        dynamic_dims=dynamic_dims,
        input_format=input_format,
        output_type=output_type,
        out_nodes=out_nodes,
        precision=precision_mode,
        insert_op_conf=insert_op_conf,
        further=further,
    )
    raise SystemExit(build(model, wish, write))


@app.command("check-atc", short_help="Check ATC commands that you have.")
@guard()
def check_atc(
    command: Annotated[
        str,
        typer.Argument(
            metavar="FILE|COMMAND",
            help='A shell script or Markdown document with calls of atc, or one: "atc --model=…".',
        ),
    ],
    *,
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE", help="The ONNX model.", show_default="the command's, if it is there"),
    ] = None,
) -> None:
    """Check ATC commands against what CANN documents: options, exclusions, shapes, profiles, chip, AIPP, operators.

    Ends with 1 where ATC would refuse a command. Values that only the shell knows ($soc) are not checked.
    """
    from npuport.cli.export_atc import check

    raise SystemExit(check(command, model))


@app.command(short_help="Write the inference of an .om and its comparison with ONNX.")
@guard()
def inference(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The ONNX model that the .om was compiled from.")],
    *,
    om: Annotated[str, typer.Option("--om", metavar="FILE", help="The .om, as a path on the NPU machine.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where everything is written.")],
    dynamic: Annotated[
        str,
        typer.Option(
            "--dynamic", metavar="batch|image|dims|shape", help="How the .om was compiled, if its sizes vary."
        ),
    ] = "",
    sizes: Annotated[
        list[str] | None, typer.Option("--size", metavar="NAME=SIZE", help="The size of an axis that is not fixed.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=PATH", help="An .npy file, or a folder with some, instead of random values."
        ),
    ] = None,
    number: Annotated[int, typer.Option("--number", min=1, metavar="N", help="Samples of random values.")] = 4,
) -> None:
    """Write inputs, the command of ais_bench that runs the .om on them, and a script that compares its outputs with
    those of onnxruntime: cosine similarity, largest difference, and that over the largest value.
    """
    from npuport.cli.export_inference import write_inference

    write_inference(model, om, output, dynamic, sizes or (), inputs or (), number)
