"""npu_fusion_attention and scaled_dot_product_attention against attention written out in double precision."""

from __future__ import annotations

import itertools
from unittest import mock

import torch
from harness import agree, close, same_on_both
from torch.nn.functional import scaled_dot_product_attention

from npuport.sim.ops import attention_maths

npu = torch.ops.npu
BATCH, HEADS, KEY_HEADS, QUERIES, KEYS, WIDTH = 2, 4, 2, 6, 9, 8
SCALE = 0.3
TRIANGLE = torch.triu(torch.ones(2048, 2048, dtype=torch.bool), 1)
LAYOUTS = {
    "BNSD": lambda t: t,
    "BSND": lambda t: t.transpose(1, 2),
    "BSH": lambda t: t.transpose(1, 2).flatten(2),
    "SBH": lambda t: t.permute(2, 0, 1, 3).flatten(2),
}


def operands(queries=QUERIES, keys=KEYS, key_heads=KEY_HEADS):
    return (
        torch.randn(BATCH, HEADS, queries, WIDTH),
        torch.randn(BATCH, key_heads, keys, WIDTH),
        torch.randn(BATCH, key_heads, keys, WIDTH),
    )


def written_out(query, key, value, hidden=None, pse=None, sink=None, pse_after_scale=False):
    group = query.size(1) // key.size(1)
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = torch.einsum("bnqd,bnkd->bnqk", query, key)
    if pse is not None:
        scores = scores * SCALE + pse if pse_after_scale else (scores + pse) * SCALE
    else:
        scores = scores * SCALE
    if hidden is not None:
        scores = torch.where(hidden, float("-inf"), scores)
    if sink is not None:
        scores = torch.cat([scores, sink[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
    probabilities = scores.softmax(-1)
    if sink is not None:
        probabilities = probabilities[..., :-1]
    return torch.einsum("bnqk,bnkd->bnqd", probabilities, value)


def distance(queries, keys, bottom_right):
    row, column = torch.arange(queries)[:, None], torch.arange(keys)[None]
    return column - row - (keys - queries if bottom_right else 0)


def check_mode(mode, mask, hidden, **named):
    for layout, arrange in LAYOUTS.items():
        for version in ("npu_fusion_attention", "npu_fusion_attention_v2", "npu_fusion_attention_v3"):
            spelled = {k.replace("tockens", "tokens") if version.endswith("v2") else k: v for k, v in named.items()}

            def ours(q, k, v, layout=layout, arrange=arrange, version=version, spelled=spelled):
                return getattr(npu, version)(
                    arrange(q),
                    arrange(k),
                    arrange(v),
                    HEADS,
                    layout,
                    atten_mask=mask.npu(),
                    scale=SCALE,
                    sparse_mode=mode,
                    **spelled,
                )[0]

            agree(ours, lambda q, k, v, arrange=arrange: arrange(written_out(q, k, v, hidden)), *operands())


def case_mode_0_takes_a_full_mask_in_which_true_hides():
    mask = torch.rand(BATCH, 1, QUERIES, KEYS) > 0.5
    mask[..., 0] = False
    check_mode(0, mask, mask)


def case_mode_1_takes_a_full_mask():
    mask = torch.rand(QUERIES, KEYS) > 0.5
    mask[..., 0] = False
    check_mode(1, mask, mask)


def case_mode_2_is_causal_from_the_top_left():
    check_mode(2, TRIANGLE, distance(QUERIES, KEYS, False) > 0)


def case_mode_3_is_causal_to_the_bottom_right():
    check_mode(3, TRIANGLE, distance(QUERIES, KEYS, True) > 0)


def case_mode_4_is_a_band_at_the_bottom_right():
    ahead = distance(QUERIES, KEYS, True)
    check_mode(4, TRIANGLE, (ahead > 1) | (ahead < -2), pre_tockens=2, next_tockens=1)


def case_mode_6_adds_a_visible_prefix_to_each_batch():
    rectangle = torch.cat([torch.zeros(1024, 1024), torch.ones(1024, 1024)], 1).bool()
    prefix = torch.tensor([2, 5])[:, None, None, None]
    hidden = (distance(QUERIES, KEYS, True) > 0) & (torch.arange(KEYS) >= prefix)
    check_mode(6, torch.cat([TRIANGLE, rectangle]), hidden, prefix=[2, 5])


def case_no_mask_attends_to_everything():
    agree(
        lambda q, k, v: npu.npu_fusion_attention(q, k, v, HEADS, "BNSD", scale=SCALE, sparse_mode=3)[0],
        written_out,
        *operands(),
    )


def case_position_bias_is_added_before_the_scale():
    for shape in [(BATCH, HEADS, QUERIES, KEYS), (1, HEADS, QUERIES, KEYS), (BATCH, HEADS, 1, KEYS)]:
        agree(
            lambda q, k, v, p: npu.npu_fusion_attention(q, k, v, HEADS, "BNSD", pse=p, scale=SCALE)[0],
            lambda q, k, v, p: written_out(q, k, v, pse=p),
            *operands(),
            torch.randn(shape),
        )


def case_position_bias_of_type_0_is_added_after_the_scale():
    agree(
        lambda q, k, v, p: npu.npu_fusion_attention_v2(q, k, v, HEADS, "BNSD", pse=p, scale=SCALE, pse_type=0)[0],
        lambda q, k, v, p: written_out(q, k, v, pse=p, pse_after_scale=True),
        *operands(),
        torch.randn(1, HEADS, QUERIES, KEYS),
    )


def case_sink_is_one_more_logit_per_head():
    agree(
        lambda q, k, v, s: npu.npu_fusion_attention(q, k, v, HEADS, "BNSD", sink=s, scale=SCALE)[0],
        lambda q, k, v, s: written_out(q, k, v, sink=s),
        *operands(),
        torch.randn(HEADS),
    )


def case_tnd_attends_within_each_sequence():
    ends_q, ends_k = [3, 3, 8], [4, 6, 11]

    def expected(q, k, v):
        parts = []
        for start_q, end_q, start_k, end_k in zip([0, *ends_q], ends_q, [0, *ends_k], ends_k, strict=False):
            heads_first = [t.transpose(0, 1)[None] for t in (q[start_q:end_q], k[start_k:end_k], v[start_k:end_k])]
            hidden = distance(end_q - start_q, end_k - start_k, True) > 0
            parts.append(written_out(*heads_first, hidden)[0].transpose(0, 1))
        return torch.cat(parts)

    tensors = torch.randn(8, HEADS, WIDTH), torch.randn(11, KEY_HEADS, WIDTH), torch.randn(11, KEY_HEADS, WIDTH)
    named = {"atten_mask": TRIANGLE.npu(), "scale": SCALE, "sparse_mode": 3}
    agree(
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, HEADS, "TND", actual_seq_qlen=ends_q, actual_seq_kvlen=ends_k, **named
        )[0],
        expected,
        *tensors,
    )
    lengths = {"actual_seq_qlen": torch.tensor(ends_q), "actual_seq_kvlen": torch.tensor(ends_k)}
    agree(lambda q, k, v: npu.npu_fusion_attention_v3(q, k, v, HEADS, "TND", **lengths, **named)[0], expected, *tensors)


def case_softmax_statistics_give_the_log_sum_exp():
    q, k, v = operands()
    _, row_max, row_sum, *_ = npu.npu_fusion_attention(q.npu(), k.npu(), v.npu(), HEADS, "BNSD", scale=SCALE)
    assert row_max.shape == row_sum.shape == (BATCH, HEADS, QUERIES, 8)
    assert row_max.dtype == row_sum.dtype == torch.float32
    scores = torch.einsum("bnqd,bnkd->bnqk", q, k.repeat_interleave(2, 1)) * SCALE
    found = (row_max + row_sum.log()).cpu()
    torch.testing.assert_close(found, scores.logsumexp(-1, keepdim=True).expand_as(found))


def case_dropout_scales_what_it_keeps_and_its_gradient_uses_the_same_mask():
    value = torch.eye(KEYS).expand(BATCH, HEADS, KEYS, KEYS).contiguous()
    q, k, _ = operands(key_heads=HEADS)

    def probabilities(v, keep):
        return npu.npu_fusion_attention(q.npu(), k.npu(), v, HEADS, "BNSD", scale=SCALE, keep_prob=keep)[0]

    whole = probabilities(value.npu(), 1.0)
    leaf = value.npu().requires_grad_()
    dropped = probabilities(leaf, 0.6)
    kept = dropped != 0
    assert 0.4 < kept.float().mean().item() < 0.8
    torch.testing.assert_close(dropped[kept], (whole / 0.6)[kept])
    dropped.sum().backward()
    torch.testing.assert_close(leaf.grad, dropped.detach().mT.sum(-1, keepdim=True).expand_as(leaf))


def case_half_precision_is_rounded_once():
    for dtype in (torch.float16, torch.bfloat16):
        q, k, v = (t.to(dtype) for t in operands())
        found = npu.npu_fusion_attention(q.npu(), k.npu(), v.npu(), HEADS, "BNSD", scale=SCALE)[0]
        expected = written_out(q.double(), k.double(), v.double())
        assert found.dtype == dtype
        torch.testing.assert_close(found.cpu(), expected.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-4)


def case_scaled_dot_product_attention_equals_the_cpu():
    q, k, v = operands(8, 8, HEADS)
    mask = torch.rand(8, 8) > 0.3
    mask[:, 0] = True
    same_on_both(scaled_dot_product_attention, q, k, v)
    same_on_both(lambda *t: scaled_dot_product_attention(*t, is_causal=True), q, k, v)
    same_on_both(lambda *t: scaled_dot_product_attention(*t, attn_mask=mask.to(t[0].device)), q, k, v)
    same_on_both(lambda *t: scaled_dot_product_attention(*t[:3], attn_mask=t[3]), q, k, v, torch.randn(8, 8))
    same_on_both(lambda *t: scaled_dot_product_attention(*t, scale=0.1), q, k, v)
    same_on_both(lambda *t: scaled_dot_product_attention(*t, dropout_p=0.3), q, k, v)
    same_on_both(lambda *t: scaled_dot_product_attention(*t, is_causal=True, enable_gqa=True), *operands(8, 8))
    same_on_both(lambda *t: scaled_dot_product_attention(*t, is_causal=True), q[0], k[0], v[0])
    same_on_both(scaled_dot_product_attention, q[..., :6], k[..., :6], v[..., :6])


def case_scaled_dot_product_attention_goes_to_the_fused_operator():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.append(str(function))
            return function(*args, **(kwargs or {}))

    q, k, v = (t.npu() for t in operands(8, 8))
    with Seen() as fused:
        scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    assert "npu.npu_fusion_attention_v3.default" in fused.names, fused.names
    with Seen() as composed:
        scaled_dot_product_attention(q, k, v, torch.zeros(8, 8).npu(), enable_gqa=True)
    assert "aten.matmul.default" in composed.names and not any("fusion" in n for n in composed.names), composed.names


def case_the_gradient_operator_finds_the_dropout_mask_by_its_seed():
    q, k, v = (t.npu() for t in operands(key_heads=HEADS))
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    output, row_max, row_sum, _, seed, offset, count = npu.npu_fusion_attention(*leaves, HEADS, "BNSD", keep_prob=0.6)
    assert count == BATCH * HEADS * QUERIES * KEYS
    grad = torch.randn(output.shape).npu()
    expected = torch.autograd.grad(output, leaves, grad)
    torch.rand(10)
    statistics = {"softmax_max": row_max, "softmax_sum": row_sum, "attention_in": output}
    found = npu.npu_fusion_attention_grad(
        q, k, v, grad, HEADS, "BNSD", **statistics, keep_prob=0.6, seed=seed, offset=offset, numels=count
    )
    for ours, theirs in zip(found[:3], expected, strict=True):
        close(ours, theirs)


def case_a_mask_of_the_caller_is_used_forward_and_backward():
    q, k, _ = (t.npu() for t in operands(key_heads=HEADS))
    mask = npu._npu_dropout_gen_mask(q, [BATCH, HEADS, QUERIES, KEYS], 0.4, 11, 3)
    eye = torch.eye(KEYS).expand(BATCH, HEADS, KEYS, KEYS).npu().requires_grad_()
    dropped = npu.npu_fusion_attention(q, k, eye, HEADS, "BNSD", keep_prob=0.6, dropout_mask=mask, seed=11, offset=3)[0]
    kept = ((mask.cpu()[:, None] >> torch.arange(8)) & 1).flatten()[: dropped.numel()].view(dropped.shape).bool()
    assert torch.equal(dropped.cpu() != 0, kept)
    dropped.sum().backward()
    close(eye.grad, dropped.mT.sum(-1, keepdim=True).expand_as(eye))


def case_heads_taken_a_few_at_a_time_give_the_same_bits():
    batches, heads, shared, queries, keys, width = 3, 4, 2, 5, 7, 6
    q, grad = torch.randn(2, batches, heads, queries, width).bfloat16()
    k, v = torch.randn(2, batches, shared, keys, width).bfloat16()
    biases = [None, *(torch.randn(shape) for shape in ((queries, keys), (heads, queries, keys), (1, heads, 1, keys)))]
    hiddens = [None, torch.rand(queries, keys) > 0.7, torch.rand(batches, 1, queries, keys) > 0.7]
    one_head = heads // shared * queries * keys
    for bias, hidden, extra in itertools.product(biases, hiddens, (False, True)):
        sink = torch.randn(heads) if extra else None
        survivors = torch.rand(batches, heads, queries, keys) > 0.3 if extra else None
        operands = (q, k, v, attention_maths.Options(0.3, 0.7), hidden, bias, sink, survivors)
        found = []
        for limit in (2**22, 1, shared * one_head, 2 * shared * one_head):
            with mock.patch.object(attention_maths, "_SCORES_AT_A_TIME", limit):
                forward = attention_maths.attend(*operands)
                gradients = attention_maths.differentiate(grad, *operands, forward=forward)
            found.append((forward.output, forward.row_max, forward.row_sum, *vars(gradients).values()))
        for *exact, bias_grad, sink_grad in found[1:]:
            assert all(torch.equal(a, b) for a, b in zip(exact, found[0], strict=False))
            for ours, whole, given in ((bias_grad, found[0][-2], bias), (sink_grad, found[0][-1], sink)):
                assert (ours is None) == (given is None)
                if given is not None:
                    torch.testing.assert_close(ours, whole)
                    assert ours.shape == given.shape
