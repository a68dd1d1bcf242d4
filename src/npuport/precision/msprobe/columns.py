"""Two dumps in the columns of `msprobe compare` (26.2.0): 27 for tensors, 28 for statistics, 14 for checksums."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.precision.msprobe.items import NOTHING, Item, items_of
from npuport.precision.msprobe.reading import Dump
from npuport.precision.msprobe.rules import Row, judge
from npuport.precision.msprobe.tensor_files import read_tensor

if TYPE_CHECKING:
    import torch

_BASIC = ("NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
          "NPU Requires_grad", "Bench Requires_grad")  # fmt: skip
_METRICS = ("Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
            "Five Thousandths Err Ratio")  # fmt: skip
_DIFFERENCES = ("Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
                "MeanRelativeErr", "NormRelativeErr")  # fmt: skip
_SUMMARY = ("NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm")
_END = ("Requires_grad Consistent", "Result", "Err_message", "NPU_Stack_Info")
COLUMNS = {
    "tensor": (*_BASIC, *_METRICS, *_SUMMARY, *_END, "Data_name"),
    "statistics": (*_BASIC, *_DIFFERENCES, *_SUMMARY, *_END),
    "md5": (*_BASIC, "NPU MD5", "BENCH MD5", *_END),
}
_FLOATING = {"torch.float16", "torch.float32", "torch.float64", "torch.bfloat16"}


def mode_of(dump: Dump) -> str:
    """The comparison that msprobe chooses for a dump."""
    if dump.task == "tensor":
        return "tensor"
    has_checksum = any(value.get("md5") for value in _tensors(dump.data))
    return "md5" if has_checksum else "statistics"


def compare_in_columns(target: Dump, golden: Dump, advance: Callable[[int], None] = lambda _: None) -> Iterator[Row]:
    """A row for each value of the target, with the value of the same name of the golden dump. ``advance`` is told how
    many rows were made."""
    mode = mode_of(target)
    others = {item.name: item for items in items_of(golden).values() for item in items}
    for call, items in items_of(target).items():
        if not items:
            continue
        rows = []
        for item in items:
            other = others.get(item.name)
            if other is not None and not _agree(item.dtype, other.dtype):
                other = None
            rows.append(_row(mode, item, other, (target.tensors, golden.tensors)))
        judge(rows, mode)
        for position, row in enumerate(rows):
            frames = target.stacks.get(call) if position == 0 else None
            row["NPU_Stack_Info"] = NOTHING if frames is None else str(frames)
        advance(len(rows))
        yield from rows


def _tensors(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "dtype" in value:
            yield value
        else:
            for one in value.values():
                yield from _tensors(one)
    elif isinstance(value, list):
        for one in value:
            yield from _tensors(one)


def _agree(one: str, other: str) -> bool:
    return one == other or {one, other} <= _FLOATING


def _row(mode: str, item: Item, other: Item | None, folders: tuple[Path, Path]) -> Row:
    row: Row = {}
    for side, one in (("NPU", item), ("Bench", other)):
        row[f"{side} Name"] = one.name if one else NOTHING
        row[f"{side} Dtype"] = one.dtype if one else NOTHING
        row[f"{side} Tensor Shape"] = one.shape if one else NOTHING
        row[f"{side} Requires_grad"] = one.requires_grad if one else NOTHING
        for position, column in enumerate(("max", "min", "mean", "l2norm")):
            row[f"{side} {column}"] = _shown(one.numbers[position]) if one else NOTHING
    row["NPU MD5"], row["BENCH MD5"] = item.checksum, other.checksum if other else NOTHING
    row["Requires_grad Consistent"] = row["NPU Requires_grad"] == row["Bench Requires_grad"]
    if mode == "tensor":
        files = item.file, other.file if other else NOTHING
        row["Data_name"] = str(list(files))
        row.update(zip(_METRICS, _metrics(files, folders), strict=True))
    elif mode == "statistics":
        pairs = [_difference(row[f"NPU {one}"], row[f"Bench {one}"]) for one in ("max", "min", "mean", "l2norm")]
        row.update(zip(_DIFFERENCES, [*(one[0] for one in pairs), *(one[1] for one in pairs)], strict=True))
    return row


def _shown(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "Nan"
    return "None" if value is None else value


def _difference(one: Any, other: Any) -> tuple[str, str]:
    """(difference, relative error) of two numbers, or what msprobe writes for others."""
    if str(one) == str(other):
        return "0", "0"
    kinds = _kind(one), _kind(other)
    if "nothing" in kinds:
        return NOTHING, NOTHING
    if "other" in kinds:
        return "Diff", "Diff"
    if "nan" in kinds:
        return "Nan", "Nan"
    if kinds[0] == "number" == kinds[1]:
        a, b = float(one), float(other)
        return str(a - b), f"{abs((a - b) / b * 100)}%" if b else "inf"
    if kinds[0] != "number":
        return kinds[0], kinds[0]
    opposite = "-inf" if kinds[1] == "inf" else "inf"
    return opposite, opposite


def _kind(value: Any) -> str:
    text = str(value).lower()
    if text == "nan":
        return "nan"
    if text in ("inf", "-inf"):
        return text
    if value == NOTHING:
        return "nothing"
    try:
        float(text)
    except ValueError:
        return "other"
    return "number"


def _metrics(files: tuple[str, str], folders: tuple[Path, Path]) -> Sequence[Any]:
    if "-1" in files or NOTHING in files:
        return ("unsupported",) * 6
    paths = [folder / file for folder, file in zip(folders, files, strict=True)]
    if not all(path.is_file() for path in paths):
        return ("unsupported",) * 6
    one, other = (read_tensor(path).squeeze() for path in paths)
    return metrics(one, other)


def metrics(one: torch.Tensor, other: torch.Tensor) -> Sequence[Any]:
    """Cosine, distance, largest absolute and relative error, and the shares of relative errors below 1 and 5 ‰."""
    import torch

    if not one.numel() or one.is_complex() or other.is_complex():
        return ("unsupported",) * 6
    if one.shape != other.shape:
        return ("shape unmatched",) * 6
    one, other = (_as_numpy(tensor) for tensor in (one, other))
    if one.dim():
        broken = ~torch.isfinite(one), ~torch.isfinite(other)
        same = (one == other) | (torch.isnan(one) & torch.isnan(other))
        if bool(((broken[0] | broken[1]) & ~same).any()):
            return (NOTHING,) * 6
        one, other = (tensor.masked_fill(mask, 0) for tensor, mask in zip((one, other), broken, strict=True))
    a, b = one.double().flatten(), other.double().flatten()
    largest = _rounded(float((a - b).abs().max() if one.dim() else (one - other).abs()))
    relative = _relative(one, other)
    errors = largest, _rounded(float(relative.max()))
    if not one.dim():
        return ("unsupported", "unsupported", *errors, "unsupported", "unsupported")
    shares = [_rounded(float((relative < limit).double().mean())) for limit in (0.001, 0.005)]
    return (_cosine(a, b), float(torch.linalg.vector_norm(a - b)), *errors, *shares)


def _as_numpy(tensor: torch.Tensor) -> torch.Tensor:
    """In the dtype that msprobe computes with: numpy has no bfloat16, and whole numbers become float64."""
    import torch

    if tensor.dtype in (torch.float16, torch.float32, torch.float64):
        return tensor
    return tensor.float() if tensor.is_floating_point() else tensor.double()


def _relative(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where the golden value is 0, one rounding of 1 is added to both."""
    import torch

    dtype = torch.promote_types(torch.promote_types(one.dtype, other.dtype), torch.float32)
    a, b = one.to(dtype), other.to(dtype)
    shift = (b == 0).to(dtype) * torch.finfo(dtype).eps
    a, b = a + shift, b + shift
    return ((a - b) / b).abs()


def _cosine(a: torch.Tensor, b: torch.Tensor) -> Any:
    import torch

    norms = [float(torch.linalg.vector_norm(one)) for one in (a, b)]
    least = torch.finfo(torch.float64).eps
    if max(norms) <= least:
        return 1.0
    if min(norms) <= least:
        return "Nan"
    value = _rounded(float(a.dot(b)) / (norms[0] * norms[1]))
    return round(value, 6) if value > 0.9999 else value


def _rounded(value: float) -> float:
    return float(f"{value:.12f}")
