"""Compare the outputs of an .om with those of the ONNX model that it was compiled from.

    python3 compare_om.py --onnx model.onnx --inputs inputs/ids,inputs/mask --outputs om_outputs/om

Needs numpy and onnxruntime; runs anywhere, an NPU is not used. Inputs are a folder of .npy files for each input of the
model, in the model's order. Outputs are what `python3 -m ais_bench --input … --output … --outfmt NPY` (or BIN, or TXT)
wrote: NAME_0.npy, NAME_1.npy, … for the file NAME.npy of the first input. Ends with 1 when an output is further away
than the limits allow, with 2 when something is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


class Missing(Exception):
    """Something that should be there is not; the message says what."""


def measures(wanted: Array, given: Array) -> dict[str, float]:
    """The distance of two arrays of one size: cosine, the largest difference, and that over the largest value."""
    first, second = wanted.astype(np.float64).ravel(), given.astype(np.float64).ravel()
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        same = np.array_equal(first, second, equal_nan=True)
        return {
            "cosine": 1.0 if same else float("nan"),
            "largest": 0.0 if same else float("inf"),
            "relative": 0.0 if same else float("inf"),
        }
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    both_zero = not first.any() and not second.any()
    cosine = 1.0 if both_zero else float(first @ second) / lengths if lengths else 0.0
    largest = float(np.abs(first - second).max(initial=0.0))
    scale = float(np.abs(first).max(initial=0.0))
    return {"cosine": cosine, "largest": largest, "relative": largest / scale if scale else largest}


def read_output(folder: Path, name: str, wanted: Array) -> Array:
    """One output of the .om, as an array of the ONNX output's shape.

    Raises:
        Missing: there is none, or it has another number of values.
    """
    path = next((one for ending in (".npy", ".bin", ".txt") if (one := folder / f"{name}{ending}").is_file()), None)
    if path is None:
        raise Missing(f"{folder} has no {name}.npy, .bin or .txt: was ais_bench run with these inputs?")
    if path.suffix == ".npy":
        given: Array = np.load(path, allow_pickle=False)
    elif path.suffix == ".txt":
        given = np.loadtxt(path, ndmin=1)
    else:
        raw = path.read_bytes()
        # An .om may give float16 or int32 where ONNX has float32 or int64.
        half = {"float32": np.float16, "int64": np.int32, "float64": np.float32}.get(wanted.dtype.name)
        dtype = half if half is not None and len(raw) * 2 == wanted.nbytes else wanted.dtype
        if len(raw) % np.dtype(dtype).itemsize:
            raise Missing(f"{path} has {len(raw)} bytes, and the output is {wanted.dtype}{list(wanted.shape)}.")
        given = np.frombuffer(raw, dtype)
    if given.size != wanted.size:
        raise Missing(f"{path} has {given.size} values, and the output is {wanted.dtype}{list(wanted.shape)}.")
    shaped: Array = given.reshape(wanted.shape)
    return shaped


def samples(folders: list[Path]) -> list[list[Path]]:
    """The files of each sample: one of each folder, in the order of their names.

    Raises:
        Missing: a folder is empty, or has another number of files than the first.
    """
    files = [sorted(folder.glob("*.npy")) for folder in folders]
    for folder, listed in zip(folders, files):
        if not listed or len(listed) != len(files[0]):
            raise Missing(f"{folder} has {len(listed)} .npy files, and {folders[0]} has {len(files[0])}.")
    return [list(one) for one in zip(*files)]


def compare(onnx: Path, folders: list[Path], outputs: Path) -> list[tuple[str, str, dict[str, float], bool]]:
    """For each sample and output: their names, the measures, and whether the output holds whole numbers.

    Raises:
        Missing: files do not fit the model, or each other; there is no onnxruntime.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise Missing("onnxruntime is not installed for this Python: pip install onnxruntime") from error
    session = onnxruntime.InferenceSession(str(onnx), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    if len(names) != len(folders):
        raise Missing(f"{onnx} has the inputs {', '.join(names)}: give a folder for each, not {len(folders)}.")
    rows = []
    for files in samples(folders):
        fed = {name: np.load(path, allow_pickle=False) for name, path in zip(names, files)}
        for index, wanted in enumerate(session.run(None, fed)):
            given = read_output(outputs, f"{files[0].stem}_{index}", wanted)
            row = measures(wanted, given)
            whole = wanted.dtype.kind in "iub"
            if whole:
                row["equal"] = float((wanted == given).mean()) if wanted.size else 1.0
            rows.append((files[0].stem, session.get_outputs()[index].name, row, whole))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onnx", type=Path, required=True)
    parser.add_argument("--inputs", required=True, help="folders of .npy files, separated by commas")
    parser.add_argument("--outputs", type=Path, required=True, help="the folder that ais_bench wrote")
    parser.add_argument("--cosine", type=float, default=0.99, help="the least cosine similarity (0.99)")
    parser.add_argument(
        "--relative", type=float, default=0.05, help="the largest difference over the largest value (0.05)"
    )
    parser.add_argument("--equal", type=float, default=0.99, help="the least share of equal whole numbers (0.99)")
    arguments = parser.parse_args()
    try:
        rows = compare(arguments.onnx, [Path(one) for one in arguments.inputs.split(",")], arguments.outputs)
    except (Missing, OSError, ValueError) as error:
        print(f"compare_om: {error}", file=sys.stderr)
        return 2
    far = 0
    for sample, output, row, whole in rows:
        near = (
            row["equal"] >= arguments.equal
            if whole
            else row["cosine"] >= arguments.cosine and row["relative"] <= arguments.relative
        )
        far += not near
        verdict = "ok " if near else "FAR"
        first = f"equal {row['equal']:.2%}" if whole else f"cosine {row['cosine']:.6f}"
        rest = f"largest difference {row['largest']:.3g}  relative {row['relative']:.3g}"
        print(f"{verdict}  {sample}  {output}  {first}  {rest}")
    print(f"{len(rows) - far} of {len(rows)} outputs agree with onnxruntime")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
