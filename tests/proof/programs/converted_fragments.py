"""Whole fragments before and after their conversion for every device, on the CPU: results and gradients, in both modes.

Prints the largest difference of each. Without dropout, for it gives other numbers each time.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from npuport.conversion.rounds import convert_files
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile

FOLDER = Path(__file__).parents[1] / "fragments"
CONFIG = types.SimpleNamespace(n_embd=32, n_head=4, bias=True, dropout=0.0, attn_pdrop=0.0, block_size=16)
HIDDEN = (torch.arange(7) < 5).view(1, 1, 1, 7)


def heads(*lengths: int) -> list[Tensor]:
    return [torch.randn(2, 4, length, 8) for length in lengths]


def last(*lengths: int) -> list[Tensor]:
    return [torch.randn(2, length, 4, 8) for length in lengths]


CASES: dict[str, tuple[Callable[[Any], Callable[..., Tensor]], list[Any]]] = {
    "nanogpt": (lambda m: m.CausalSelfAttention(CONFIG), [torch.randn(2, 9, 32)]),
    "mingpt": (lambda m: m.CausalSelfAttention(CONFIG), [*heads(9, 9, 9), 9]),
    "annotated_transformer": (lambda m: m.attention, [*heads(9, 7, 7), HIDDEN.long()]),
    "timm": (lambda m: m.Attention(32, 4), [torch.randn(2, 9, 32)]),
    "vit_old": (lambda m: m.Attention(32, 4), [torch.randn(2, 9, 32)]),
    "dit": (lambda m: m.Attention(32, 4), [torch.randn(2, 9, 32)]),
    "head_of_lecture": (lambda m: m.Head(32, 8, 16, 0.0), [torch.randn(2, 9, 32)]),
    "einsum_bhid": (lambda m: m.Attention(32, 4, 8), heads(9, 7, 7)),
    "einsum_bqhd": (lambda m: m.attend, [*last(9, 7, 7), HIDDEN]),
    "swin": (lambda m: m.WindowAttention(32, 4), [*heads(9, 9, 9), torch.randn(4, 9, 9)]),
    "local_causal": (lambda m: m.Head(), heads(9, 9, 9)),
    "key_ready": (
        lambda m: m.Attention(16, CONFIG)._attn,
        [torch.randn(2, 4, 9, 8), torch.randn(2, 4, 8, 9), torch.randn(2, 4, 9, 8), 9],
    ),
    "evoformer": (lambda m: m.attention, [*heads(9, 7, 7), torch.randn(2, 1, 1, 7), torch.randn(1, 4, 9, 7)]),
}


def module(text: str) -> types.ModuleType:
    made = types.ModuleType("fragment")
    exec(compile(text, "fragment", "exec"), made.__dict__)
    return made


def outputs(function: Callable[..., Tensor], given: list[Any]) -> list[Tensor]:
    """The result, and the gradients of the tensors."""
    inputs = [
        one.clone().requires_grad_() if isinstance(one, Tensor) and one.is_floating_point() else one for one in given
    ]
    result = function(*inputs)
    result.backward(torch.linspace(-1, 1, result.numel()).view(result.shape))
    return [result.detach(), *(one.grad for one in inputs if isinstance(one, Tensor) and one.grad is not None)]


def difference(name: str) -> float:
    text = (FOLDER / f"attention_{name}.py").read_text(encoding="utf-8")
    source = SourceFile("fragment.py", FileKind.PYTHON, text)
    done = convert_files([source], Settings(target="agnostic"), unsafe=True, jobs=1).files[0]
    assert "scaled_dot_product_attention" in done.text, done.text
    make, given = CASES[name]
    found = 0.0
    for training in (False, True):
        pair = []
        for one in (text, done.text):
            torch.manual_seed(0)
            function = make(module(one))
            if isinstance(function, nn.Module):
                function.train(training)
            pair.append(outputs(function, given))
        found = max(found, *((a - b).abs().max().item() for a, b in zip(*pair, strict=True)))
    return found


if __name__ == "__main__":
    print("DIFFERENCES", json.dumps({name: difference(name) for name in CASES}))
