"""Floating-point operations of matrix products and convolutions, from the shapes that the profiler recorded.

A product and a sum count as two, as in ``torch.utils.flop_counter``. Elementwise work is not counted, and neither is
attention by one operator whose shapes do not say which axis is which: both are left out, so that the sum is a lower
bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import polars as pl

Shape = tuple[int, ...]
Shapes = list[Shape]  # of the inputs; () where an input is no tensor

_CONVOLUTION = "aten::convolution"
# Backward of convolutions, and which inputs are the result's gradient, the input and the weight.
_GRADIENTS = {"aten::convolution_backward": (0, 1, 2), "aten::cudnn_convolution_backward": (1, 0, 2)}
# Seen inside of a backward that computes the input's gradient too, not the weight's alone.
_INPUT_GRADIENTS = ("Conv2DBackpropInput", "aten::cudnn_convolution_backward_input")


@dataclass(frozen=True, slots=True)
class Counted:
    """What the operators of all steps compute. ``uncounted`` are attention operators that are left out."""

    flops: int
    operators: int
    uncounted: int


def shapes_in(text: str) -> Shapes:
    """``"32,3;3,4"`` (NPU) or ``"[[32, 3], [3, 4]]"`` (Kineto) as shapes."""
    if text.startswith("["):
        return [_shape(one) for one in re.findall(r"\[([\d, ]*)\]", text[1:-1])]
    return [_shape(one) for one in text.split(";")]


def _shape(text: str) -> Shape:
    parts = [part.strip() for part in text.split(",")]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


def _mm(shapes: Shapes) -> int:
    (m, k), (_, n) = shapes[0], shapes[1]
    return 2 * m * k * n


def _addmm(shapes: Shapes) -> int:
    return _mm(shapes[1:])


def _bmm(shapes: Shapes) -> int:
    (b, m, k), (_, _, n) = shapes[0], shapes[1]
    return 2 * b * m * k * n


def _baddbmm(shapes: Shapes) -> int:
    return _bmm(shapes[1:])


def _linear(shapes: Shapes) -> int:
    return 2 * prod(shapes[0]) * shapes[1][0]


def _attention(shapes: Shapes) -> int:
    """Of queries, keys and values of shape (batch, heads, length, width)."""
    (b, heads, length, width), (_, _, keys, _), (_, _, _, out) = shapes[:3]
    return 2 * b * heads * length * keys * (width + out)


def _attention_backward(shapes: Shapes) -> int:
    """The scores anew, and two products for each gradient of values, scores, queries and keys."""
    (b, heads, length, width), (_, _, keys, _), (_, _, _, out) = shapes[1:4]
    return 2 * b * heads * length * keys * (3 * width + 2 * out)


def convolution(given: Shape, result: Shape, weight: Shape) -> int:
    """One pass of a convolution from ``given`` to ``result`` (batch, channels, …); each gradient is another.

    The first axis of ``weight`` are the channels of the result, or of the input where it is transposed.
    """
    return 2 * prod(result if weight[0] == result[1] else given) * prod(weight[1:])


FORMULAS: dict[str, Callable[[Shapes], int]] = {
    "aten::mm": _mm,
    "aten::addmm": _addmm,
    "aten::bmm": _bmm,
    "aten::baddbmm": _baddbmm,
    "aten::linear": _linear,
    "aten::_scaled_dot_product_flash_attention": _attention,
    "aten::_scaled_dot_product_efficient_attention": _attention,
    "aten::_scaled_dot_product_flash_attention_backward": _attention_backward,
    "aten::_scaled_dot_product_efficient_attention_backward": _attention_backward,
}
_ATTENTION = r"(?i)^npu::npu_(?:fusion|flash|prompt_flash)_attention"


def count(events: pl.DataFrame) -> Counted | None:
    """What the host events of the steps compute; None where no shapes were recorded."""
    named = events.filter(pl.col("shapes").is_not_null())
    known = [*FORMULAS, _CONVOLUTION, *_GRADIENTS]
    found = named.filter(pl.col("name").is_in(known))
    found = found.sort("thread", "start_ns", "end_ns", descending=[False, False, True])
    if found.is_empty():
        return None
    # Of an operator that calls another of these, the inner one counts.
    inner = (pl.col("thread").shift(-1) == pl.col("thread")) & (pl.col("start_ns").shift(-1) < pl.col("end_ns"))
    found = found.filter(~inner.fill_null(value=False)).with_columns(pl.col("shapes").cast(pl.String))
    found = _with_results(found, events)
    flops = operators = 0
    groups = found.group_by("name", "shapes", "out", "gradients").len()
    for name, shapes, out, gradients, times in groups.iter_rows():
        one = _one(name, shapes_in(shapes), shapes_in(out) if out else [], gradients)
        flops, operators = flops + times * one, operators + times * bool(one)
    left_out = events.filter(pl.col("name").str.contains(_ATTENTION)).height
    return Counted(flops, operators, left_out)


def _with_results(found: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """With ``out``, the shapes of a forward convolution's backward, whose first is that of the forward's result, and
    with ``gradients``, how many of the two a backward computes."""
    numbered = events.filter(
        (pl.col("sequence") >= 0) & (pl.col("forward_thread").fill_null(0) != 0) & pl.col("shapes").is_not_null()
    )
    results = numbered.select("sequence", pl.col("shapes").cast(pl.String).alias("out")).unique(
        "sequence", keep="first"
    )
    found = found.join(results, on="sequence", how="left", maintain_order="left")
    inputs = events.filter(pl.col("name").is_in(_INPUT_GRADIENTS)).select("thread", pl.col("start_ns").alias("inside"))
    if inputs.is_empty():
        return found.with_columns(pl.lit(2).alias("gradients"))
    joined = found.sort("start_ns").join_asof(
        inputs.sort("inside"),
        left_on="start_ns",
        right_on="inside",
        by="thread",
        strategy="forward",
        check_sortedness=False,  # both are sorted; Polars cannot see it within groups
    )
    both = (pl.col("inside") < pl.col("end_ns")).fill_null(value=False)
    return joined.with_columns((1 + both.cast(pl.Int32)).alias("gradients"))


def _one(name: str, shapes: Shapes, out: Shapes, gradients: int) -> int:
    """What one operator computes; 0 where its shapes do not say it."""
    try:
        if name == _CONVOLUTION:
            return convolution(shapes[0], out[0], shapes[1]) if out and out[0] else 0
        if name in _GRADIENTS:
            result, given, weight = (shapes[position] for position in _GRADIENTS[name])
            return gradients * convolution(given, result, weight)
        return FORMULAS[name](shapes)
    except (ValueError, IndexError):
        return 0
