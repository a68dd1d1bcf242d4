"""npu_fusion_attention beyond the plain call: sequences of uneven length, position bias, rope, split keys, errors."""

from __future__ import annotations

import warnings

import torch
from cases_attention import (
    BATCH,
    HEADS,
    KEYS,
    LAYOUTS,
    QUERIES,
    SCALE,
    TRIANGLE,
    WIDTH,
    distance,
    operands,
    written_out,
)
from harness import agree, close, gradients_check, raises

npu = torch.ops.npu


def tokens(queries, keys, heads=HEADS, width=WIDTH):
    return torch.randn(queries, heads, width), torch.randn(keys, heads, width), torch.randn(keys, heads, width)


def per_sequence(q, k, v, ends_q, ends_k, hidden_of, **named):
    """`written_out` for each sequence; hidden_of(index, queries, keys)."""
    parts = []
    for i, (start_q, end_q, start_k, end_k) in enumerate(zip([0, *ends_q], ends_q, [0, *ends_k], ends_k, strict=False)):
        heads_first = [t.transpose(0, 1)[None] for t in (q[start_q:end_q], k[start_k:end_k], v[start_k:end_k])]
        hidden = hidden_of(i, end_q - start_q, end_k - start_k)
        parts.append(written_out(*heads_first, hidden, **named)[0].transpose(0, 1))
    return torch.cat(parts)


def case_tnd_prefix_belongs_to_its_sequence():
    rectangle = torch.cat([torch.zeros(1024, 1024), torch.ones(1024, 1024)], 1).bool()
    ends_q, ends_k, prefix = [3, 7], [4, 10], [2, 4]
    agree(
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, HEADS, "TND", atten_mask=torch.cat([TRIANGLE, rectangle]).npu(), scale=SCALE, sparse_mode=6,
            prefix=prefix, actual_seq_qlen=ends_q, actual_seq_kvlen=ends_k,
        )[0],
        lambda q, k, v: per_sequence(
            q, k, v, ends_q, ends_k,
            lambda i, s, t: (distance(s, t, True) > 0) & (torch.arange(t) >= prefix[i]),
        ),
        *tokens(7, 10),
    )  # fmt: skip


def cut_queries(q, k, v, first_rows, mode, whole, first, second):
    """Attention over `whole` = (ends of queries, ends of keys) with `mode`, and the same with the queries cut after
    `first_rows`: first and second = (mode, pre, next, ends of queries, ends of keys, key range).
    """

    def run(rows, columns, mode, ends_q, ends_k, **tokens):
        return npu.npu_fusion_attention(
            q[rows].npu(), k[columns].npu(), v[columns].npu(), HEADS, "TND", atten_mask=TRIANGLE.npu(), scale=SCALE,
            sparse_mode=mode, actual_seq_qlen=ends_q, actual_seq_kvlen=ends_k, **tokens,
        )[0]  # fmt: skip

    expected = run(slice(None), slice(None), mode, *whole)
    parts = []
    for rows, (columns, m, ends_q, ends_k, named) in (
        (slice(first_rows), first),
        (slice(first_rows, None), second),
    ):
        parts.append(run(rows, columns, m, ends_q, ends_k, **named))
    close(torch.cat(parts), expected)


def case_mode_7_continues_mode_3_when_the_queries_are_cut_between_devices():
    """The example of the operator's page: the second sequence, 4 queries on 6 keys, is cut into 2 and 2."""
    cut_queries(
        *tokens(7 + 5 + 4, 9 + 5 + 4), 5, 3, ([3, 7, 12, 16], [3, 9, 14, 18]),
        (slice(9), 7, [3, 5], [3, 9], {"pre_tockens": 6, "next_tockens": -2}),
        (slice(3, None), 3, [2, 7, 11], [6, 11, 15], {}),
    )  # fmt: skip


def case_mode_8_continues_mode_2_when_the_queries_are_cut_between_devices():
    """The example of the operator's page: the second sequence, 5 queries on 4 keys, is cut into 2 and 3."""
    cut_queries(
        *tokens(8 + 5 + 4, 7 + 5 + 4), 5, 2, ([3, 8, 13, 17], [3, 7, 12, 16]),
        (slice(7), 2, [3, 5], [3, 7], {}),
        (slice(3, None), 8, [3, 8, 12], [4, 9, 13], {"pre_tockens": 4, "next_tockens": 1}),
    )  # fmt: skip


def case_trailing_zeros_leave_sequences_out():
    q, k, v = (t.npu() for t in tokens(9, 9))
    lengths = {"actual_seq_qlen": [2, 5, 0, 0], "actual_seq_kvlen": [3, 6, 0, 0]}
    found = npu.npu_fusion_attention(q, k, v, HEADS, "TND", scale=SCALE, **lengths)[0]
    some = {name: ends[:2] for name, ends in lengths.items()}
    expected = npu.npu_fusion_attention(q[:5], k[:6], v[:6], HEADS, "TND", scale=SCALE, **some)[0]
    close(found[:5], expected)
    assert not found[5:].any()


def case_tnd_statistics_lie_by_head_within_each_sequence_or_by_token():
    q, k, v = tokens(5, 7)
    ends = {"actual_seq_qlen": [2, 5], "actual_seq_kvlen": [3, 7]}
    scores = [
        torch.einsum("qnd,knd->nqk", q[r], k[c]) * SCALE for r, c in ((slice(2), slice(3)), (slice(2, 5), slice(3, 7)))
    ]
    expected = [part.logsumexp(-1) for part in scores]
    for layout in ("", "TND"):
        _, row_max, row_sum, *_ = npu.npu_fusion_attention(
            q.npu(), k.npu(), v.npu(), HEADS, "TND", scale=SCALE, softmax_layout=layout, **ends
        )
        assert row_max.shape == row_sum.shape == (5, HEADS, 8)
        found = (row_max + row_sum.log())[..., 0].cpu()
        if layout:
            close(found, torch.cat([part.T for part in expected]))
        else:
            close(found.flatten(), torch.cat([part.flatten() for part in expected]))


def case_alibi_is_generated_from_slopes():
    for slopes in (torch.rand(HEADS), torch.rand(BATCH, HEADS)):
        for pse_type, q_start, kv_start in ((2, 0, 0), (3, 0, 0), (2, 4, 1), (3, 0, 2)):
            apart = (distance(QUERIES, QUERIES, False) + kv_start - q_start).abs().double()
            bias = -slopes.double()[..., None, None] * (apart.sqrt() if pse_type == 3 else apart)
            agree(
                lambda q, k, v, s=slopes, t=pse_type, a=q_start, b=kv_start: npu.npu_fusion_attention_v2(
                    q, k, v, HEADS, "BNSD", pse=s.npu(), scale=SCALE, pse_type=t, q_start_idx=[a], kv_start_idx=[b]
                )[0],
                lambda q, k, v, bias=bias: written_out(q, k, v, pse=bias, pse_after_scale=True),
                *operands(keys=QUERIES),
            )


def case_alibi_in_sequences_and_cut_between_devices():
    slopes, ends = torch.rand(HEADS), [3, 7]
    apart = lambda s, t, shift=0: (distance(s, t, False) - shift).abs()  # noqa: E731
    q, k, v = tokens(7, 7)
    named = {"pse": slopes.npu(), "scale": SCALE, "pse_type": 2, "atten_mask": TRIANGLE.npu()}
    lengths = {"actual_seq_qlen": ends, "actual_seq_kvlen": ends}
    whole = npu.npu_fusion_attention_v2(q.npu(), k.npu(), v.npu(), HEADS, "TND", sparse_mode=2, **named, **lengths)[0]
    expected = []
    for rows in (slice(3), slice(3, 7)):
        parts = [t[rows].transpose(0, 1)[None] for t in (q, k, v)]
        size = rows.stop - (rows.start or 0)
        bias = -slopes[:, None, None] * apart(size, size)
        hidden = distance(size, size, False) > 0
        expected.append(written_out(*parts, hidden, pse=bias, pse_after_scale=True)[0].transpose(0, 1))
    close(whole, torch.cat(expected))
    rest = npu.npu_fusion_attention_v2(
        q[2:].npu(), k.npu(), v.npu(), HEADS, "TND", sparse_mode=8, pre_tokens=3, next_tokens=0, q_start_idx=[2],
        actual_seq_qlen=[1, 5], actual_seq_kvlen=[3, 7], **named,
    )[0]  # fmt: skip
    close(rest, whole[2:])


def case_a_bias_may_be_given_by_its_last_1024_rows():
    size, heads = 1030, 2
    slopes = torch.rand(heads)
    bias = (-slopes[:, None, None] * distance(size, size, False).abs() / 64)[None]
    hidden = distance(size, size, False) > 0
    mask, last = TRIANGLE.npu(), bias[:, :, -1024:].npu()
    agree(
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, heads, "BNSD", pse=last, atten_mask=mask, scale=SCALE, sparse_mode=2
        )[0],
        lambda q, k, v: written_out(q, k, v, hidden, pse=bias),
        torch.randn(1, heads, size, 4), torch.randn(1, heads, size, 4), torch.randn(1, heads, size, 4),
    )  # fmt: skip
    q, k, v = tokens(9, 9, heads, 4)
    ends = [4, 9]
    found = npu.npu_fusion_attention(
        q.npu(), k.npu(), v.npu(), heads, "TND", pse=last, atten_mask=mask, scale=SCALE, sparse_mode=3,
        actual_seq_qlen=ends, actual_seq_kvlen=ends,
    )[0]  # fmt: skip
    parts = []
    for rows in (slice(0, 4), slice(4, 9)):
        n = rows.stop - rows.start
        heads_first = [t[rows].transpose(0, 1)[None] for t in (q, k, v)]
        parts.append(written_out(*heads_first, hidden[:n, :n], pse=bias[..., :n, :n])[0].transpose(0, 1))
    close(found, torch.cat(parts))
    uneven = torch.randn(1, heads, 1024, size).npu()
    q, k, v = (torch.randn(1, heads, size, 4).npu() for _ in range(3))
    raises(
        NotImplementedError,
        "diagonals",
        lambda: npu.npu_fusion_attention(q, k, v, heads, "BNSD", pse=uneven, atten_mask=mask, sparse_mode=2),
    )


def case_rope_parts_add_to_the_scores():
    ends_q, ends_k = [3, 7], [4, 10]
    agree(
        lambda q, k, v, qr, kr: npu.npu_fusion_attention_v2(
            q, k, v, HEADS, "TND", query_rope=qr, key_rope=kr, atten_mask=TRIANGLE.npu(), scale=SCALE, sparse_mode=3,
            actual_seq_qlen=ends_q, actual_seq_kvlen=ends_k,
        )[0],
        lambda q, k, v, qr, kr: per_sequence(
            torch.cat([q, qr], -1), torch.cat([k, kr], -1), v, ends_q, ends_k, lambda _, s, t: distance(s, t, True) > 0
        ),
        *tokens(7, 10), torch.randn(7, HEADS, 4), torch.randn(10, HEADS, 4),
    )  # fmt: skip


def case_values_may_be_narrower_than_keys():
    for layout, arrange in LAYOUTS.items():
        q, k, _ = operands()
        agree(
            lambda q, k, v, n=layout, a=arrange: npu.npu_fusion_attention(a(q), a(k), a(v), HEADS, n, scale=SCALE)[0],
            lambda q, k, v, a=arrange: a(written_out(q, k, v)),
            q, k, torch.randn(BATCH, 2, KEYS, 4),
        )  # fmt: skip


def case_the_gradient_operator_takes_the_statistics_of_all_keys():
    """As attention split over devices uses it: each part of the keys sees the output and the softmax over all."""
    q, k, v = operands(key_heads=HEADS)
    leaves = [t.clone().double().requires_grad_() for t in (q, k, v)]
    grad = torch.randn(q.shape)
    written_out(*leaves).backward(grad.double())
    on_npu = [t.npu() for t in (q, k, v, grad)]
    whole = npu.npu_fusion_attention(*on_npu[:3], HEADS, "BNSD", scale=SCALE)
    saved = {"attention_in": whole[0], "softmax_max": whole[1], "softmax_sum": whole[2]}
    query_grad, rest = 0, []
    for part in (slice(0, 4), slice(4, KEYS)):
        keys, values = (t[:, :, part].contiguous() for t in on_npu[1:3])
        dq, *others = npu.npu_fusion_attention_grad(
            on_npu[0], keys, values, on_npu[3], HEADS, "BNSD", scale_value=SCALE, **saved
        )[:3]
        query_grad = query_grad + dq
        rest.append(others)
    close(query_grad, leaves[0].grad)
    close(torch.cat([r[0] for r in rest], 2), leaves[1].grad)
    close(torch.cat([r[1] for r in rest], 2), leaves[2].grad)


def case_gradients_by_finite_differences():
    q, k, v = torch.randn(1, 2, 3, 2), torch.randn(1, 1, 4, 2), torch.randn(1, 1, 4, 2)
    gradients_check(
        lambda *t: npu.npu_fusion_attention(
            *t[:3], 2, "BNSD", sink=t[3], atten_mask=TRIANGLE.npu(), scale=SCALE, sparse_mode=3
        )[0],
        q, k, v, torch.randn(2),
    )  # fmt: skip
    gradients_check(
        lambda *t: npu.npu_fusion_attention_v2(
            *t[:3], 2, "TND", query_rope=t[3], key_rope=t[4], atten_mask=TRIANGLE.npu(), scale=SCALE, sparse_mode=2,
            actual_seq_qlen=[1, 3], actual_seq_kvlen=[2, 4],
        )[0],
        torch.randn(3, 2, 2), torch.randn(4, 2, 2), torch.randn(4, 2, 2), torch.randn(3, 2, 1), torch.randn(4, 2, 1),
    )  # fmt: skip


def case_a_trained_bias_is_warned_about():
    q, k, v = (t.npu() for t in operands())
    for trained in (True, False):
        pse = torch.randn(1, HEADS, QUERIES, KEYS).npu().requires_grad_(trained)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            npu.npu_fusion_attention(q.requires_grad_(), k, v, HEADS, "BNSD", pse=pse)[0].sum().backward()
        assert trained == any("pse requires a gradient" in str(w.message) for w in caught)
    slopes = torch.rand(HEADS).npu().requires_grad_()
    output = npu.npu_fusion_attention_v2(*[q.detach()] * 3, HEADS, "BNSD", pse=slopes, pse_type=2)[0]
    raises(NotImplementedError, "gradient of pse", lambda: output.sum().backward())


def case_wrong_arguments_are_errors():
    q, k, v = (t.npu() for t in operands())
    rope, mask = torch.randn(BATCH, HEADS, QUERIES, 4).npu(), TRIANGLE.npu()
    pack = torch.randn(5, HEADS, WIDTH).npu()
    ends = {"actual_seq_qlen": [5], "actual_seq_kvlen": [5]}
    back = {"actual_seq_qlen": [4, 2, 5], "actual_seq_kvlen": [1, 2, 5]}
    bias, slopes = torch.zeros(1, HEADS, 3, KEYS).npu(), torch.ones(HEADS).npu()

    def call(*tensors, heads=HEADS, layout="BNSD", version="", **named):
        return getattr(npu, "npu_fusion_attention" + version)(*tensors, heads, layout, **named)

    for words, attempt in (
        ("query_rope", lambda: call(q, k, v, version="_v2", query_rope=rope)),
        ("sparse_mode", lambda: call(q, k, v, atten_mask=mask, sparse_mode=7)),
        ("sparse_mode", lambda: call(pack, pack, pack, layout="TND", sparse_mode=5, **ends)),
        ("compressed", lambda: call(q, k, v, atten_mask=mask[:9, :9], sparse_mode=2)),
        ("actual_seq_qlen", lambda: call(pack, pack, pack, layout="TND")),
        ("not decrease", lambda: call(pack, pack, pack, layout="TND", **back)),
        ("input_layout", lambda: call(q, k, v, layout="NBSD")),
        ("keep_prob", lambda: call(q, k, v, keep_prob=0.0)),
        ("head_num", lambda: call(q, k, v, heads=0)),
        ("head_num 3", lambda: call(q, k, v, heads=3)),
        ("softmax_layout", lambda: call(q, k, v, softmax_layout="TND")),
        ("dimensional", lambda: call(q[0, 0], k, v)),
        ("pse of shape", lambda: call(q, k, v, pse=bias)),
        ("as many queries", lambda: call(q, k, v, version="_v2", pse=slopes, pse_type=2)),
    ):
        raises(RuntimeError, words, attempt)
