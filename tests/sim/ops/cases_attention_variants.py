"""Block-sparse attention and attention over pairs, against loops."""

from __future__ import annotations

import torch
from harness import agree, close, gradients_check, raises

npu = torch.ops.npu
SCALE = 0.4


def blocks_by_hand(q, k, v, mask, block):
    """Attention of one sequence, query by query, over the keys of its blocks; q [N, S, D]."""
    heads = []
    for n in range(q.size(0)):
        rows = []
        for i in range(q.size(1)):
            seen = [j for j in range(k.size(1)) if mask[n, i // block[0], j // block[1]]]
            own = n if k.size(0) > 1 else 0
            weights = torch.softmax(torch.stack([q[n, i] @ k[own, j] for j in seen]) * SCALE, 0)
            rows.append(weights @ v[own, seen])
        heads.append(torch.stack(rows))
    return torch.stack(heads)


def case_block_sparse_attention():
    block, mask = [2, 3], torch.rand(2, 3, 3, 3) > 0.5
    mask[..., 0] = True
    for key_heads in (3, 1):
        agree(
            lambda q, k, v: npu.npu_block_sparse_attention(
                q, k, v, mask.to(torch.int8).npu(), block, q_input_layout="BNSD", kv_input_layout="BNSD",
                scale_value=SCALE, softmax_lse_flag=1,
            )[0],
            lambda q, k, v: torch.stack([blocks_by_hand(q[b], k[b], v[b], mask[b], block) for b in range(2)]),
            torch.randn(2, 3, 5, 4), torch.randn(2, key_heads, 7, 4), torch.randn(2, key_heads, 7, 4),
        )  # fmt: skip

    def packed(q, k, v):
        return npu.npu_block_sparse_attention(
            q, k, v, mask.to(torch.int8).npu(), block, scale_value=SCALE, actual_seq_lengths=[5, 3],
            actual_seq_lengths_kv=[4, 7], softmax_lse_flag=1,
        )[0]  # fmt: skip

    def expected(q, k, v):
        parts = []
        for b, (rows, columns) in enumerate(((slice(5), slice(4)), (slice(5, 8), slice(4, 11)))):
            heads_first = [t[s].transpose(0, 1) for t, s in ((q, rows), (k, columns), (v, columns))]
            parts.append(blocks_by_hand(*heads_first, mask[b], block).transpose(0, 1))
        return torch.cat(parts)

    tensors = torch.randn(8, 3, 4), torch.randn(11, 3, 4), torch.randn(11, 3, 4)
    agree(packed, expected, *tensors)
    gradients_check(packed, *(t[..., :2] for t in tensors))
    q, k, v = (t.npu().requires_grad_() for t in tensors)
    named = {"scale_value": SCALE, "actual_seq_lengths": [8], "actual_seq_lengths_kv": [11]}
    whole = torch.ones(1, 3, 4, 4, dtype=torch.int8).npu()
    output, lse = npu.npu_block_sparse_attention(q, k, v, whole, block, softmax_lse_flag=1, **named)
    scores = torch.einsum("qnd,knd->qnk", tensors[0], tensors[1]) * SCALE
    close(lse, scores.logsumexp(-1, keepdim=True))
    output, _ = npu.npu_block_sparse_attention(q, k, v, whole, block, **named)
    raises(RuntimeError, "softmax_lse_flag", lambda: output.sum().backward())


def case_attention_over_pairs():
    hidden = torch.rand(2, 1, 3, 1, 4) > 0.7
    hidden[..., 0] = False

    def expected(q, k1, v1, k2, v2):
        rows = []
        for i in range(3):
            for k in range(2):
                keys, values = k1[:, :, i] + k2[:, :, :, k], v1[:, :, i] + v2[:, :, :, k]  # [B, H, J, D]
                scores = (keys * q[:, :, i, k, None]).sum(-1) * SCALE
                weights = scores.masked_fill(hidden[:, :, i, 0], float("-inf")).softmax(-1)
                rows.append((weights.unsqueeze(-1) * values).sum(2))
        return torch.stack(rows, 2).unflatten(2, (3, 2))

    def ours(q, k1, v1, k2, v2):
        return npu.npu_fused_floyd_attention(q, k1, v1, k2, v2, atten_mask=hidden.npu(), scale_value=SCALE)[2]

    shapes = (3, 2), (3, 4), (3, 4), (4, 2), (4, 2)
    tensors = [torch.randn(2, 2, *shape, 5) for shape in shapes]
    agree(ours, expected, *tensors)
    row_max, row_sum, _ = npu.npu_fused_floyd_attention(*(t.npu() for t in tensors), scale_value=SCALE)
    q, k1, _, k2, _ = tensors
    scores = torch.einsum("bhikc,bhijkc->bhikj", q, k1.unsqueeze(4) + k2.unsqueeze(2)) * SCALE
    assert row_max.shape == row_sum.shape == (2, 2, 3, 2, 8)
    found = (row_max + row_sum.log()).cpu()
    close(found, scores.logsumexp(-1, keepdim=True).expand_as(found))
