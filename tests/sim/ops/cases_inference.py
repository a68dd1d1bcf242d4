"""Attention operators for evaluation against attention written out."""

from __future__ import annotations

import torch
from cases_attention import BATCH, HEADS, KEYS, LAYOUTS, QUERIES, SCALE, TRIANGLE, distance, operands, written_out
from harness import close, raises

npu = torch.ops.npu
FAR = 2147483647


def case_prompt_attention_in_each_layout():
    q, k, v = operands()
    for layout, arrange in LAYOUTS.items():
        if layout == "SBH":
            continue
        found = npu.npu_prompt_flash_attention(
            *(arrange(t).contiguous().npu() for t in (q, k, v)), num_heads=HEADS, num_key_value_heads=2,
            input_layout=layout, scale_value=SCALE,
        )  # fmt: skip
        close(found, arrange(written_out(q, k, v)))
    found = npu.npu_prompt_flash_attention(
        *(t.npu() for t in (q, k, v)), num_heads=HEADS, num_key_value_heads=2, input_layout="BNSD_BSND",
        scale_value=SCALE,
    )  # fmt: skip
    close(found, written_out(q, k, v).transpose(1, 2))


def case_prompt_attention_masks():
    q, k, v = operands()
    tensors, named = [t.npu() for t in (q, k, v)], {"num_heads": HEADS, "num_key_value_heads": 2}
    named |= {"input_layout": "BNSD", "scale_value": SCALE}
    mask = torch.rand(BATCH, 1, QUERIES, KEYS) > 0.5
    mask[..., 0] = False
    lower = distance(QUERIES, KEYS, False) > 0
    for given in (mask, mask[:, 0]):
        found = npu.npu_prompt_flash_attention(*tensors, atten_mask=given.npu(), **named)
        close(found, written_out(q, k, v, mask | lower))  # next_tokens is 0 unless given
        found = npu.npu_prompt_flash_attention(*tensors, atten_mask=given.npu(), next_tokens=FAR, **named)
        close(found, written_out(q, k, v, mask))
    found = npu.npu_prompt_flash_attention(*tensors, atten_mask=mask[0, 0].npu(), sparse_mode=1, **named)
    close(found, written_out(q, k, v, mask[:1, :1]))
    for mode, bottom_right in ((2, False), (3, True)):
        found = npu.npu_prompt_flash_attention(*tensors, atten_mask=TRIANGLE.npu(), sparse_mode=mode, **named)
        close(found, written_out(q, k, v, distance(QUERIES, KEYS, bottom_right) > 0))
    raises(RuntimeError, "sparse_mode 5", lambda: npu.npu_prompt_flash_attention(*tensors, sparse_mode=5, **named))


def case_prompt_attention_over_the_valid_lengths():
    q, k, v = operands()
    found = npu.npu_prompt_flash_attention(
        *(t.npu() for t in (q, k, v)), num_heads=HEADS, num_key_value_heads=2, input_layout="BNSD", scale_value=SCALE,
        actual_seq_lengths=[4, 6], actual_seq_lengths_kv=[7, 5], atten_mask=TRIANGLE.npu(), sparse_mode=3,
    )  # fmt: skip
    for b, (queries, keys) in enumerate(((4, 7), (6, 5))):
        part = q[b : b + 1, :, :queries], k[b : b + 1, :, :keys], v[b : b + 1, :, :keys]
        hidden = distance(queries, keys, True) > 0
        expected = written_out(*part, hidden).nan_to_num(0)  # the first query sees no key
        close(found[b : b + 1, :, :queries], expected)


def case_incremental_attention():
    q, k, v = operands(queries=1)
    named = {"num_heads": HEADS, "num_key_value_heads": 2, "input_layout": "BNSD", "scale_value": SCALE}
    found = npu.npu_incre_flash_attention(*(t.npu() for t in (q, k, v)), actual_seq_lengths=[3, 9], **named)
    close(found, written_out(q, k, v, torch.arange(KEYS) >= torch.tensor([3, 9])[:, None, None, None]))
    mask = torch.rand(BATCH, KEYS) > 0.5
    mask[:, 0] = False
    for given in (mask, mask[:, None], mask[:, None, None]):
        found = npu.npu_incre_flash_attention(*(t.npu() for t in (q, k, v)), atten_mask=given.npu(), **named)
        close(found, written_out(q, k, v, mask[:, None, None]))
    scale = torch.ones(2).npu()
    raises(
        NotImplementedError,
        "antiquant_scale",
        lambda: npu.npu_incre_flash_attention(*(t.npu() for t in (q, k, v)), antiquant_scale=scale, **named),
    )


def case_fused_inference_attention():
    q, k, v = operands()
    rope_q, rope_k = torch.randn(BATCH, HEADS, QUERIES, 4), torch.randn(BATCH, 2, KEYS, 4)
    tensors = [t.npu() for t in (q, k, v)]
    group = k.repeat_interleave(2, 1)
    scores = torch.einsum("bnqd,bnkd->bnqk", q, group) * SCALE
    first = {"num_heads": HEADS, "scale": SCALE, "softmax_lse_flag": True}
    second = {"num_query_heads": HEADS, "softmax_scale": SCALE, "return_softmax_lse": True}
    shared = {"num_key_value_heads": 2, "input_layout": "BNSD"}
    for operator, named in (
        (npu.npu_fused_infer_attention_score, first),
        (npu.npu_fused_infer_attention_score_v2, second),
    ):
        found, lse = operator(*tensors, **named, **shared)
        close(found, written_out(q, k, v)), close(lse, scores.logsumexp(-1, keepdim=True))
        found, _ = operator(*tensors, query_rope=rope_q.npu(), key_rope=rope_k.npu(), **named, **shared)
        close(found, written_out(torch.cat([q, rope_q], -1), torch.cat([k, rope_k], -1), v))
        ends_q, ends_k = [2, 6], [4, 9]
        names = ("actual_seq_lengths", "actual_seq_lengths_kv") if named is first else (
            "actual_seq_qlen", "actual_seq_kvlen",
        )  # fmt: skip
        lengths = dict(zip(names, (ends_q, ends_k), strict=True))
        pack = [t[0].transpose(0, 1).contiguous() for t in (q, k, v)]
        first_part = written_out(q[:1, :, :2], k[:1, :, :4], v[:1, :, :4])
        expected = torch.cat([first_part, written_out(q[:1, :, 2:], k[:1, :, 4:], v[:1, :, 4:])], 2)[0]
        for layout, arrange, wanted in (
            ("TND", lambda t: t, expected.transpose(0, 1)),
            ("NTD_TND", lambda t: t.transpose(0, 1).contiguous(), expected.transpose(0, 1)),
            ("TND_NTD", lambda t: t, expected),
        ):
            found, lse = operator(
                *(arrange(t).npu() for t in pack), **named, num_key_value_heads=2, input_layout=layout, **lengths
            )
            close(found, wanted)
            assert lse.shape == (QUERIES, HEADS, 1)
