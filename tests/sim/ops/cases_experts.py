"""Mixture of experts: routing, gating, products per expert, and merging attention."""

from __future__ import annotations

import torch
from harness import agree, close, raises

npu = torch.ops.npu
TOKENS, WIDTH, CHOICES, EXPERTS = 6, 4, 2, 3


def case_permuted_tokens_are_grouped_by_expert_and_come_back():
    indices = torch.randint(0, EXPERTS, (TOKENS, CHOICES))
    order = indices.flatten().sort(stable=True)[1]

    agree(
        lambda t: npu.npu_moe_token_permute(t, indices.npu())[0],
        lambda t: t[order // CHOICES],
        torch.randn(TOKENS, WIDTH),
    )
    permuted, places = npu.npu_moe_token_permute(torch.randn(TOKENS, WIDTH).npu(), indices.npu())
    assert places.dtype == torch.int32 and torch.equal(places.cpu().long()[order], torch.arange(TOKENS * CHOICES))

    def mixed(tokens, probs):
        return torch.einsum(
            "tkh,tk->th",
            torch.zeros(TOKENS * CHOICES, WIDTH).double().index_copy(0, order, tokens).view(TOKENS, CHOICES, WIDTH),
            probs,
        )

    agree(
        lambda t, p: npu.npu_moe_token_unpermute(t, places, p),
        mixed,
        torch.randn(TOKENS * CHOICES, WIDTH),
        torch.rand(TOKENS, CHOICES),
    )
    one = torch.randint(0, EXPERTS, (TOKENS,))
    tokens = torch.randn(TOKENS, WIDTH)
    permuted, places = npu.npu_moe_token_permute(tokens.npu(), one.npu())
    close(npu.npu_moe_token_unpermute(permuted, places), tokens)
    raises(NotImplementedError, "padded_mode", lambda: npu.npu_moe_token_permute(tokens.npu(), one.npu(), None, True))


def case_gating():
    x = torch.randn(5, 7)
    finished = torch.tensor([False, True, False, False, True])
    values, experts, rows = npu.npu_moe_gating_top_k_softmax(x.npu(), finished.npu(), 3)
    expected = x.softmax(-1).topk(3)
    close(values, expected.values)
    assert torch.equal(experts.cpu()[~finished].long(), expected.indices[~finished])
    assert (experts.cpu()[finished] == 7).all()
    assert rows.tolist() == [[i, i + 5, i + 10] for i in range(5)]


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
    raises(NotImplementedError, "scale", lambda: npu.npu_grouped_matmul(*on_npu, scale=[bias.npu()], group_type=-1))


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
