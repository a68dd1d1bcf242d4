"""The stand-ins against plain attention, on the simulated NPU: values, gradients, lengths, masks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

from npuport.runtime.activation import activate

activate()

import flash_attn  # noqa: E402
import pynvml  # noqa: E402
import torch  # noqa: E402
from flash_attn.bert_padding import pad_input, unpad_input  # noqa: E402
from torch import Tensor  # noqa: E402
from xformers.ops import LowerTriangularMask, memory_efficient_attention  # noqa: E402
from xformers.ops.fmha.attn_bias import BlockDiagonalMask  # noqa: E402

torch.manual_seed(0)


def plain(q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """Attention of [batch, sequence, heads, size] in float64 on the CPU; ``seen`` [queries, keys]."""
    q, k, v = (each.detach().cpu().double().transpose(1, 2) for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], dim=1) for each in (k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    scores = scores if bias is None else scores + bias.detach().cpu().double()
    if seen is not None:
        scores = scores.masked_fill(~seen, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2)


def same(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found.detach().cpu().double(), wanted, atol=2e-5, rtol=1e-4)


@contextmanager
def refused(kind: type[Exception], part: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        assert part in str(error)
    else:
        raise AssertionError(f"{part} is not refused")


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, device="npu", requires_grad=True)


def bottom_right(queries: int, keys: int, left: int = -1, right: int = 0) -> Tensor:
    distance = torch.arange(keys)[None, :] - torch.arange(queries)[:, None] - (keys - queries)
    far = queries + keys
    return (distance <= (right if right >= 0 else far)) & (distance >= -(left if left >= 0 else far))


def check_flash_attention() -> None:
    q, k, v = random(2, 5, 4, 16), random(2, 9, 2, 16), random(2, 9, 2, 16)
    same(flash_attn.flash_attn_func(q, k, v), plain(q, k, v))
    same(flash_attn.flash_attn_func(q, k, v, causal=True), plain(q, k, v, bottom_right(5, 9)))
    same(flash_attn.flash_attn_func(q, k, v, window_size=(3, 1)), plain(q, k, v, bottom_right(5, 9, 3, 1)))
    same(flash_attn.flash_attn_func(q, k, v, causal=True, window_size=[2, 0]), plain(q, k, v, bottom_right(5, 9, 2)))
    same(flash_attn.flash_attn_func(q, k, v, softmax_scale=0.5), plain(q * 0.5 * 16**0.5, k, v))
    same(flash_attn.flash_attn_kvpacked_func(q, torch.stack([k, v], 2)), plain(q, k, v))
    qkv = random(2, 6, 3, 4, 16)
    same(flash_attn.flash_attn_qkvpacked_func(qkv, causal=True), plain(*qkv.unbind(2), bottom_right(6, 6)))


def check_gradients() -> None:
    q, k, v = random(1, 6, 2, 16), random(1, 6, 2, 16), random(1, 6, 2, 16)
    flash_attn.flash_attn_func(q, k, v, causal=True).square().sum().backward()
    again = [each.detach().cpu().double().requires_grad_() for each in (q, k, v)]
    p, r, s = (each.transpose(1, 2) for each in again)
    scores = (p @ r.transpose(-1, -2) / 4).masked_fill(~bottom_right(6, 6), float("-inf"))
    (scores.softmax(-1) @ s).square().sum().backward()
    for mine, wanted in zip((q, k, v), again, strict=True):
        same(mine.grad, wanted.grad)


def check_variable_lengths() -> None:
    lengths = [3, 7, 2]
    q, k, v = random(12, 4, 16), random(12, 4, 16), random(12, 4, 16)
    ends = torch.tensor([0, 3, 10, 12], dtype=torch.int32, device="npu")
    found = flash_attn.flash_attn_varlen_func(q, k, v, ends, ends, 7, 7, causal=True)
    parts = [each.split(lengths) for each in (q, k, v)]
    wanted = [
        plain(*(each[None] for each in part), bottom_right(len(part[0]), len(part[0])))[0]
        for part in zip(*parts, strict=True)
    ]
    same(found, torch.cat(wanted))
    same(flash_attn.flash_attn_unpadded_func(q, k, v, ends, ends, 7, 7, 0.0, causal=True), torch.cat(wanted))
    mask = BlockDiagonalMask.from_seqlens(lengths).make_causal()
    same(memory_efficient_attention(q[None], k[None], v[None], attn_bias=mask)[0], torch.cat(wanted))


def check_padding() -> None:
    x = random(2, 4, 3)
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]], device="npu")
    tokens, indices, ends, longest, used = unpad_input(x, mask)
    assert (indices.tolist(), ends.tolist(), longest, used.tolist()) == ([0, 1, 4, 5, 6], [0, 2, 5], 3, [2, 3])
    assert torch.equal(pad_input(tokens, indices, 2, 4), x * mask[..., None])


def check_xformers() -> None:
    q, k, v = random(2, 6, 4, 16), random(2, 6, 4, 16), random(2, 6, 4, 16)
    same(memory_efficient_attention(q, k, v), plain(q, k, v))
    same(memory_efficient_attention(q, k, v, attn_bias=LowerTriangularMask()), plain(q, k, v, bottom_right(6, 6)))
    bias = random(1, 4, 6, 6)
    same(memory_efficient_attention(q, k, v, attn_bias=bias), plain(q, k, v, bias=bias))
    alone = memory_efficient_attention(q[:, :, 0], k[:, :, 0], v[:, :, 0])
    same(alone[:, :, None], plain(q[:, :, :1], k[:, :, :1], v[:, :, :1]))


def check_refusals() -> None:
    q = random(1, 4, 2, 16)
    with refused(NotImplementedError, "softcap"):
        flash_attn.flash_attn_func(q, q, q, softcap=30.0)
    with refused(NotImplementedError, "alibi_slopes"):
        flash_attn.flash_attn_func(q, q, q, alibi_slopes=q)
    with refused(ModuleNotFoundError, "stand-in for flash_attn has no flash_attn.losses"):
        importlib.import_module("flash_attn.losses.cross_entropy")


def check_pynvml() -> None:
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    assert memory.total == memory.free + memory.used > 0
    assert "Ascend" in pynvml.nvmlDeviceGetName(handle)
    with refused(pynvml.NVMLError, "nvmlDeviceGetPowerUsage"):
        pynvml.nvmlDeviceGetPowerUsage(handle)


if __name__ == "__main__":
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            check()
            print("passed", name)
