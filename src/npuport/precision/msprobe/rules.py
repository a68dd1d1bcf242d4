"""What `msprobe compare` says of a row: its result rules, as the code of 26.2.0 has them.

Where its documents say otherwise (0.6 for the share of errors below a thousandth of a result), the code counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]
_LEVELS = {"pass": 0, "warning": 1, "error": 2}
# Calls that make memory or move it are not judged; of collectives the inputs are not.
_NOT_JUDGED = {
    "empty", "empty_like", "numpy", "to", "__setitem__", "empty_with_format", "new_empty_strided", "new_empty",
    "empty_strided",
}  # fmt: skip
_OUTPUTS_ONLY = {"_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"}


def judge(rows: Sequence[Row], mode: str) -> None:
    """Fill Result and Err_message of the rows of one call; ``mode`` is "tensor", "statistics" or "md5"."""
    for row in rows:
        row["Result"], row["Err_message"] = "pass", []
    parts = rows[0]["NPU Name"].split(".")
    name = parts[1] if len(parts) > 1 else ""
    outputs = [row for row in rows if ".output." in row["NPU Name"]]
    inputs = [row for row in rows if ".output." not in row["NPU Name"]]
    if name not in _NOT_JUDGED:
        judged = outputs if name in _OUTPUTS_ONLY else [*inputs, *outputs]
        for rule in _RULES[mode]:
            rule(judged)
        if name not in _OUTPUTS_ONLY and mode != "md5":
            _scalars(inputs)
            if mode == "tensor":
                _thousandths(inputs, outputs)
                _cosine(inputs, outputs)
            else:
                _norms(inputs, outputs)
    for row in rows:
        row["Err_message"] = json.dumps(sorted(row["Err_message"], key=_ORDER.index))


def _set(row: Row, level: str, message: str) -> None:
    if _LEVELS[level] > _LEVELS[row["Result"]]:
        row["Result"] = level
    row["Err_message"].append(f"{level}: {message}")


def _not_finite(rows: Sequence[Row]) -> None:
    for row in rows:
        if any(_is_not_finite(row[f"Bench {one}"]) for one in ("max", "min")):
            continue
        if any(_is_not_finite(row[f"NPU {one}"]) for one in ("max", "min")):
            _set(row, "error", _NOT_FINITE)


def _differs(npu: str, bench: str, message: str) -> Callable[[Sequence[Row]], None]:
    def rule(rows: Sequence[Row]) -> None:
        for row in rows:
            if row["Bench Name"] != "N/A" and row[npu] != row[bench]:
                _set(row, "error", message)

    return rule


def _scalars(rows: Sequence[Row]) -> None:
    for row in rows:
        is_scalar = "class" in row["NPU Dtype"] and "class" in row["Bench Dtype"] and row["NPU Tensor Shape"] == "[]"
        if row["Bench Name"] != "N/A" and is_scalar and row["NPU max"] != row["Bench max"]:
            _set(row, "error", _SCALAR)


def _thousandths(inputs: Sequence[Row], outputs: Sequence[Row]) -> None:
    column = "One Thousandth Err Ratio"
    if outputs and _least(inputs, column) > 0.9 and _least(outputs, column) < 0.1:
        _set(outputs[0], "error", _THOUSANDTH)


def _cosine(inputs: Sequence[Row], outputs: Sequence[Row]) -> None:
    before, after = _least(inputs, "Cosine"), _least(outputs, "Cosine")
    if outputs and before > 0.9 and before - after > 0.1:
        _set(outputs[0], "warning", _COSINE)


def _norms(inputs: Sequence[Row], outputs: Sequence[Row]) -> None:
    before = max((_share(row["NormRelativeErr"]) for row in inputs), default=0.0)
    if before < 0.1:
        for row in outputs:
            if _share(row["NormRelativeErr"]) > 0.5:
                _set(row, "error", _NORM)
    after = max((_share(row["NormRelativeErr"]) for row in outputs), default=0.0)
    if outputs and (after > 0.1 if before == 0 else after / before > 10):
        _set(outputs[0], "warning", _GROWN)


def _checksums(rows: Sequence[Row]) -> None:
    for row in rows:
        npu, bench = row["NPU MD5"], row["BENCH MD5"]
        if npu != bench:
            is_missing = "N/A" in (npu, bench)
            _set(row, "warning" if is_missing else "error", _UNMATCHED if is_missing else _CHECKSUM)


def _least(rows: Sequence[Row], column: str) -> float:
    return min((row[column] for row in rows if isinstance(row[column], float)), default=1.0)


def _share(value: Any) -> float:
    """A percentage as a share; 0 for what is none."""
    if not (isinstance(value, str) and value.endswith("%")):
        return 0.0
    return abs(float(value[:-1])) / 100


def _is_not_finite(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("inf", "-inf", "nan")
    return isinstance(value, float) and not math.isfinite(value)


_NOT_FINITE = "There is nan/inf/-inf in the maximum or minimum value of NPU."
_NORM = "The NormRelativeErr of output is greater than 0.5."
_THOUSANDTH = "The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.6."
_GRADIENT = "The Required_Grad of NPU and Bench are inconsistent"
_SCALAR = "The scalar parameters of NPU and Bench are inconsistent."
_DTYPE = "The dtype of NPU and Bench are inconsistent."
_SHAPE = "The shape of NPU and Bench are inconsistent."
_GROWN = "The norm relative error of output is 10 times that of input."
_COSINE = "The input/parameters of Cosine > 0.9, and input/parameters - output > 0.1"
_CHECKSUM = "The CRC-32 value of NPU differs from that of the bench."
_UNMATCHED = "The parameter of NPU does not match the bench."
_ORDER = [
    *(f"error: {one}" for one in (_NOT_FINITE, _NORM, _THOUSANDTH, _GRADIENT, _SCALAR, _DTYPE, _SHAPE, _CHECKSUM)),
    *(f"warning: {one}" for one in (_GROWN, _COSINE, _UNMATCHED)),
]
_COMMON = (
    _not_finite,
    _differs("NPU Requires_grad", "Bench Requires_grad", _GRADIENT),
    _differs("NPU Dtype", "Bench Dtype", _DTYPE),
    _differs("NPU Tensor Shape", "Bench Tensor Shape", _SHAPE),
)
_RULES = {"tensor": _COMMON, "statistics": _COMMON, "md5": (_checksums,)}
