"""What `npuport export onnx` does and says."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.errors import UserError
from npuport.report.language import translate

if TYPE_CHECKING:
    from npuport.export.job import Exported


@dataclass(frozen=True)
class Options:
    """The command's options."""

    model: str
    inputs: tuple[str, ...]
    output: Path
    checkpoint: Path | None
    checkpoint_key: str
    arguments: str
    sizes: tuple[str, ...]
    output_names: tuple[str, ...]
    opset: int
    cache: bool


def export_onnx(options: Options) -> None:
    """Export, compare, and say what was written."""
    from npuport.cli.shared import talk
    from npuport.export.inputs import parse_inputs, parse_sizes, trials

    if options.cache and (options.inputs or not Path(options.model).is_dir()):
        raise UserError("--cache is for a Hugging Face folder, and makes the inputs itself: leave out --input.")
    inputs = () if options.cache else parse_inputs(options.inputs)
    sizes = parse_sizes(options.sizes)
    if inputs:  # what is wrong with them is said before the model is loaded
        trials(inputs, sizes)
    _need_libraries()
    from npuport.export.job import export_checked
    from npuport.export.loading import load_model, load_weights, parse_arguments

    model = load_model(options.model, parse_arguments(options.arguments))
    if options.checkpoint is not None:
        load_weights(model, options.checkpoint, options.checkpoint_key)
    elif not Path(options.model).is_dir():
        talk("npuport: " + translate("no --checkpoint: the weights are those that {model} gives", model=options.model))
    if options.cache:
        from npuport.export.cached import with_cache

        model, inputs = with_cache(model)
    tried = trials(inputs, sizes)
    exported = export_checked(model, inputs, tried, options.opset, options.output_names, options.output)
    print("\n".join(_answer(exported)))


def _need_libraries() -> None:
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # all is computed on the CPU
    try:
        import onnx
        import onnxruntime
        import onnxscript
        import torch
    except ImportError as error:
        raise UserError(
            '{name} is missing: pip install torch "npuport[export]"', name=error.name or str(error)
        ) from error
    del onnx, onnxruntime, onnxscript, torch


def _answer(exported: Exported) -> Iterator[str]:
    from npuport.export.atc.model import operator_problems
    from npuport.export.exporting import in_words
    from npuport.report.language import counted

    graph = exported.graph
    yield translate(
        "{path}: operator set {opset}, {nodes} of {kinds}",
        path=graph.path,
        opset=graph.opset,
        nodes=counted(graph.nodes, "node"),
        kinds=counted(len(graph.operators), "operator"),
    )
    yield from (f"  {translate('input')}   {value}" for value in graph.inputs)
    yield from (f"  {translate('output')}  {value}" for value in graph.outputs)
    yield "  " + ", ".join(f"{one.name} {one.nodes}" for one in graph.operators)
    yield translate("onnxruntime agrees with PyTorch (largest difference, over the largest value):")
    for one in exported.differences:
        yield f"  {in_words(one.sizes)}   {one.output}   {one.value:.1e}   " + translate(
            "allowed {allowed}", allowed=f"{one.allowed:.0e}"
        )
    for sizes in exported.impossible:
        yield "  " + translate("{sizes}: not compared, PyTorch itself cannot run them", sizes=in_words(sizes))
    for problem in operator_problems(graph):
        yield translate(problem.sentence.template, **problem.sentence.values)
    yield translate("Next: npuport export atc {path} --soc Ascend310P3", path=shlex.quote(str(graph.path)))
