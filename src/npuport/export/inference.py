"""Inference with an .om by ais_bench: inputs, the command, and the script that compares its outputs with ONNX.

Options, and how outputs are laid out: msit documents, benchmark (ais_bench), 2026; ais_bench's own README.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError, first_line
from npuport.export.onnx_graph import Graph, Value

if TYPE_CHECKING:
    import numpy as np

KINDS = ("", "batch", "image", "dims", "shape")
"""How the .om takes sizes: fixed, by profiles of batches, of images or of any sizes, or freely."""

OUTPUTS = "om_outputs"
RUN = "om"  # the folder in it that ais_bench writes
COMPARE = "compare_om.py"


@dataclass(frozen=True)
class Plan:
    """Files to write: by name, texts and arrays."""

    texts: Mapping[str, str]
    arrays: Mapping[str, np.ndarray[Any, Any]]


def plan(graph: Graph, om: str, kind: str, sizes: Mapping[str, int], given: Mapping[str, Path], number: int) -> Plan:
    """What has to be written for ``number`` samples of random inputs, or those that are ``given`` by input.

    Raises:
        UserError: sizes are missing, or files do not fit.
    """
    unknown = next((name for name in given if graph.input(name) is None), None)
    if unknown is not None:
        known = ", ".join(one.name for one in graph.inputs)
        raise UserError("{path} has no input {name}. It has: {known}.", path=graph.path, name=unknown, known=known)
    files = {name: _files(path) for name, path in given.items()}
    if files:
        number = min(len(listed) for listed in files.values())
    arrays = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for one in graph.inputs:
        for index in range(number):
            array = _read(files[one.name][index]) if one.name in files else _random(one, shape_of(one, sizes), index)
            shapes.setdefault(one.name, array.shape)
            if array.shape != shapes[one.name]:
                raise UserError(
                    "{path} is of another size than the first: an .om takes one size at a time.",
                    path=files[one.name][index],
                )
            arrays[f"inputs/{_folder(one.name)}/sample_{index:04}.npy"] = array
    folders = ",".join(f"inputs/{_folder(one.name)}" for one in graph.inputs)
    first = {one.name: arrays[f"inputs/{_folder(one.name)}/sample_0000.npy"] for one in graph.inputs}
    command = ais_bench(graph, om, kind, shapes, folders, _output_bytes(graph, first) if kind == "shape" else ())
    comparing = f"python3 {COMPARE} --onnx {shlex.quote(str(graph.path.resolve()))} --inputs {shlex.quote(folders)}"
    texts = {
        "run_om.sh": f'#!/bin/bash\nset -e\ncd "$(dirname "$0")"\nmkdir -p {OUTPUTS}\n{command}\n',
        "compare.sh": f'#!/bin/bash\nset -e\ncd "$(dirname "$0")"\n{comparing} --outputs {OUTPUTS}/{RUN} "$@"\n',
        COMPARE: Path(__file__).with_name("compare_om.py").read_text(encoding="utf-8"),
    }
    return Plan(texts, arrays)


def shape_of(value: Value, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input under sizes of its named axes.

    Raises:
        UserError: one is not given.
    """
    missing = [str(axis) or "?" for axis in value.axes or () if not isinstance(axis, int) and axis not in sizes]
    if missing or value.axes is None:
        raise UserError(
            "the size of {axes} of {value} is not fixed: give --size {example}.",
            axes=", ".join(missing) or "?",
            value=value,
            example=f"{missing[0] if missing else 'NAME'}=8",
        )
    return tuple(axis if isinstance(axis, int) else sizes[axis] for axis in value.axes)


def ais_bench(
    graph: Graph,
    om: str,
    kind: str,
    shapes: Mapping[str, tuple[int, ...]],
    folders: str,
    output_bytes: Sequence[int],
) -> str:
    """The command, an option a line."""
    options = {"model": om, "input": folders, "output": OUTPUTS, "output_dirname": RUN, "outfmt": "NPY"}
    varying = next(
        (one for one in graph.inputs if any(isinstance(axis, str) for axis in one.axes or ())), graph.inputs[0]
    )
    if kind == "batch":
        options["dymBatch"] = str(shapes[varying.name][0])
    elif kind == "image":
        options["dymHW"] = ",".join(map(str, shapes[varying.name][2:4]))
    elif kind:
        text = ";".join(f"{name}:{','.join(map(str, shape))}" for name, shape in shapes.items())
        options["dymDims" if kind == "dims" else "dymShape"] = text
    if output_bytes:
        options["outputSize"] = ",".join(map(str, output_bytes))
    lines = [f"--{name} {shlex.quote(value)}" for name, value in options.items()]
    return " \\\n    ".join(["python3 -m ais_bench", *lines])


def _output_bytes(graph: Graph, fed: Mapping[str, np.ndarray[Any, Any]]) -> list[int]:
    """Bytes to keep for each output where their sizes are not known before: twice what ONNX gives."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(str(graph.path), providers=["CPUExecutionProvider"])
        outputs = session.run(None, dict(fed))
    except Exception as error:
        reason = first_line(error)
        raise UserError("onnxruntime cannot run {path}: {reason}.", path=graph.path, reason=reason) from error
    return [max(2 * output.nbytes, 64) for output in outputs]


def _folder(name: str) -> str:
    """A folder for an input: names may have slashes and colons."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)


def _files(path: Path) -> list[Path]:
    files = sorted(path.glob("*.npy")) if path.is_dir() else [path]
    if not files or not all(one.is_file() for one in files):
        raise UserError("{path} is neither an .npy file nor a folder with some.", path=path)
    return files


def _read(path: Path) -> np.ndarray[Any, Any]:
    import numpy as np

    try:
        array: np.ndarray[Any, Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error
    return array


def _random(value: Value, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Normal floats, and whole numbers 0 and 1."""
    import numpy as np

    random = np.random.default_rng(seed)
    dtype = np.dtype(value.dtype)
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)
