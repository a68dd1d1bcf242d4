"""Whether an ONNX file computes what the torch model computes, for several sizes of its dynamic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError, first_line
from npuport.export.exporting import in_words, other_opset
from npuport.export.inputs import Input

if TYPE_CHECKING:
    import numpy as np
    import torch

ALLOWED = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2}
"""The largest difference of an output, over its largest value: sums in another order, and no more. Others are exact."""


@dataclass(frozen=True)
class Difference:
    """How far onnxruntime and PyTorch are apart for one set of sizes, in the output where that is worst."""

    sizes: Mapping[str, int]
    output: str
    value: float  # over the largest value of the output
    allowed: float


class Session:
    """An ONNX file in onnxruntime, on the CPU."""

    def __init__(self, path: Path, opset: int) -> None:
        import onnxruntime

        self.opset = opset

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise UserError(
                "onnxruntime does not take the exported model, so nothing is written: {reason}. Export in float32: "
                "ATC lowers the precision itself (--precision_mode).",
                reason=first_line(error),
            ) from error

    def run(self, inputs: Sequence[Input], tensors: Sequence[torch.Tensor], sizes: Mapping[str, int]) -> list[Any]:
        """The outputs.

        Raises:
            UserError: the model does not run with these sizes.
        """
        fed = {one.name: tensor.numpy() for one, tensor in zip(inputs, tensors, strict=True)}
        try:
            return list(self._session.run(None, fed))
        except Exception as error:
            raise UserError(
                "the exported model fails for {sizes}, where PyTorch does not, so nothing is written: {reason}. "
                "Either an exporter took a size for a constant (try --opset {other}), or the model reads sizes as "
                "plain numbers.",
                sizes=in_words(sizes),
                reason=first_line(error),
                other=other_opset(self.opset),
            ) from error


def compare(
    session: Session,
    inputs: Sequence[Input],
    tensors: Sequence[torch.Tensor],
    expected: Sequence[tuple[str, torch.Tensor]],
    sizes: Mapping[str, int],
    names: Sequence[str],
) -> Difference:
    """The difference from what PyTorch gave; ``names`` are those of the outputs.

    Raises:
        UserError: it is more than rounding.
    """
    computed = session.run(inputs, tensors, sizes)
    apart = []
    for name, (_, tensor), value in zip(names, expected, computed, strict=True):
        wanted = tensor.detach().numpy()
        if wanted.shape != value.shape:
            raise UserError(
                "output {name} of the exported model has the shape {shape} for {sizes}, and {wanted} in PyTorch, so "
                "nothing is written. An exporter took a size for a constant: try --opset {other}.",
                name=name,
                shape=list(value.shape),
                sizes=in_words(sizes),
                wanted=list(wanted.shape),
                other=other_opset(session.opset),
            )
        one = Difference(sizes, name, difference(wanted, value), ALLOWED.get(wanted.dtype.name, 0.0))
        if not one.value <= one.allowed:
            raise UserError(
                "output {name} of the exported model differs from PyTorch's for {sizes} by {value} of its largest "
                "value (allowed {allowed}), so nothing is written. Random numbers in the model, ties that are "
                "sorted, or an exporter's fault: try --opset {other}.",
                name=name,
                sizes=in_words(sizes),
                value=f"{one.value:.1e}",
                allowed=f"{one.allowed:.0e}",
                other=other_opset(session.opset),
            )
        apart.append(one)
    return max(apart, key=lambda one: one.value / one.allowed if one.allowed else 0.0)


def difference(wanted: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> float:
    """The largest difference over the largest value; infinite where NaN and infinities are in other places."""
    import numpy as np

    if wanted.dtype.kind in "iub" and np.array_equal(wanted, value):  # large whole numbers are not exact in float64
        return 0.0
    first, second = wanted.astype(np.float64), value.astype(np.float64)
    finite = np.isfinite(first)
    if not np.array_equal(first[~finite], second[~finite], equal_nan=True) or not np.isfinite(second[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    largest = float(np.abs(first[finite]).max())
    apart = float(np.abs(first[finite] - second[finite]).max())
    if wanted.dtype.kind in "iub":
        apart = max(apart, 1.0)
    return apart / largest if largest else apart
