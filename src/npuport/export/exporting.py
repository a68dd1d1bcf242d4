"""A torch model as an ONNX file."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError
from npuport.export.inputs import Input

if TYPE_CHECKING:
    import torch

    from npuport.export.flattening import Flat

NEW_EXPORTER_FROM = 18
"""The first operator set that PyTorch's exporter on torch.export writes; older sets need the one on TorchScript."""

_OF_NPU = re.compile(r"npu::(npu_)?(?P<registered>\w+)|\b(?P<called>npu_\w+)")


# How torch.export says that a size which should vary has become a number; its inputs are `Flat.forward`'s.
_BECAME_FIXED = re.compile(r"inferred a static shape of \d+ for dimension inputs\['tensors'\]\[(\d+)\]\.shape\[(\d+)\]")


def flattened(model: torch.nn.Module, inputs: Sequence[Input]) -> Flat:
    """The model as a function of tensors by position: by keyword where its ``forward`` knows the inputs' names.

    Raises:
        UserError: it knows some of the names, so that the others are mistaken.
    """
    from npuport.export.flattening import Flat

    names = [one.name for one in inputs]
    flat = Flat(model, names if _by_keyword(model, names) else None)
    flat.eval()
    return flat


def _by_keyword(model: torch.nn.Module, names: Sequence[str]) -> bool:
    signature = inspect.signature(model.forward)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    unknown = [name for name in names if name not in signature.parameters]
    if not unknown or len(unknown) == len(names) or inspect.Parameter.VAR_POSITIONAL in kinds:
        return not unknown
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return True
    raise UserError(
        "{names}: forward has no parameter of this name. It takes {signature}.",
        names=", ".join(unknown),
        signature=signature,
    )


def samples(inputs: Sequence[Input], sizes: Mapping[str, int], seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Tensors for the inputs: normal floats, and whole numbers 0 and 1, unless an input bounds its values."""
    import torch

    random = torch.Generator().manual_seed(seed)
    return tuple(_sample(one, one.shape(sizes), random) for one in inputs)


def _sample(given: Input, shape: tuple[int, ...], random: torch.Generator) -> torch.Tensor:
    import torch

    dtype: torch.dtype = getattr(torch, given.dtype)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=random, dtype=dtype)
    if dtype.is_floating_point and (given.low is None or given.high is None):
        return torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)
    low, high = given.low or 0, 1 if given.high is None else given.high
    if dtype.is_floating_point:
        return (torch.rand(shape, generator=random, dtype=torch.float64) * (high - low) + low).to(dtype)
    return torch.randint(int(low), int(high) + 1, shape, generator=random, dtype=dtype)


def run_model(model: Flat, tensors: Sequence[torch.Tensor], sizes: Mapping[str, int]) -> Any:
    """What the model returns for these inputs on the CPU.

    Raises:
        UserError: it fails, or calls an operator that only NPUs have.
    """
    import torch

    from npuport.export.cpu_only import OnCpu

    try:
        with OnCpu(), torch.no_grad():
            return model.returned(tensors)
    except Exception as error:
        _refuse_npu_operator(error)
        raise UserError(
            "the model itself fails on the CPU for {sizes}: {reason}. Its forward takes {signature}; "
            "--input gives the inputs, --size the sizes of named axes.",
            sizes=in_words(sizes),
            reason=f"{type(error).__name__}: {error}",
            signature=inspect.signature(model.model.forward),
        ) from error


def in_words(sizes: Mapping[str, int]) -> str:
    """``batch=2, height=64``."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "-"


def _refuse_npu_operator(error: Exception) -> None:
    match = _OF_NPU.search(str(error))
    if match is None:
        return
    name = match["called"] or f"npu_{match['registered']}"
    raise UserError(
        "the model calls {name}, an operator of NPUs that neither ONNX nor this CPU has. Export the model with plain "
        "PyTorch in its place (npuport explain {name} names what it stands for).",
        name=name,
    ) from error


def write_onnx(
    model: Flat,
    inputs: Sequence[Input],
    tensors: Sequence[torch.Tensor],
    output_names: Sequence[str],
    opset: int,
    path: Path,
) -> None:
    """Write ``model`` to ``path``, and its weights beside it where they are too large for one file.

    Raises:
        UserError: PyTorch cannot export it.
    """
    import torch

    from npuport.export.cpu_only import OnCpu

    names = [one.name for one in inputs]
    axes = [one.dynamic_axes() for one in inputs]
    common: dict[str, Any] = {"input_names": names, "output_names": list(output_names), "opset_version": opset}
    try:
        with _quiet(), OnCpu(), torch.no_grad():
            if opset >= NEW_EXPORTER_FROM:
                program = torch.onnx.export(
                    model, tuple(tensors), None, dynamic_shapes=(tuple(axes),), dynamo=True, verbose=False, **common
                )
                assert program is not None  # only without an exporter that returns one
                program.save(str(path))
            else:
                torch.onnx.export(
                    model,
                    tuple(tensors),
                    str(path),
                    dynamic_axes={name: named for name, named in zip(names, axes, strict=True) if named},
                    dynamo=False,
                    **common,
                )
    except Exception as error:
        _refuse_npu_operator(error)
        reason = _reason(error)
        fixed = _BECAME_FIXED.search(reason)
        if fixed is not None:
            raise became_fixed(inputs[int(fixed[1])], int(fixed[2])) from error
        raise UserError(
            "PyTorch cannot export the model to operator set {opset}: {reason}. --opset {other} uses PyTorch's other "
            "exporter.",
            opset=opset,
            reason=reason,
            other=other_opset(opset),
        ) from error


def became_fixed(given: Input, axis: int) -> UserError:
    """The error for an axis that should vary and does not."""
    return UserError(
        "axis {axis} of {name} became fixed, so nothing is written: the model uses its size as a plain "
        "number. Write a number in --input, or keep the size a tensor's shape in the model.",
        axis=given.axes[axis],
        name=given.name,
    )


def other_opset(opset: int) -> int:
    """An operator set that PyTorch's other exporter writes."""
    return NEW_EXPORTER_FROM - 1 if opset >= NEW_EXPORTER_FROM else NEW_EXPORTER_FROM


def _reason(error: BaseException) -> str:
    """What lies behind an exporter's error, in a few lines: its causes are chained, its graphs are long."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4])}"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporters print graphs, warnings and progress for their own authors, some of it from C++."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    sys.stdout.flush()
    sys.stderr.flush()
    streams = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in streams:
            os.dup2(nowhere, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, kept in streams.items():
            os.dup2(kept, number)
            os.close(kept)
        os.close(nowhere)
        logging.disable(before)
