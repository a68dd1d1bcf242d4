"""An ATC command for an ONNX model, from what a user asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npuport import facts
from npuport.errors import UserError
from npuport.export.atc.dynamic import PROFILES
from npuport.export.onnx_graph import Graph, Value


@dataclass(frozen=True)
class Wish:
    """What the .om is to be; "" where ATC's default is wanted."""

    soc: str
    output: str
    input_shape: str = ""
    dynamic_batch_size: str = ""
    dynamic_image_size: str = ""
    dynamic_dims: str = ""
    input_format: str = ""
    output_type: str = ""
    out_nodes: str = ""
    precision: str = ""
    insert_op_conf: str = ""
    further: Mapping[str, str] | None = None  # other options by name


def options_for(graph: Graph, wish: Wish) -> dict[str, str]:
    """The options of the command, in ATC's spelling.

    Raises:
        UserError: sizes are needed that nobody gave.
    """
    profiles = next((name for name in PROFILES if getattr(wish, name)), "")
    options = {
        "model": str(graph.path),
        "framework": "5",
        "output": wish.output,
        "soc_version": wish.soc,
        "input_format": wish.input_format or _format(graph, profiles),
        "input_shape": wish.input_shape or _shapes(graph, profiles),
        **{name: getattr(wish, name) for name in PROFILES},
        "output_type": wish.output_type,
        "out_nodes": wish.out_nodes,
        _precision_option(wish.precision): wish.precision,
        "insert_op_conf": wish.insert_op_conf,
        **(wish.further or {}),
    }
    return {name: value for name, value in options.items() if value}


def _precision_option(value: str) -> str:
    """The newer option where it has the value: documents advise it."""
    newer = facts.atc_option("precision_mode_v2")
    return "precision_mode_v2" if newer is not None and value in newer.values else "precision_mode"


def _format(graph: Graph, profiles: str) -> str:
    """NCHW for images, ND where profiles name any size or no input has four."""
    images = any(one.axes is not None and len(one.axes) == 4 for one in graph.inputs)
    return "NCHW" if images and profiles != "dynamic_dims" else "ND"


def _shapes(graph: Graph, profiles: str) -> str:
    """Each input with -1 for the sizes that the profiles give."""
    return ";".join(f"{one.name}:{_sizes(one, profiles)}" for one in graph.inputs)


def _sizes(value: Value, profiles: str) -> str:
    axes = value.axes or ()
    varying = {index for index, axis in enumerate(axes) if isinstance(axis, str)}
    covered = {"dynamic_batch_size": {0}, "dynamic_image_size": {2, 3}, "dynamic_dims": varying}.get(profiles, set())
    if value.axes is None or varying - covered:
        raise UserError(
            "the sizes of {value} are not all fixed: give --input-shape, such as {example}, or --dynamic-dims.",
            value=value,
            example=f'"{value.name}:{",".join(str(axis) if isinstance(axis, int) else "1" for axis in axes)}"',
        )
    return ",".join("-1" if index in varying else str(axis) for index, axis in enumerate(axes))
