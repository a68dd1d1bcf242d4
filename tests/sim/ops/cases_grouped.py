"""Products per group, and attention merged from parts of the keys."""

from __future__ import annotations

import torch
from harness import close, raises
from torch.nn import functional

npu = torch.ops.npu


def case_grouped_matmul():
    x, weight, bias = torch.randn(9, 4), torch.randn(3, 4, 5), torch.randn(3, 5)
    ends, sizes = [2, 2, 9], [2, 0, 7]
    expected = torch.cat([part @ w + b for part, w, b in zip(x.split(sizes), weight, bias, strict=True)])
    on_npu = [x.npu()], [weight.npu()]
    for group_list, kind in ((torch.tensor(ends).npu(), 0), (torch.tensor(sizes).npu(), 1)):
        found = npu.npu_grouped_matmul(
            *on_npu, bias=[bias.npu()], group_list=group_list, split_item=3, group_type=0, group_list_type=kind
        )
        close(found[0], expected)
    pairs = npu.npu_grouped_matmul(
        [x.npu(), x[:2].npu()], [weight[0].npu(), weight[1].npu()], split_item=0, group_type=-1
    )
    close(pairs[0], x @ weight[0]), close(pairs[1], x[:2] @ weight[1])
    wide, tall = torch.randn(3, 9), torch.randn(9, 5)
    found = npu.npu_grouped_matmul(
        [wide.npu()], [tall.npu()], group_list=torch.tensor(ends).npu(), split_item=3, group_type=2
    )
    close(found[0], torch.stack([a @ b for a, b in zip(wide.split(sizes, 1), tall.split(sizes), strict=True)]))
    listed = npu.npu_grouped_matmul.List(
        [x.npu()], [w.npu() for w in weight], group_list=[2, 5, 9], split_item=2, group_type=None
    )
    close(listed[0], torch.cat([part @ w for part, w in zip(x.split([2, 3, 4]), weight, strict=True)]))
    for kind, activation in (
        (1, torch.relu),
        (2, lambda t: functional.gelu(t, approximate="tanh")),
        (4, lambda t: t * torch.sigmoid(1.702 * t)),
        (5, functional.silu),
    ):
        active = npu.npu_grouped_matmul(
            *on_npu, bias=[bias.npu()], group_list=torch.tensor(ends).npu(), split_item=3, group_type=0, act_type=kind
        )
        close(active[0], activation(expected))
    short = npu.npu_grouped_matmul(*on_npu, group_list=torch.tensor([1, 3, 7]).npu(), split_item=3, group_type=0)[0]
    assert short.shape == (9, 5) and not short[7:].any()
    close(short[3:7], x[3:7] @ weight[2])
    raises(NotImplementedError, "scale", lambda: npu.npu_grouped_matmul(*on_npu, scale=[bias.npu()], group_type=-1))
    raises(RuntimeError, "group_list", lambda: npu.npu_grouped_matmul(*on_npu, group_type=0))


def case_grouped_matmul_of_int8():
    x, weight = torch.randint(-9, 9, (9, 4), dtype=torch.int8), torch.randint(-9, 9, (3, 4, 5), dtype=torch.int8)
    bias, scale, tokens = torch.randint(-99, 99, (3, 5), dtype=torch.int32), torch.rand(3, 5), torch.rand(9)
    sizes = [2, 0, 7]
    shared = {"group_list": torch.tensor(sizes).npu(), "group_list_type": 1, "split_item": 3, "group_type": 0}
    shared["scale"] = [s.npu() for s in scale]
    operands = [x.npu()], [w.npu() for w in weight]
    parts = list(zip(x.double().split(sizes), weight.double(), bias, scale, tokens.split(sizes), strict=True))
    found = npu.npu_grouped_matmul(*operands, bias=[b.npu() for b in bias], output_dtype=torch.float16, **shared)[0]
    assert torch.equal(found.cpu(), torch.cat([(p @ w + b) * s.double() for p, w, b, s, _ in parts]).half())
    shared["per_token_scale"] = [tokens.npu()]
    late = [b.float().npu() for b in bias]
    found = npu.npu_grouped_matmul(*operands, bias=late, output_dtype=torch.bfloat16, **shared)[0]
    assert torch.equal(
        found.cpu(), torch.cat([(p @ w) * s.double() * t.double()[:, None] + b for p, w, b, s, t in parts]).bfloat16()
    )
    found = npu.npu_grouped_matmul(*operands, **shared)[0]
    expected = torch.cat([(p @ w) * s.double() * t.double()[:, None] for p, w, _, s, t in parts])
    assert torch.equal(found.cpu(), expected.round().clamp(-128, 127).to(torch.int8))
    raises(NotImplementedError, "act_type", lambda: npu.npu_grouped_matmul(*operands, act_type=1, **shared))


def case_grouped_matmul_adds_weight_gradients():
    x, grad, start = torch.randn(9, 4), torch.randn(9, 5), torch.randn(12, 5)
    sizes = [2, 0, 7]
    expected = start + torch.cat([a.T @ b for a, b in zip(x.split(sizes), grad.split(sizes), strict=True)])
    for kind, numbers in ((0, [2, 2, 9]), (1, sizes)):
        for in_place in (True, False):
            target = start.npu()
            operator = npu.npu_grouped_matmul_add_ if in_place else npu.npu_grouped_matmul_add
            found = operator(target, x.npu(), grad.npu(), torch.tensor(numbers).npu(), group_list_type=kind)
            close(found, expected)
            close(target, expected)


def case_ring_attention_update_merges_two_halves_of_the_keys():
    query, key, value = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 8, 4), torch.randn(2, 3, 8, 4)
    whole = (query @ key.mT * 0.5).softmax(-1) @ value

    def sbh(t):
        return t.permute(2, 0, 1, 3).flatten(2).npu()

    parts = [
        npu.npu_fusion_attention(sbh(query), sbh(key[:, :, half]), sbh(value[:, :, half]), 3, "SBH", scale=0.5)[:3]
        for half in (slice(0, 3), slice(3, 8))
    ]
    merged, _, _ = npu.npu_ring_attention_update(*parts[0], *parts[1])
    close(merged, sbh(whole))


def case_ring_attention_update_of_sequences():
    query, key, value = torch.randn(5, 3, 4), torch.randn(8, 3, 4), torch.randn(8, 3, 4)
    ends = [2, 5]

    def attend(columns, layout, ends_k):
        return npu.npu_fusion_attention(
            query.npu(), key[columns].npu(), value[columns].npu(), 3, "TND", scale=0.5, softmax_layout=layout,
            actual_seq_qlen=ends, actual_seq_kvlen=ends_k,
        )[:3]  # fmt: skip

    whole = attend(slice(8), "", [4, 8])[0]
    for layout in ("", "TND"):
        parts = attend([0, 1, 4, 5, 6], layout, [2, 5]), attend([2, 3, 7], layout, [2, 3])
        merged, _, _ = npu.npu_ring_attention_update(
            *parts[0], *parts[1], actual_seq_qlen=torch.tensor(ends).npu(), input_layout="TND",
            input_softmax_layout=layout,
        )  # fmt: skip
        close(merged, whole)


def case_attention_update_merges_parts_by_their_log_sum_exp():
    scores, values = torch.randn(6, 9), torch.randn(9, 4)
    parts = (slice(0, 2), slice(2, 9))
    lse = [scores[:, p].logsumexp(-1).npu() for p in parts]
    outs = [(scores[:, p].softmax(-1) @ values[p]).npu() for p in parts]
    merged, total = npu.npu_attention_update(lse, outs, 1)
    close(merged, scores.softmax(-1) @ values), close(total, scores.logsumexp(-1))
