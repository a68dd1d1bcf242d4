"""Converted attention on the simulated NPU against attention written out, sequence by sequence, on the CPU in float32.

Called with the folder that holds the converted module ``model``; prints the largest difference of each case.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable

import torch
from torch import Tensor

LENGTHS, OTHERS = [3, 1, 8, 5], [4, 1, 11, 5]
HEADS, GROUPS, SIZE = 4, 2, 16


def attend(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, window: int | None = None, bias: Tensor | None = None
) -> Tensor:
    """One sequence: q [queries, heads, size], k and v [keys, groups, size]; masks end bottom right."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) / SIZE**0.5
    if bias is not None:
        scores = scores + bias
    ahead = torch.arange(len(k))[None] - torch.arange(len(q))[:, None] - (len(k) - len(q))
    hidden = (ahead > 0) if causal else torch.zeros_like(ahead, dtype=torch.bool)
    if window is not None:
        hidden = hidden | (ahead < -window)
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, float("-inf")).softmax(-1), v)


def by_sequence(q: Tensor, k: Tensor, v: Tensor, **options: bool) -> Tensor:
    parts = zip(q.split(LENGTHS), k.split(OTHERS), v.split(OTHERS), strict=True)
    return torch.cat([attend(*part, **options) for part in parts])


def by_batch(q: Tensor, k: Tensor, v: Tensor, **options: object) -> Tensor:
    return torch.stack([attend(*part, **options) for part in zip(q, k, v, strict=True)])  # type: ignore[arg-type]


def difference(right: Callable[..., Tensor], converted: Callable[..., Tensor], *shapes: tuple[int, ...]) -> float:
    """The largest absolute difference of results and of all gradients."""
    generator = torch.Generator().manual_seed(0)
    tensors = [torch.randn(shape, generator=generator) for shape in shapes]
    found = []
    for function, device in ((right, "cpu"), (converted, "npu")):
        inputs = [tensor.clone().to(device).requires_grad_() for tensor in tensors]
        result = function(*inputs)
        result.backward(torch.linspace(-1, 1, result.numel()).view(result.shape).to(device))
        found.append([result.detach().cpu(), *(one.grad.cpu() for one in inputs)])
    return max((a - b).abs().max().item() for a, b in zip(*found, strict=True))


def main() -> None:
    import torch_npu  # noqa: F401

    sys.path.insert(0, sys.argv[1])
    model = importlib.import_module("model")
    starts, others = (torch.tensor([0, *lengths]).cumsum(0).int().npu() for lengths in (LENGTHS, OTHERS))
    tokens, keys = (sum(LENGTHS), HEADS, SIZE), (sum(OTHERS), GROUPS, SIZE)
    batch, narrow = (2, 12, HEADS, SIZE), (2, 12, GROUPS, SIZE)
    blocks = ((1, *tokens), (1, sum(OTHERS), HEADS, SIZE), (1, sum(OTHERS), HEADS, SIZE))

    def varlen(causal: bool) -> Callable[..., Tensor]:
        return lambda q, k, v: model.varlen(q, k, v, starts, others, causal)

    cases = {
        "varlen": (by_sequence, varlen(False), tokens, keys, keys),
        "varlen, causal": (lambda *t: by_sequence(*t, causal=True), varlen(True), tokens, keys, keys),
        "window": (lambda *t: by_batch(*t, causal=True, window=3), model.window, batch, narrow, narrow),
        "fewer heads of keys": (lambda *t: by_batch(*t, causal=True), model.causal, batch, narrow, narrow),
        "bias": (
            lambda q, k, v, b: torch.stack([attend(*t[:3], bias=t[3]) for t in zip(q, k, v, b, strict=True)]),
            model.bias, batch, batch, batch, (2, HEADS, 12, 12),
        ),
        "blocks": (lambda q, k, v: by_sequence(q[0], k[0], v[0])[None], model.blocks, *blocks),
    }  # fmt: skip
    print("DIFFERENCES", json.dumps({name: difference(*case) for name, case in cases.items()}))


if __name__ == "__main__":
    main()
