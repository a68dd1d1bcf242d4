"""Calls of operators that the CPU has no kernel of, made on the simulated NPU and recorded.

Usage: npu_samples.py FOLDER: a step for each dtype. Every operator that has a formula is called, forward and backward.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch_npu

from npuport.precision.operators.calls import write_step
from npuport.precision.operators.recording import Recorder

npu, aten = torch.ops.npu, torch.ops.aten
DTYPES = (torch.float32, torch.bfloat16)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def whole(end: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, end, shape)


def activations() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    x = rand(4, 6, 16)
    for one in (npu.npu_fast_gelu, npu.fast_gelu, npu.npu_silu, npu.npu_mish, npu.npu_swiglu, npu.npu_geglu):
        yield one, [x]
    yield lambda a: npu.npu_swiglu(a, 1), [x]
    yield lambda a: npu.npu_geglu(a, 1, 0, True), [x]
    for form in ("none", "tanh"):
        yield lambda a, form=form: npu.npu_gelu(a, approximate=form), [x]
        yield lambda a, form=form: npu.npu_gelu_mul(a.detach(), approximate=form), [x]
    yield lambda a: npu.npu_silu_(a.detach().clone()), [x]
    yield lambda a: npu.npu_clipped_swiglu(a.detach()), [3 * x]
    yield (
        lambda a, sizes: npu.npu_clipped_swiglu(a.detach(), group_index=sizes, dim=2, interleaved=False),
        [3 * x, torch.tensor([10, 5])],
    )


def norms() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    x, y, gamma, beta = rand(4, 6, 16), rand(4, 6, 16), rand(16), rand(16)
    yield npu.npu_rms_norm, [x, gamma]
    yield lambda a, g: npu.npu_rms_norm(a, g, 1e-2), [x, rand(6, 16)]
    for one in (npu.npu_add_rms_norm, npu.npu_add_rms_norm_cast, npu.npu_add_rms_norm_v2_functional):
        yield lambda a, b, g, one=one: one(a.detach(), b.detach(), g.detach()), [x, y, gamma]
    yield (
        lambda a, b, g: npu.npu_add_rms_norm_v2(a.detach().clone(), b.detach().clone(), g.detach()),
        [x, y, gamma],
    )
    yield lambda a, g: npu.npu_gemma_rms_norm(a.detach(), g.detach()), [x, gamma]
    yield lambda a, b, g, h: npu.npu_add_layer_norm(a, b, g, h, 1e-5, True), [x, y, gamma, beta]
    yield npu.npu_deep_norm, [x, y, beta, gamma]
    yield lambda a, g, h: npu.npu_layer_norm_eval(a.detach(), [16], g.detach(), h.detach()), [x, gamma, beta]
    image, weight, bias = rand(2, 4, 3, 5), rand(4), rand(4)
    yield lambda a, w, b: npu.npu_group_norm_silu(a.detach(), w.detach(), b.detach(), 2), [image, weight, bias]
    yield lambda a, w, b: npu.npu_group_norm_swish(a, 2, w, b), [image, weight, bias]

    def layernorm_grad(a: torch.Tensor, g: torch.Tensor, w: torch.Tensor) -> Any:
        mean, rstd = a.float().mean(-1, keepdim=True), 1 / a.float().std(-1, keepdim=True)
        return npu.npu_layernorm_grad(g.detach(), a.detach(), [16], mean.detach(), rstd.detach(), w.detach(), None)

    yield layernorm_grad, [x, y, gamma]


def positions() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    x, cos, sin = rand(2, 3, 4, 16), rand(1, 1, 4, 16), rand(1, 1, 4, 16)
    for mode in ("half", "interleave"):
        yield lambda a, c, s, mode=mode: npu.npu_rotary_mul(a, c, s, mode), [x, cos, sin]
    yield lambda a, c, s: npu.npu_interleave_rope(a.detach(), c.detach(), s.detach()), [x, cos, sin]
    by_place = [rand(2, 4, 3, 16), rand(2, 4, 3, 16), rand(2, 4, 1, 16), rand(2, 4, 1, 16)]
    yield lambda *all: npu.npu_apply_rotary_pos_emb(*(one.detach().clone() for one in all)), by_place


def softmaxes() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    x, mask = rand(2, 2, 32, 32), (rand(2, 1, 32, 32) > 0.5)
    yield lambda a, m: npu.npu_scaled_masked_softmax(a, m, 0.3, False), [x, mask]
    yield lambda a: npu.npu_attn_softmax_(a.detach().clone()), [x]
    yield (
        lambda a, g, v: npu.npu_attn_softmax_backward_(a.detach().softmax(-1), g.detach(), v.detach()),
        [x, rand(2, 2, 32, 8), rand(2, 2, 32, 8)],
    )


def losses() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    logits, labels = rand(8, 10), whole(10, 8)
    F, bce = torch.nn.functional, torch.nn.functional.binary_cross_entropy_with_logits
    for reduction in ("mean", "sum", "none"):
        yield lambda a, r=reduction: npu.npu_cross_entropy_loss(a, labels.npu(), None, r, 3, 0.1)[:2], [logits]
        yield lambda a, b, r=reduction: F.kl_div(a, b, reduction=r), [rand(4, 5), rand(4, 5).softmax(1)]
        yield lambda a, b, r=reduction: F.kl_div(a, b, reduction=r, log_target=True), [rand(4, 5), rand(4, 5)]
        yield lambda a, b, r=reduction: F.l1_loss(a, b.detach(), reduction=r), [rand(4, 5), rand(4, 5)]
        yield (
            lambda a, b, w, r=reduction: bce(a, b.detach(), w.detach(), reduction=r, pos_weight=2 * w.detach()),
            [rand(4, 5), rand(4, 5).sigmoid(), rand(5).abs()],
        )
    yield (
        lambda a, b: npu.npu_softmax_cross_entropy_with_logits(a, b.detach()),
        [logits, rand(8, 10).softmax(1)],
    )


def attention() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    def of(layout: str, heads: int = 4, **named: Any) -> Callable[..., Any]:
        return lambda q, k, v: npu.npu_fusion_attention(q, k, v, heads, layout, scale=0.25, **named)[:3]

    def mask(*shape: int) -> torch.Tensor:
        return torch.ones(shape, dtype=torch.bool).triu(1).npu()

    q, k, v = (rand(2, 4, 24, 16) for _ in range(3))
    yield of("BNSD"), [q, k, v]
    yield of("BNSD", atten_mask=mask(24, 24)), [q, k, v]
    yield of("BNSD", atten_mask=~mask(24, 24)), [q, k, v]  # the first rows see, the last do not
    yield of("BNSD", atten_mask=torch.ones(24, 24, dtype=torch.bool).tril(-9).npu()), [q, k, v]
    yield of("BNSD", atten_mask=torch.ones(24, 24, dtype=torch.bool).triu(0).npu()), [q, k, v]  # one row sees nothing
    yield of("BNSD", sink=rand(4).npu()), [q, k, v]
    yield of("BSND"), [rand(2, 24, 4, 16), rand(2, 24, 2, 16), rand(2, 24, 2, 16)]
    yield of("BSH", atten_mask=mask(2048, 2048), sparse_mode=2), [rand(2, 24, 64), rand(2, 30, 64), rand(2, 30, 64)]
    yield of("SBH", atten_mask=mask(2048, 2048), sparse_mode=3), [rand(24, 2, 64), rand(30, 2, 32), rand(30, 2, 32)]
    band = {"sparse_mode": 4, "pre_tockens": 5, "next_tockens": 0}
    yield of("BNSD", atten_mask=mask(2048, 2048), **band), [q, k, v]
    tokens = [rand(24, 4, 16), rand(24, 2, 16), rand(24, 2, 16)]
    ends = {"actual_seq_qlen": [5, 24], "actual_seq_kvlen": [9, 24]}
    yield of("TND", **ends), tokens
    yield of("TND", atten_mask=mask(2048, 2048), sparse_mode=3, softmax_layout="TND", **ends), tokens
    ropes = [rand(24, 4, 8), rand(24, 2, 8)]
    yield (
        lambda a, b, c, d, e: npu.npu_fusion_attention_v2(
            a, b, c, 4, "TND", query_rope=d, key_rope=e, scale=0.2, atten_mask=mask(2048, 2048), sparse_mode=3, **ends
        )[:3],
        [*tokens, *ropes],
    )
    pse = rand(1, 4, 24, 24)
    yield (
        lambda a, b, c: npu.npu_fusion_attention(a.detach(), b, c, 4, "BNSD", pse.npu().to(a.dtype), scale=0.2)[:3],
        [one.detach() for one in (q, k, v)],
    )
    yield lambda a, b, c: npu.npu_fusion_attention_v2(a, b, c, 4, "BNSD", scale=0.25)[:3], [q, k, v]
    yield lambda a, b, c: npu.npu_fusion_attention_v3(a, b, c, 4, "BNSD", scale=0.25)[:3], [q, k, v]


def products() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    x, weight, bias = rand(3, 5, 8), rand(6, 8), rand(6)
    yield npu.npu_linear, [x[0], weight, bias]
    yield torch.matmul, [rand(2, 5, 8), rand(2, 8, 3)]
    yield lambda a, b: npu.npu_bmmV2(a, b, []), [rand(2, 5, 8), rand(2, 8, 3)]
    for kind in ("", "relu", "add", "mul", "gelu_erf", "gelu_tanh", "16cast32"):
        third = {"x3": rand(5, 4).npu()} if kind in ("add", "mul") else {}
        yield (
            lambda a, b, kind=kind, third=third: npu.npu_fused_matmul(
                a.detach(), b.detach(), fused_op_type=kind, **{name: one.to(a.dtype) for name, one in third.items()}
            ),
            [rand(5, 8), rand(8, 4)],
        )
    yield (
        lambda a, b: npu.npu_transpose_batchmatmul(a.detach(), b.detach(), perm_x1=[1, 0, 2]),
        [
            rand(5, 2, 8),
            rand(2, 8, 4),
        ],
    )

    def grouped(a: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
        return npu.npu_grouped_matmul([a, a], [w, w], bias=[b, b], group_type=-1)

    yield lambda *all: grouped(*(one.detach() for one in all)), [rand(5, 8), rand(8, 4), rand(4)]
    groups = torch.tensor([2, 5]).npu()
    yield (
        lambda a, w: npu.npu_grouped_matmul(
            [a.detach()], [w.detach()], group_list=groups, split_item=3, group_type=0, group_list_type=0
        ),
        [rand(5, 8), rand(2, 8, 4)],
    )
    yield (
        lambda a, w: npu.npu_grouped_matmul.List(
            [a.detach()], [w.detach()[0], w.detach()[1]], group_list=[2, 5], split_item=3
        ),
        [rand(5, 8), rand(2, 8, 4)],
    )
    for one in (npu.npu_grouped_matmul_add, npu.npu_grouped_matmul_add_):
        yield (
            lambda a, w, one=one: one(torch.ones(16, 4).npu(), a.detach(), w.detach(), groups),
            [
                rand(5, 8),
                rand(5, 4),
            ],
        )
    image, kernel, offset = rand(2, 4, 6, 7), rand(8, 2, 3, 3), rand(8)
    for one in (npu.npu_conv2d, npu.npu_convolution):
        yield lambda a, w, b, one=one: one(a, w, b, [2, 1], [1, 1], [1, 1], 2), [image, kernel, offset]
    yield (
        lambda a, w, b: npu.npu_conv3d(a, w, b, [1] * 3, [1] * 3, [1] * 3, 1),
        [rand(1, 2, 4, 4, 4), rand(3, 2, 3, 3, 3), rand(3)],
    )
    for one in (npu.npu_conv_transpose2d, npu.npu_convolution_transpose):
        yield (
            lambda a, w, b, one=one: one(a, w, b, [1, 1], [0, 0], [2, 2], [1, 1], 1),
            [
                image,
                rand(4, 3, 3, 3),
                rand(3),
            ],
        )
    yield (
        lambda a, w, b: torch.conv_transpose3d(a, w, b, [2] * 3, [1] * 3),
        [rand(1, 2, 4, 4, 4), rand(2, 3, 3, 3, 3), rand(3)],
    )
    yield from convolution_backwards()
    for one in (aten.mm.dtype, aten.bmm.dtype):
        size = (2,) if one is aten.bmm.dtype else ()
        yield lambda a, b, one=one: one(a.detach(), b.detach(), torch.float32), [rand(*size, 5, 8), rand(*size, 8, 4)]
    for one in (aten.addmm.dtype, aten.baddbmm.dtype):
        size = (2,) if one is aten.baddbmm.dtype else ()
        yield (
            lambda c, a, b, one=one: one(c.detach(), a.detach(), b.detach(), torch.float32, beta=0.5, alpha=2),
            [rand(*size, 5, 4), rand(*size, 5, 8), rand(*size, 8, 4)],
        )


def convolution_backwards() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    """Called by themselves: autograd takes others."""

    def plain(operator: Any, *sizes: Any) -> Callable[..., Any]:
        return lambda *all: operator(*(one.detach() for one in all), *sizes)

    every, one, three = [True] * 3, [1, 1], [1, 1, 1]
    planes = [rand(2, 4, 6, 7), rand(2, 8, 6, 7), rand(8, 4, 3, 3)]
    yield plain(npu.npu_conv2d_backward, one, one, one, 1, every), planes
    spaces = [rand(1, 2, 4, 4, 4), rand(1, 3, 4, 4, 4), rand(3, 2, 3, 3, 3)]
    yield plain(npu.npu_conv3d_backward, three, three, three, 1, every), spaces
    larger = [rand(2, 4, 6, 7), rand(2, 3, 6, 7), rand(4, 3, 3, 3)]
    yield plain(npu.npu_conv_transpose2d_backward, one, [0, 0], one, one, 1, every), larger
    spaces = [rand(1, 2, 4, 4, 4), rand(1, 3, 4, 4, 4), rand(2, 3, 3, 3, 3)]
    yield plain(npu.npu_conv_transpose3d_backward, three, [0] * 3, three, three, 1, every), spaces
    deep, kernel = rand(2, 4, 6, 7), rand(4, 1, 3, 3)
    yield lambda a, w: aten._conv_depthwise2d(a.detach(), w.detach(), [3, 3], None, one, one, one), [deep, kernel]
    yield (
        lambda g, a, w: npu._conv_depthwise2d_backward(
            g.detach(), a.detach(), w.detach(), [3, 3], one, one, one, [True, True]
        ),
        [rand(2, 4, 6, 7), deep, kernel],
    )


def moves() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    x = rand(2, 3, 4)
    yield lambda a: torch_npu.npu_dtype_cast(a, torch.float16), [x]
    yield lambda a: npu._npu_dtype_cast(a, torch.bfloat16), [x]
    yield lambda a: torch_npu.npu_dtype_cast(a.detach() * 9, torch.int32), [x]
    yield lambda a: npu.npu_transpose(a, [2, 0, 1]), [x]
    yield lambda a: npu.npu_reshape(a.detach(), [6, 4]), [x]
    yield lambda a: npu.npu_broadcast(a.detach(), [5, 2, 3, 4]), [x]
    yield lambda a: npu.npu_confusion_transpose(a, [0, 2, 1], [2, 12], True), [x]
    yield lambda a: npu.npu_confusion_transpose(a, [0, 2, 1], [2, 6, 2], False), [x]
    yield lambda a: npu.npu_slice(a.detach(), [0, 1, 1], [2, 2, 3]), [x]
    yield lambda a: npu.npu_pad(a.detach(), [1, 0, 0, 2, 1, 1]), [x]
    yield lambda a: npu.copy_memory_(torch.zeros_like(a), a.detach()), [x]
    yield lambda a: npu.npu_view_copy(torch.zeros_like(a), a.detach(), False), [x]
    yield lambda a: npu.one_(a.detach().clone()), [x]
    yield lambda i: npu.npu_one_hot(i, -1, 7, 2, -1), [whole(7, 5)]
    for one in (npu.npu_max, npu.npu_min):
        yield lambda a, one=one: one.dim(a, 1, False)[0], [x]
    for repeats in (3, torch.tensor([1, 0, 2])):
        yield (
            lambda a, repeats=repeats: torch.repeat_interleave(
                a, repeats.npu() if isinstance(repeats, torch.Tensor) else repeats, 1
            ),
            [x],
        )
    yield lambda a, i: torch.gather(a, 1, i), [x, whole(3, 2, 2, 4)]
    yield npu.npu_gather_sparse_index, [rand(6, 4), whole(6, 5)]
    kept = torch.tensor([0b10110111] * 3, dtype=torch.uint8)
    yield lambda a, m: npu.npu_dropout_do_mask(a.detach(), m, 0.25), [x, kept]
    yield lambda a, m: npu.npu_dropout_backward(a.detach(), m, 0.25), [x, kept]
    yield lambda a, m: npu._dropout_with_byte_mask_backward(a.detach(), m, 0.25), [x, whole(2, 2, 3, 4).byte()]
    yield lambda a, m: aten._masked_scale(a.detach(), m, 4.0), [x, whole(2, 2, 3, 4).byte()]


def experts() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    tokens, chosen, probs = rand(6, 8), torch.stack([torch.randperm(4)[:2] for _ in range(6)]), rand(6, 2).softmax(-1)
    yield lambda a, i: npu.npu_moe_token_permute(a, i)[0], [tokens, chosen]
    yield lambda a, i: npu.npu_moe_token_permute(a, i, 7)[0], [tokens, chosen]
    places = torch.randperm(12).int()
    yield lambda a, p: npu.npu_moe_token_unpermute(a, places.npu(), p), [rand(12, 8), probs]
    yield lambda a: npu.npu_moe_token_unpermute(a, places.npu()), [rand(12, 8)]
    yield (
        lambda a, g, i: npu.npu_moe_token_permute_grad(a.detach(), g.detach(), i, places.npu()),
        [
            tokens,
            rand(12, 8),
            chosen,
        ],
    )
    yield (
        lambda a, g, p: npu.npu_moe_token_unpermute_grad(a.detach(), g.detach(), places.npu(), p.detach()),
        [
            rand(12, 8),
            tokens,
            probs,
        ],
    )
    marks = torch.zeros(6, 4, dtype=torch.bool).scatter(1, chosen, True)
    weights = rand(6, 4).softmax(-1)
    yield (
        lambda a, p, m: npu.npu_moe_token_permute_with_routing_map(a, m, probs=p, num_out_tokens=12)[:2],
        [tokens, weights, marks],
    )
    order = torch.nonzero(marks.T)[:, 1].sort(stable=True).indices.int()
    yield (
        lambda a, p, m: npu.npu_moe_token_unpermute_with_routing_map(a, order.npu(), [6, 8], probs=p, routing_map=m),
        [rand(12, 8), weights, marks],
    )
    logits = rand(6, 8)
    yield lambda a: npu.npu_moe_gating_top_k_softmax(a.detach(), k=2), [logits]
    for renorm in (0, 1):
        yield (
            lambda a, r=renorm: npu.npu_moe_gating_top_k_softmax_v2(a.detach(), k=2, renorm=r, output_softmax=not r),
            [logits],
        )
    for kind in (0, 1):
        yield (
            lambda a, kind=kind: npu.npu_moe_gating_top_k(
                a, 2, k_group=1, group_count=2, norm_type=kind, out_flag=True, routed_scaling_factor=2.5
            )[0],
            [logits],
        )


def batch_norms() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    x, weight, bias, grad = rand(4, 3, 5), rand(3), rand(3), rand(4, 3, 5)
    counts = torch.tensor([20.0, 12.0])

    def forward(a: torch.Tensor, w: torch.Tensor, b: torch.Tensor, g: torch.Tensor) -> None:
        a, w, b, g = (one.detach() for one in (a, w, b, g))
        mean, invstd = torch.batch_norm_stats(a, 1e-5)
        torch.batch_norm_elemt(a, w, b, mean, invstd, 1e-5)
        sums = torch.batch_norm_backward_reduce(g, a, mean, invstd, w, True, True, True)
        torch.batch_norm_backward_elemt(g, a, mean, invstd, w, sums[0], sums[1], torch.tensor([20]).int().npu())
        both = (torch.stack([one, one * 1.1]) for one in (mean, invstd))
        running = torch.zeros(3).npu(), torch.ones(3).npu()
        torch.batch_norm_gather_stats_with_counts(a, *both, *running, 0.1, 1e-5, counts.npu())
        total, squares = npu.batch_norm_reduce(a, 1e-5)
        both = (torch.stack([one, one]) for one in (total, squares))
        npu.batch_norm_gather_stats_update(a, *both, *running, 0.1, 1e-5, torch.tensor([20.0, 20.0]).npu())

    yield forward, [x, weight, bias, grad]


def recurrences() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    for kind, options in (
        (torch.nn.LSTM, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
        (torch.nn.LSTM, {"bias": False}),
        (torch.nn.GRU, {"num_layers": 2, "bidirectional": True}),
    ):
        yield lambda a, kind=kind, options=options: kind(6, 5, **options).to(a.dtype).npu()(a)[0], [rand(3, 4, 6)]
    yield lambda a: torch.nn.LSTMCell(6, 5).to(a.dtype).npu()(a)[0], [rand(4, 6)]


def optimizers() -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    def state() -> tuple[torch.Tensor, ...]:
        return rand(20).npu(), rand(20).npu(), rand(20).abs().npu()

    grad = rand(20)
    for nesterov in (False, True):
        yield (
            lambda g, n=nesterov: npu.npu_apply_adam.out(
                0.8, 0.9, 0.1, 0.8, 0.9, 1e-3, g.detach(), False, n, out=state()
            ),
            [grad],
        )
    for ascends in (False, True):
        yield (
            lambda g, up=ascends: npu.npu_apply_adam_w.out(
                0.8, 0.9, 0.1, 0.2, 0.8, 0.9, 1e-8, g.detach(), None, False, up, out=state()
            ),
            [grad],
        )
    for norm in (0.5, 2.0):
        yield (
            lambda g, norm=norm: npu.npu_bert_apply_adam.out(
                0.1, 0.8, 0.9, 1e-6, g.detach(), 1.0, norm, 0.01, out=state()
            ),
            [grad],
        )


FAMILIES = (activations, norms, positions, softmaxes, losses, attention, products, moves, experts, batch_norms,
            recurrences, optimizers)  # fmt: skip
_SINGLE = (optimizers,)  # in float32 only


def run(function: Callable[..., Any], values: list[torch.Tensor], dtype: torch.dtype) -> None:
    """Call a function on the NPU, and go backward from all that it gave."""
    given = [one.to(dtype).npu().requires_grad_() if one.is_floating_point() else one.npu() for one in values]
    made = [one for one in torch.utils._pytree.tree_leaves(function(*given)) if isinstance(one, torch.Tensor)]
    wanted = [one for one in made if one.requires_grad]
    if wanted:
        torch.autograd.backward(wanted[:1], [torch.randn(wanted[0].shape).to(wanted[0].dtype).npu()])


def main(folder: Path) -> None:
    for number, dtype in enumerate(DTYPES):
        torch.manual_seed(0)
        recorder = Recorder()
        for family in FAMILIES:
            if dtype is torch.float32 or family not in _SINGLE:
                for function, values in family():
                    with recorder:
                        run(function, values, dtype)
        write_step(folder, recorder.take(number, 0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
