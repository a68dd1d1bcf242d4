"""Operators that say which values they chose: of equal values any may be chosen."""

from __future__ import annotations

import torch

from npuport.precision.operators.calls import Call, Step, TensorRef

# (position of the dimension among the arguments, its default)
_DIMENSION = {
    "sort": (1, -1),
    "topk": (2, -1),
    "max": (1, 0),
    "min": (1, 0),
    "median": (1, 0),
    "nanmedian": (1, 0),
    "mode": (1, -1),
    "kthvalue": (2, -1),
    "cummax": (1, 0),
    "cummin": (1, 0),
    "argmax": (1, None),
    "argmin": (1, None),
    "argsort": (1, -1),
}
_POOLS = ("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool3d")


def is_same_choice(call: Call, step: Step, position: int, got: torch.Tensor, results: list[torch.Tensor]) -> bool:
    """Whether indexes that differ from those of the CPU point to the same values."""
    short = call.operator.partition(".")[2].partition(".")[0]
    source = call.arguments[0] if call.arguments else None
    if got.dtype is not torch.int64 or not isinstance(source, TensorRef) or (position and not len(results) > 1):
        return False
    values = step.tensor(source)
    if short in _POOLS and position == 1:
        kept = values.dim() - (3 if "3d" in short else 2)
        return _points_to(values.flatten(kept), got.flatten(kept), -1, results[0].flatten(kept))
    if short not in _DIMENSION:
        return False
    at, default = _DIMENSION[short]
    stable = call.operator.endswith((".stable", ".dim_stable"))
    dim = call.keywords.get("dim", call.arguments[at + stable] if len(call.arguments) > at + stable else default)
    keeps = bool(call.arguments[-1]) if isinstance(call.arguments[-1], bool) else False
    if position == 1:
        return _points_to(values, _with_dim(got, values, dim), dim, _with_dim(results[0], values, dim))
    if short in ("argmax", "argmin"):
        flat, index = (values.flatten(), got.flatten()) if dim is None else (values, got)
        if dim is not None and not keeps and index.dim() < values.dim():
            index = index.unsqueeze(dim)
        extreme = values.amax if short == "argmax" else values.amin
        best = extreme() if dim is None else extreme(dim, keepdim=True)
        return _points_to(flat, index, 0 if dim is None else dim, best)
    return False


def _with_dim(tensor: torch.Tensor, values: torch.Tensor, dim: int) -> torch.Tensor:
    """A tensor whose reduced dimension is there again."""
    return tensor.unsqueeze(dim) if tensor.dim() < values.dim() else tensor


def _points_to(values: torch.Tensor, indexes: torch.Tensor, dim: int, chosen: torch.Tensor) -> bool:
    size = values.shape[dim] if values.dim() else 1
    if bool(((indexes < 0) | (indexes >= size)).any()):
        return False
    return bool((values.gather(dim, indexes) == chosen).all())
