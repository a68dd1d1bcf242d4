"""Mixture of experts: gating, routing and permutation, against loops over tokens and experts."""

from __future__ import annotations

import torch
from harness import agree, close, gradients_check, raises

npu = torch.ops.npu
TOKENS, WIDTH, CHOICES, EXPERTS = 6, 4, 2, 3


def regular_map(generator=None):
    """Each token goes to CHOICES of the EXPERTS."""
    marks = torch.zeros(TOKENS, EXPERTS, dtype=torch.bool)
    for token in range(TOKENS):
        marks[token, torch.randperm(EXPERTS, generator=generator)[:CHOICES]] = True
    return marks


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
    gradients_check(
        lambda t, p: npu.npu_moe_token_unpermute(npu.npu_moe_token_permute(t, indices.npu())[0], places, p),
        torch.randn(TOKENS, 2),
        torch.rand(TOKENS, CHOICES),
    )
    one = torch.randint(0, EXPERTS, (TOKENS,))
    tokens = torch.randn(TOKENS, WIDTH)
    permuted, places = npu.npu_moe_token_permute(tokens.npu(), one.npu())
    close(npu.npu_moe_token_unpermute(permuted, places), tokens)
    raises(NotImplementedError, "padded_mode", lambda: npu.npu_moe_token_permute(tokens.npu(), one.npu(), None, True))


def case_a_limit_cuts_the_permuted_tokens():
    indices = torch.randint(0, EXPERTS, (TOKENS, CHOICES))
    order = indices.flatten().sort(stable=True)[1]
    for limit in (5, -3):
        agree(
            lambda t, n=limit: npu.npu_moe_token_permute(t, indices.npu(), n)[0],
            lambda t, n=limit: t[order[:n] // CHOICES],
            torch.randn(TOKENS, WIDTH),
        )


def by_expert(marks, value):
    """value(token, expert) for each mark, expert by expert."""
    return torch.stack([value(t, e) for e in range(EXPERTS) for t in range(TOKENS) if marks[t, e]])


def case_routing_map_groups_tokens_and_their_probabilities():
    marks = regular_map()

    def ours(tokens, probs):
        permuted, kept, _ = npu.npu_moe_token_permute_with_routing_map(
            tokens, marks.npu(), probs=probs, num_out_tokens=TOKENS * CHOICES
        )
        return permuted * kept.unsqueeze(-1)

    agree(
        ours,
        lambda x, p: by_expert(marks, lambda t, e: x[t] * p[t, e]),
        torch.randn(TOKENS, WIDTH),
        torch.rand(TOKENS, EXPERTS),
    )
    agree(
        lambda t: npu.npu_moe_token_permute_with_routing_map(t, marks.npu(), num_out_tokens=TOKENS * CHOICES)[0],
        lambda x: by_expert(marks, lambda t, _: x[t]),
        torch.randn(TOKENS, WIDTH),
    )
    marks[0] = True
    raises(
        RuntimeError,
        "each token needs",
        lambda: npu.npu_moe_token_permute_with_routing_map(
            torch.randn(TOKENS, WIDTH).npu(), marks.npu(), num_out_tokens=TOKENS * CHOICES
        ),
    )


def case_routing_map_brings_tokens_back():
    marks = regular_map()
    start = torch.randn(TOKENS, WIDTH)
    _, _, places = npu.npu_moe_token_permute_with_routing_map(start.npu(), marks.npu(), num_out_tokens=TOKENS * CHOICES)
    pairs = [(t, e) for e in range(EXPERTS) for t in range(TOKENS) if marks[t, e]]

    def expected(copies, probs=None):
        rows = [0] * TOKENS
        for copy, (token, expert) in zip(copies, pairs, strict=True):
            rows[token] = rows[token] + (copy if probs is None else copy * probs[token, expert])
        return torch.stack(rows)

    def ours(copies, probs=None):
        return npu.npu_moe_token_unpermute_with_routing_map(
            copies, places, [TOKENS, WIDTH], probs=probs, routing_map=marks.npu()
        )

    copies, probs = torch.randn(TOKENS * CHOICES, WIDTH), torch.rand(TOKENS, EXPERTS)
    agree(ours, expected, copies)
    agree(ours, expected, copies, probs)
    gradients_check(ours, copies, probs)


def case_routing_map_with_capacity():
    marks, capacity = torch.rand(TOKENS, EXPERTS) > 0.5, 4
    chosen = []
    for expert in range(EXPERTS):
        marked = [t for t in range(TOKENS) if marks[t, expert]] + [t for t in range(TOKENS) if not marks[t, expert]]
        chosen += [(t, expert) for t in marked[:capacity]]
    named = {"num_out_tokens": capacity * EXPERTS, "drop_and_pad": True}

    def permuted(tokens, probs):
        found, kept, _ = npu.npu_moe_token_permute_with_routing_map(tokens, marks.npu(), probs=probs, **named)
        return found * kept.unsqueeze(-1)

    agree(
        permuted,
        lambda x, p: torch.stack([x[t] * p[t, e] for t, e in chosen]),
        torch.randn(TOKENS, WIDTH),
        torch.rand(TOKENS, EXPERTS),
    )
    _, _, places = npu.npu_moe_token_permute_with_routing_map(torch.randn(TOKENS, WIDTH).npu(), marks.npu(), **named)
    assert places.tolist() == [t for t, _ in chosen]

    def expected(copies, probs=None):
        rows = [torch.zeros(WIDTH).double()] * TOKENS
        for copy, (token, expert) in zip(copies, chosen, strict=True):
            rows[token] = rows[token] + (copy if probs is None else copy * probs[token, expert])
        return torch.stack(rows)

    def ours(copies, probs=None):
        return npu.npu_moe_token_unpermute_with_routing_map(
            copies, places, [TOKENS, WIDTH], probs=probs, routing_map=marks.npu(), drop_and_pad=True
        )

    copies, probs = torch.randn(capacity * EXPERTS, WIDTH), torch.rand(TOKENS, EXPERTS)
    agree(ours, expected, copies)
    agree(ours, expected, copies, probs)
    gradients_check(ours, copies, probs)


def case_gating():
    x = torch.randn(5, 7)
    finished = torch.tensor([False, True, False, False, True])
    values, experts, rows = npu.npu_moe_gating_top_k_softmax(x.npu(), finished.npu(), 3)
    expected = x.softmax(-1).topk(3)
    close(values, expected.values)
    assert torch.equal(experts.cpu()[~finished].long(), expected.indices[~finished])
    assert (experts.cpu()[finished] == 7).all()
    assert rows.tolist() == [[i, i + 5, i + 10] for i in range(5)]
    three = npu.npu_moe_gating_top_k_softmax(x.view(1, 5, 7).npu(), finished.view(1, 5).npu(), 3)
    for wide, flat in zip(three, (values, experts, rows), strict=True):
        close(wide[0], flat)


def case_gating_before_or_after_the_softmax():
    x = torch.randn(5, 7)
    values, experts, whole = npu.npu_moe_gating_top_k_softmax_v2(x.npu(), k=3, output_softmax=True)
    expected = x.softmax(-1).topk(3)
    close(values, expected.values), close(experts, expected.indices), close(whole, x.softmax(-1))
    values, experts, whole = npu.npu_moe_gating_top_k_softmax_v2(x.npu(), k=3, renorm=1, output_softmax=True)
    close(values, x.topk(3).values.softmax(-1)), close(experts, expected.indices)
    assert whole.numel() == 0
    raises(RuntimeError, "renorm", lambda: npu.npu_moe_gating_top_k_softmax_v2(x.npu(), k=3, renorm=2))


def grouped_choice(scores, k, groups, kept, by_sum):
    """The experts of one token, by hand."""
    parts = scores.view(groups, -1).tolist()
    size = len(parts[0])
    worth = [sum(sorted(part)[-2:]) if by_sum else max(part) for part in parts]
    best = sorted(range(groups), key=lambda g: -worth[g])[:kept]
    candidates = sorted(((parts[g][i], g * size + i) for g in best for i in range(size)), reverse=True)
    return [expert for _, expert in candidates[:k]]


def case_gating_with_groups_and_bias():
    x, bias = torch.randn(4, 12), torch.randn(12) * 0.3
    for norm_type in (0, 1):
        for mode in (0, 1):
            normal = x.sigmoid() if norm_type else x.softmax(-1)
            chosen = torch.tensor([grouped_choice(row + bias, 4, 3, 2, mode == 1) for row in normal])
            named = {"k_group": 2, "group_count": 3, "group_select_mode": mode, "norm_type": norm_type}

            def expected(logits, chosen=chosen, norm_type=norm_type):
                weights = (logits.sigmoid() if norm_type else logits.softmax(-1)).gather(1, chosen)
                return 2.5 * (weights / weights.sum(-1, keepdim=True) if norm_type else weights)

            def ours(logits, named=named):
                return npu.npu_moe_gating_top_k(
                    logits, 4, bias=bias.to(logits.device, logits.dtype), out_flag=True, routed_scaling_factor=2.5,
                    **named,
                )[0]  # fmt: skip

            agree(ours, expected, x)
            gradients_check(ours, x[:2])
            _, experts, out = npu.npu_moe_gating_top_k(x.npu(), 4, bias=bias.npu(), out_flag=True, **named)
            assert experts.tolist() == chosen.tolist()
            close(out, normal)
    leaf = x.npu().requires_grad_()
    raises(RuntimeError, "out_flag", lambda: npu.npu_moe_gating_top_k(leaf, 2)[0].sum().backward())
    raises(RuntimeError, "12 experts in 5 groups", lambda: npu.npu_moe_gating_top_k(leaf, 2, group_count=5))


def case_experts_with_several_instances():
    table = torch.tensor([[1, 3, 0, 0], [3, 5, 6, 7], [2, 1, 2, 0]], dtype=torch.int32)
    ids = torch.tensor([[0, 1], [2, 1], [1, 2]], dtype=torch.int32)
    for rank in range(4):
        found, mask = npu.npu_moe_update_expert(ids.npu(), table.npu(), local_rank_id=rank, world_size=4)
        for row, wanted in zip(found.tolist(), ids.tolist(), strict=True):
            for place, expert in zip(row, wanted, strict=True):
                count = table[expert, 0].item()
                assert place == table[expert, 1 + (rank // -(-4 // count) if count > 1 else 0)]
        assert mask.all()
    scales, limit = torch.tensor([[0.6, 0.4], [0.9, 0.1], [0.5, 0.5]]), torch.tensor([0.2, 0.3])
    active = torch.tensor([True, True, False])
    found, mask = npu.npu_moe_update_expert(
        ids.npu(), table.npu(), expert_scales=scales.npu(), pruning_threshold=limit.npu(), active_mask=active.npu(),
        balance_mode=1,
    )  # fmt: skip
    assert found.tolist() == [[3, 5], [2, 6], [7, 1]]
    assert mask.tolist() == [[True, True], [True, False], [False, False]]


def case_tokens_up_to_each_expert_are_counted():
    experts = torch.tensor([0, 0, 2, 2, 2, 4], dtype=torch.int32)
    found = npu.npu_moe_compute_expert_tokens(experts.npu(), 6)
    assert found.tolist() == [sum(int(e <= i) for e in experts) for i in range(6)] and found.dtype == torch.int32


def case_rows_are_routed_to_experts_and_collected():
    x, experts = torch.randn(TOKENS, WIDTH), torch.randint(0, EXPERTS, (TOKENS, CHOICES)).int()
    rows = torch.arange(TOKENS * CHOICES, dtype=torch.int32).view(CHOICES, TOKENS).T.contiguous()
    for active in (TOKENS, 4):
        expanded, places, sorted_experts = npu.npu_moe_init_routing(x.npu(), rows.npu(), experts.npu(), active)
        choices = sorted(((e, t, c) for t, row in enumerate(experts.tolist()) for c, e in enumerate(row)))
        close(expanded, torch.stack([x[t] for _, t, _ in choices])[: min(active, TOKENS) * CHOICES])
        assert sorted_experts.tolist() == [e for e, _, _ in choices]
        for place, (_, token, choice) in enumerate(choices):
            assert places[choice * TOKENS + token] == place
    scales, bias = torch.rand(TOKENS, CHOICES), torch.randn(EXPERTS, WIDTH)
    skips = torch.randn(2, TOKENS, WIDTH)
    results = torch.randn(TOKENS * CHOICES, WIDTH)
    for mode, order in ((0, places), (2, places.view(CHOICES, TOKENS).T.flatten())):
        found = npu.npu_moe_finalize_routing(
            results.npu(), *skips.npu(), bias.npu(), scales.npu(), order, experts.npu(), mode
        )
        expected = skips.sum(0)
        for token in range(TOKENS):
            for choice in range(CHOICES):
                row = results[int(places[choice * TOKENS + token])] + bias[experts[token, choice].long()]
                expected[token] += scales[token, choice] * row
        close(found, expected)
    dropped = torch.tensor([0, -1, 3, 5, 4, -1], dtype=torch.int32)
    found = npu.npu_moe_finalize_routing(
        results[:6].view(2, 3, WIDTH).npu(), None, None, None, None, dropped.npu(), None, 1
    )
    close(found, torch.stack([torch.zeros(WIDTH) if i < 0 else results[i] for i in dropped.tolist()]))


def case_routing_to_a_range_of_experts():
    x, experts = torch.randn(TOKENS, WIDTH), torch.randint(0, 5, (TOKENS, CHOICES)).int()
    scale, (start, end) = torch.rand(TOKENS), (1, 4)
    flat = [(e, i) for i, e in enumerate(experts.flatten().tolist())]
    active = sorted(pair for pair in flat if start <= pair[0] < end)
    for kind in (0, 1, 2):
        expanded, places, counts, scales = npu.npu_moe_init_routing_v2(
            x.npu(), experts.npu(), scale=scale.npu(), expert_num=5, active_expert_range=[start, end],
            expert_tokens_num_flag=True, expert_tokens_num_type=kind, row_idx_type=0,
        )  # fmt: skip
        assert expanded.shape == (TOKENS * CHOICES, WIDTH)
        close(expanded[: len(active)], torch.stack([x[i // CHOICES] for _, i in active]))
        close(scales[: len(active)], torch.stack([scale[i // CHOICES] for _, i in active]))
        assert not expanded[len(active) :].any()
        wanted = [-1] * (TOKENS * CHOICES)
        for place, (_, i) in enumerate(active):
            wanted[i] = place
        assert places.tolist() == wanted
        of_expert = [sum(e == expert for e, _ in active) for expert in range(start, end)]
        if kind == 2:
            pairs = [[start + i, n] for i, n in enumerate(of_expert) if n]
            assert counts.tolist() == pairs + [[0, 0]] * (5 - len(pairs))
        else:
            assert counts.tolist() == ([sum(of_expert[: i + 1]) for i in range(3)] if kind == 0 else of_expert)
    scatter = npu.npu_moe_init_routing_v2(
        x.npu(), experts.npu(), expert_num=5, active_expert_range=[start, end], row_idx_type=1, active_num=3
    )
    assert scatter[1][: len(active)].tolist() == [i for _, i in active]
    assert scatter[0].shape == (3, WIDTH)


def case_routing_with_capacity_and_quantisation():
    x, experts, capacity = torch.randn(TOKENS, WIDTH), torch.randint(0, EXPERTS, (TOKENS, CHOICES)).int(), 3
    named = {"expert_num": EXPERTS, "drop_pad_mode": 1, "expert_capacity": capacity, "expert_tokens_num_type": 1}
    expanded, places, counts, _ = npu.npu_moe_init_routing_v2(
        x.npu(), experts.npu(), expert_tokens_num_flag=True, **named
    )
    flat = experts.flatten().tolist()
    assert counts.tolist() == [flat.count(e) for e in range(EXPERTS)]
    wanted = torch.zeros(EXPERTS, capacity, WIDTH)
    for expert in range(EXPERTS):
        members = [i for i, e in enumerate(flat) if e == expert]
        for place, i in enumerate(members):
            assert places[i] == (expert * capacity + place if place < capacity else -1)
            if place < capacity:
                wanted[expert, place] = x[i // CHOICES]
    close(expanded, wanted)
    smooth = torch.rand(EXPERTS, WIDTH) + 0.5
    rows, _, _, scales = npu.npu_moe_init_routing_v2(
        x.npu(), experts.npu(), expert_num=EXPERTS, quant_mode=1, scale=smooth.npu()
    )
    assert rows.dtype == torch.int8
    order = sorted(range(len(flat)), key=lambda i: flat[i])
    exact = torch.stack([x[i // CHOICES] * smooth[flat[i]] for i in order])
    close(scales, exact.abs().amax(-1) / 127)
    close(rows, (exact / (exact.abs().amax(-1, keepdim=True) / 127)).round(), 1.0 + 1e-6)
    fixed = {"scale": torch.tensor([20.0]).npu(), "offset": torch.tensor([3.0]).npu()}
    rows, *_ = npu.npu_moe_init_routing_v2(x.npu(), experts.npu(), expert_num=EXPERTS, quant_mode=0, **fixed)
    close(rows, torch.stack([(x[i // CHOICES].half() * 20 + 3).round() for i in order]))
    none = npu.npu_moe_init_routing_v2(x[:0].npu(), experts[:0].npu(), expert_num=EXPERTS)
    assert [t.numel() for t in none] == [0, 0, EXPERTS, 0] and not none[2].any()
    raises(
        NotImplementedError, "quant_mode 2", lambda: npu.npu_moe_init_routing_v2(x.npu(), experts.npu(), quant_mode=2)
    )


def case_tokens_of_ranks_are_laid_expert_by_expert():
    counts = torch.tensor([[2, 1, 3], [1, 2, 1]], dtype=torch.int32)
    tokens, scales = torch.randn(10, WIDTH), torch.rand(10)
    owners = [e for row in counts.tolist() for e, n in enumerate(row) for _ in range(n)]
    order = sorted(range(10), key=lambda i: owners[i])
    found, found_scales, source, totals = npu.npu_moe_re_routing(
        tokens.npu(), counts.npu(), per_token_scales=scales.npu()
    )
    close(found, tokens[order]), close(found_scales, scales[order])
    assert source.tolist() == order and totals.tolist() == [3, 3, 4]
