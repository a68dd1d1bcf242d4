"""Export of a model to a file that has been compared with the model, or to no file."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.errors import UserError
from npuport.export.checking import Difference, Session, compare
from npuport.export.exporting import became_fixed, flattened, in_words, run_model, samples, write_onnx
from npuport.export.inputs import Input
from npuport.export.onnx_graph import Graph, free_wrong_sizes, read_graph

if TYPE_CHECKING:
    import torch

    from npuport.export.flattening import Flat


@dataclass(frozen=True)
class Exported:
    """An ONNX file that agrees with its model."""

    graph: Graph
    differences: tuple[Difference, ...]  # one for each set of sizes
    impossible: tuple[Mapping[str, int], ...]  # sizes that PyTorch itself cannot run


def export_checked(
    model: torch.nn.Module,
    inputs: Sequence[Input],
    tried: Sequence[Mapping[str, int]],
    opset: int,
    output_names: Sequence[str],
    path: Path,
) -> Exported:
    """Write ``model`` to ``path`` once it computes the same in onnxruntime for all sizes that are ``tried``.

    Raises:
        UserError: it cannot be exported, or it does not compute the same; then there is no file.
    """
    flat = flattened(model, inputs)
    runs, impossible = _run_all(flat, inputs, tried)
    names = _names(runs[0].outputs, output_names)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
            aside = Path(folder) / path.name
            write_onnx(flat, inputs, samples(inputs, tried[0]), names, opset, aside)
            _check_graph(read_graph(aside), inputs, opset)
            free_wrong_sizes(aside, [[tuple(tensor.shape) for _, tensor in run.outputs] for run in runs])
            session = Session(aside, opset)
            differences = [
                compare(session, inputs, samples(inputs, run.sizes), run.outputs, run.sizes, names) for run in runs
            ]
            # Weights that lie in a file of their own are named in the other, so they come first.
            for written in sorted(Path(folder).iterdir(), key=lambda one: one == aside):
                written.replace(path.parent / written.name)
    except OSError as error:
        raise UserError("{path} cannot be written: {reason}.", path=path, reason=error.strerror or error) from error
    return Exported(read_graph(path), tuple(differences), impossible)


@dataclass(frozen=True)
class _Run:
    """What PyTorch gave for one set of sizes."""

    sizes: Mapping[str, int]
    outputs: Sequence[tuple[str, torch.Tensor]]


def _run_all(
    flat: Flat, inputs: Sequence[Input], tried: Sequence[Mapping[str, int]]
) -> tuple[tuple[_Run, ...], tuple[Mapping[str, int], ...]]:
    """The model under all sizes that are tried, and those it does not take."""
    from npuport.export.flattening import outputs_of

    def run(sizes: Mapping[str, int]) -> _Run:
        return _Run(sizes, list(outputs_of(run_model(flat, samples(inputs, sizes), sizes))))

    runs, impossible = [run(tried[0])], []
    for sizes in tried[1:]:
        with contextlib.suppress(UserError):
            runs.append(run(sizes))
            continue
        impossible.append(sizes)
    if len(tried) > 1 and len(runs) == 1:
        raise UserError(
            "PyTorch itself runs the model with none of the other sizes that were tried ({sizes}), so that its "
            "dynamic axes are untested and nothing is written. Give sizes that it takes, such as --size {example}.",
            sizes="; ".join(in_words(one) for one in impossible),
            example=f"{next(iter(tried[0]))}=32,64",
        )
    return tuple(runs), tuple(impossible)


def _names(expected: Sequence[tuple[str, torch.Tensor]], given: Sequence[str]) -> list[str]:
    if not expected:
        raise UserError("the model returns no tensor: ONNX has tensors as outputs.")
    coarse = next((name for name, tensor in expected if str(tensor.dtype) == "torch.bfloat16"), None)
    if coarse is not None:
        raise UserError(
            "output {name} is bfloat16, in which onnxruntime computes little on the CPU. Export the model in float32 "
            "(model.float()): ATC lowers the precision itself.",
            name=coarse,
        )
    if not given:
        return [name for name, _ in expected]
    if len(given) != len(expected):
        raise UserError(
            "--output-names gives {given} names, and the model returns {number} tensors: {names}.",
            given=len(given),
            number=len(expected),
            names=", ".join(name for name, _ in expected),
        )
    return list(given)


def _check_graph(graph: Graph, inputs: Sequence[Input], opset: int) -> None:
    """The file has the inputs, the dynamic axes and the operator set that were asked for."""
    if graph.opset != opset:
        raise UserError(
            "PyTorch wrote operator set {written} in place of {opset}: it knows no way to the other.",
            written=graph.opset,
            opset=opset,
        )
    for one in inputs:
        value = graph.input(one.name)
        if value is None:
            raise UserError("the model does not use its input {name}: leave it out.", name=one.name)
        fixed = next((index for index in one.dynamic_axes() if isinstance((value.axes or ())[index], int)), None)
        if fixed is not None:
            raise became_fixed(one, fixed)
