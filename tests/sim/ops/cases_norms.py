"""Norms, activations and rotary embedding under torch_npu's names, against their formulas."""

from __future__ import annotations

import torch
from harness import agree, close, gradients_check, raises

npu = torch.ops.npu


def mean_square_norm(x, gamma, dims, eps=1e-6):
    return x / (x.pow(2).mean(dims, keepdim=True) + eps).sqrt() * gamma


def layer_norm(x, gamma, beta, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gamma + beta


def group_norm(x, groups, weight, bias, eps=1e-5):
    grouped = x.reshape(x.size(0), groups, -1)
    centred = grouped - grouped.mean(-1, keepdim=True)
    out = (centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt()).reshape(x.shape)
    shape = (1, -1, *[1] * (x.dim() - 2))
    return out * weight.view(shape) + bias.view(shape)


def case_rms_norm():
    agree(
        lambda x, g: npu.npu_rms_norm(x, g)[0],
        lambda x, g: mean_square_norm(x, g, -1),
        torch.randn(2, 3, 8),
        torch.randn(8),
    )
    agree(
        lambda x, g: npu.npu_rms_norm(x, g, 1e-2)[0],
        lambda x, g: mean_square_norm(x, g, (-2, -1), 1e-2),
        torch.randn(2, 3, 8),
        torch.randn(3, 8),
    )
    y, rstd = npu.npu_rms_norm(torch.randn(2, 3, 8).half().npu(), torch.ones(8).half().npu())
    assert (y.dtype, rstd.dtype, rstd.shape) == (torch.float16, torch.float32, (2, 3, 1))


def case_rms_norm_variants():
    x1, x2, gamma = torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.randn(8)
    total = x1 + x2
    expected = mean_square_norm(total, gamma, -1)
    y, rstd, added = npu.npu_add_rms_norm(x1.npu(), x2.npu(), gamma.npu())
    close(y, expected), close(added, total), close(rstd, 1 / (total.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt())
    wide, narrow, _, _ = npu.npu_add_rms_norm_cast(x1.npu(), x2.npu(), gamma.npu())
    close(wide, expected), close(narrow, expected)
    first, second = x1.npu(), x2.npu()
    npu.npu_add_rms_norm_v2(first, second, gamma.npu())
    close(first, expected), close(second, total)
    close(npu.npu_gemma_rms_norm(x1.npu(), gamma.npu())[0], mean_square_norm(x1, 1 + gamma, -1))


def case_layer_norm_variants():
    x, gx, gamma, beta = torch.randn(3, 8), torch.randn(3, 8), torch.randn(8), torch.randn(8)
    agree(
        lambda a, b, g, h: npu.npu_add_layer_norm(a, b, g, h)[0],
        lambda a, b, g, h: layer_norm(a + b, g, h, 1e-5),
        x, gx, gamma, beta,
    )  # fmt: skip
    agree(
        lambda a, b, g, h: sum(npu.npu_add_layer_norm(a, b, g, h, 1e-5, True)[:4:3]),
        lambda a, b, g, h: layer_norm(a + b, g, h, 1e-5) + a + b,
        x, gx, gamma, beta,
    )  # fmt: skip
    agree(
        lambda a, b, h, g: npu.npu_deep_norm(a, b, h, g)[2],
        lambda a, b, h, g: layer_norm(0.3 * a + b, g, h, 1e-6),
        x, gx, beta, gamma,
    )  # fmt: skip
    close(npu.npu_layer_norm_eval(x.npu(), [8], gamma.npu(), beta.npu()), layer_norm(x, gamma, beta, 1e-5))


def case_group_norm_variants():
    x, weight, bias = torch.randn(2, 4, 3, 3), torch.randn(4), torch.randn(4)

    def swish(scale):
        def expected(a, w, b):
            out = group_norm(a, 2, w, b)
            return out / (1 + (-scale * out).exp())

        return expected

    for scale in (1.0, 0.5):
        agree(lambda a, w, b, s=scale: npu.npu_group_norm_swish(a, 2, w, b, 1e-5, s)[0], swish(scale), x, weight, bias)
    close(npu.npu_group_norm_silu(x.npu(), weight.npu(), bias.npu(), 2)[0], swish(1.0)(x, weight, bias))


def case_activations():
    x = torch.randn(4, 8)
    agree(npu.fast_gelu, lambda a: a / (1 + (-1.702 * a).exp()), x)
    agree(npu.npu_fast_gelu, lambda a: a / (1 + (-1.702 * a).exp()), x)
    agree(npu.npu_gelu, lambda a: 0.5 * a * (1 + (a / 2**0.5).erf()), x)
    tanh = lambda a: 0.5 * a * (1 + ((2 / torch.pi) ** 0.5 * (a + 0.044715 * a**3)).tanh())  # noqa: E731
    agree(lambda a: npu.npu_gelu(a, approximate="tanh"), tanh, x)
    agree(npu.npu_silu, lambda a: a / (1 + (-a).exp()), x)
    agree(npu.npu_mish, lambda a: a * (1 + a.exp()).log().tanh(), x)
    agree(npu.npu_swiglu, lambda a: a[:, :4] / (1 + (-a[:, :4]).exp()) * a[:, 4:], x)
    agree(lambda a: npu.npu_swiglu(a, 0), lambda a: a[:2] / (1 + (-a[:2]).exp()) * a[2:], x)
    agree(lambda a: npu.npu_geglu(a)[0], lambda a: a[:, :4] * tanh(a[:, 4:]), x)
    agree(lambda a: npu.npu_geglu(a, -1, 1, True)[0], lambda a: a[:, 4:] * tanh(a[:, :4]), x)
    close(npu.npu_gelu_mul(x.npu(), approximate="tanh"), tanh(x[:, :4]) * x[:, 4:])
    raises(RuntimeError, "even", lambda: npu.npu_swiglu(x[:, :7].npu()))


def case_scaled_masked_softmax():
    mask = torch.rand(2, 1, 6, 6) > 0.6

    def expected(x):
        weights = torch.where(mask, torch.tensor(-10000.0, dtype=x.dtype), x * 0.5).exp()
        return weights / weights.sum(-1, keepdim=True)

    agree(lambda x: npu.npu_scaled_masked_softmax(x, mask.npu(), 0.5, False), expected, torch.randn(2, 3, 6, 6))


def case_attention_softmax_in_place():
    x, values, grad = torch.randn(2, 5, 6), torch.randn(2, 6, 3), torch.randn(2, 5, 3)
    leaf = x.clone().requires_grad_()
    (leaf.softmax(-1) @ values).backward(grad)
    buffer = x.npu()
    npu.npu_attn_softmax_(buffer)
    close(buffer, x.softmax(-1))
    npu.npu_attn_softmax_backward_(buffer, grad.npu(), values.npu())
    close(buffer, leaf.grad)


def case_rotary_embedding():
    def turn(x, mode):
        out = torch.empty_like(x)
        if mode == "half":
            half = x.size(-1) // 2
            return torch.cat([-x[..., half:], x[..., :half]], -1)
        out[..., 0::2], out[..., 1::2] = -x[..., 1::2], x[..., 0::2]
        return out

    for mode in ("half", "interleave"):
        agree(
            lambda x, c, s, mode=mode: npu.npu_rotary_mul(x, c, s, mode),
            lambda x, c, s, mode=mode: x * c + turn(x, mode) * s,
            torch.randn(2, 4, 6, 8), torch.randn(1, 1, 6, 8), torch.randn(1, 1, 6, 8),
        )  # fmt: skip
    raises(RuntimeError, "rotary_mode", lambda: npu.npu_rotary_mul(*[torch.randn(1, 1, 2, 8).npu()] * 3, "third"))


def case_apply_rotary_writes_query_and_key():
    query, key, cos, sin = (torch.randn(2, 4, n, 8) for n in (3, 1, 1, 1))
    expected = [x * cos + torch.cat([-x[..., 4:], x[..., :4]], -1) * sin for x in (query, key)]
    q, k = query.npu(), key.npu()
    npu.npu_apply_rotary_pos_emb(q, k, cos.npu(), sin.npu())
    close(q, expected[0]), close(k, expected[1])


def case_layer_norm_gradient_operator():
    x, grad, gamma, beta = torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.randn(8), torch.randn(8)
    leaves = [t.double().requires_grad_() for t in (x, gamma, beta)]
    layer_norm(*leaves, 1e-5).backward(grad.double())
    mean, rstd = x.mean(-1), 1 / (x.var(-1, correction=0) + 1e-5).sqrt()
    found = npu.npu_layernorm_grad(*(t.npu() for t in (grad, x)), [8], *(t.npu() for t in (mean, rstd, gamma, beta)))
    for ours, leaf in zip(found, leaves, strict=True):
        close(ours, leaf.grad)
    dx, dgamma, _ = npu.npu_layernorm_grad(grad.npu(), x.npu(), [8], mean.npu(), rstd.npu(), None, None)
    plain = x.double().requires_grad_()
    layer_norm(plain, torch.ones(8), torch.zeros(8), 1e-5).backward(grad.double())
    close(dx, plain.grad), close(dgamma, leaves[1].grad)


def case_gradients_by_finite_differences():
    x, y, gamma, beta = torch.randn(2, 6), torch.randn(2, 6), torch.randn(6), torch.randn(6)
    gradients_check(lambda a, g: npu.npu_rms_norm(a, g)[0], x, gamma)
    gradients_check(lambda *t: npu.npu_add_layer_norm(*t)[0], x, y, gamma, beta)
    gradients_check(lambda *t: npu.npu_deep_norm(*t)[2], x, y, beta, gamma)
    image, weight, bias = torch.randn(2, 4, 2), torch.randn(4), torch.randn(4)
    gradients_check(lambda *t: npu.npu_group_norm_swish(t[0], 2, t[1], t[2], 1e-5, 0.5)[0], image, weight, bias)
    for function in (npu.fast_gelu, npu.npu_fast_gelu, npu.npu_gelu, npu.npu_silu, npu.npu_mish, npu.npu_swiglu):
        gradients_check(function, x)
    gradients_check(lambda a: npu.npu_gelu(a, approximate="tanh"), x)
    for approximate in (0, 1):
        for left in (False, True):
            gradients_check(lambda a, n=approximate, b=left: npu.npu_geglu(a, -1, n, b)[0], x)
    mask = torch.rand(2, 6) > 0.6
    gradients_check(lambda a: npu.npu_scaled_masked_softmax(a, mask.npu(), 0.5, False), x)
    for mode in ("half", "interleave"):
        gradients_check(
            lambda *t, m=mode: npu.npu_rotary_mul(*t, m),
            torch.randn(1, 2, 3, 4),
            torch.randn(1, 1, 3, 4),
            torch.randn(1, 1, 3, 4),
        )


def case_clipped_swiglu():
    x = torch.randn(5, 4, 6) * 2

    def expected(gate, up):
        gate, up = gate.clamp(max=1.5), up.clamp(-1.5, 1.5)
        return gate / (1 + (-1.2 * gate).exp()) * (up + 0.5)

    named = {"alpha": 1.2, "limit": 1.5, "bias": 0.5}
    close(npu.npu_clipped_swiglu(x.npu(), **named), expected(x[..., ::2], x[..., 1::2]))
    close(npu.npu_clipped_swiglu(x.npu(), interleaved=False, **named), expected(x[..., :3], x[..., 3:]))
    halves = npu.npu_clipped_swiglu(x.npu(), dim=1, interleaved=False, **named)
    close(halves, expected(x[:, :2], x[:, 2:]))
    found = npu.npu_clipped_swiglu(x.npu(), dim=1, interleaved=False, group_index=torch.tensor([1, 2]).npu(), **named)
    close(found[:3], halves[:3])
    assert not found[3:].any()


def case_rotary_angles_are_rounded_to_the_dtype_of_the_input():
    x, cos, sin = torch.randn(2, 3, 1, 8).half(), torch.randn(1, 3, 1, 8), torch.randn(1, 3, 1, 8)
    found = npu.npu_rotary_mul(x.npu(), cos.npu(), sin.npu())
    turned = torch.cat([-x[..., 4:], x[..., :4]], -1)
    expected = x.double() * cos.half().double() + turned.double() * sin.half().double()
    assert found.dtype == torch.float16
    torch.testing.assert_close(found.cpu(), expected.half(), rtol=1e-3, atol=1e-5)


def case_rotary_with_a_matrix():
    x, cos, sin, matrix = torch.randn(2, 3, 1, 8), torch.randn(1, 3, 1, 8), torch.randn(1, 3, 1, 8), torch.randn(8, 8)
    found = npu.npu_rotary_mul(x.npu(), cos.npu(), sin.npu(), "half", matrix.npu())
    close(found, x * cos + torch.einsum("btnd,de->btne", x, matrix) * sin)


def complex_turn(x, angles):
    """Neighbouring elements of the last dimension as complex numbers, turned."""
    turned = torch.view_as_complex(x.contiguous().view(*x.shape[:-1], -1, 2)) * torch.polar(angles * 0 + 1, angles)
    return torch.view_as_real(turned).flatten(-2)


def case_rotary_modes_are_rotations_of_pairs():
    angles = torch.rand(1, 5, 1, 4)
    x = torch.randn(2, 5, 3, 8)
    pairs = {
        "interleave": torch.arange(8).view(4, 2),
        "half": torch.arange(8).view(2, 4).T,
        "quarter": torch.tensor([[0, 2], [1, 3], [4, 6], [5, 7]]),
    }
    for mode, order in pairs.items():
        of_element = torch.empty(8, dtype=torch.long)
        of_element[order.flatten()] = torch.arange(4).repeat_interleave(2)
        cos, sin = angles.cos()[..., of_element], angles.sin()[..., of_element]
        expected = torch.empty_like(x)
        expected[..., order.flatten()] = complex_turn(x[..., order.flatten()], angles)
        query, key = x.npu(), x.npu()
        npu.npu_apply_rotary_pos_emb(query, key, cos.npu(), sin.npu(), "BSND", mode)
        close(query, expected), close(key, expected)
        if mode != "quarter":
            close(npu.npu_rotary_mul(x.npu(), cos.npu(), sin.npu(), mode), expected)
    doubled = torch.cat([angles, angles], -1)
    found = npu.npu_interleave_rope(x.npu(), doubled.cos().npu(), doubled.sin().npu())
    turned = complex_turn(x, angles)
    close(found, torch.cat([turned[..., ::2], turned[..., 1::2]], -1))


def case_positions_of_several_kinds_rule_their_sections():
    tokens, head, turning = 4, 10, 8
    angles = torch.rand(9, turning // 2)
    cache = torch.cat([angles.cos(), angles.sin()], -1)
    query, key = torch.randn(tokens, 3 * head), torch.randn(tokens, head)

    def expected(x, of_token, mode):
        heads = x.view(tokens, -1, head).clone()
        pairs = torch.arange(turning).view(2, -1).T if mode == "half" else torch.arange(turning).view(-1, 2)
        heads[..., pairs.flatten()] = complex_turn(heads[..., pairs.flatten()], of_token.unsqueeze(1))
        return heads.view(x.shape)

    positions = torch.randint(0, 9, (3, tokens))
    every = angles[positions]
    sections = torch.cat([every[0, :, :2], every[1, :, 2:3], every[2, :, 3:]], -1)
    by_turns = torch.stack([every[0, :, 0], every[1, :, 1], every[2, :, 2], every[0, :, 3]], -1)
    for mode in ("half", "interleave"):
        plain = npu.npu_mrope(positions[0].npu(), query.npu(), key.npu(), cache.npu(), head, rotary_mode=mode)
        close(plain[0], expected(query, every[0], mode)), close(plain[1], expected(key, every[0], mode))
        for cache_mode, of_token in (("default", sections), ("interleave", by_turns)):
            found = npu.npu_mrope(
                positions.npu(), query.npu(), key.npu(), cache.npu(), head,
                mrope_section=[2, 1, 1], rotary_mode=mode, cache_mode=cache_mode,
            )  # fmt: skip
            close(found[0], expected(query, of_token, mode)), close(found[1], expected(key, of_token, mode))


def case_unknown_modes_of_mrope_are_errors():
    x, positions = torch.randn(2, 8).npu(), torch.arange(2).npu()
    raises(RuntimeError, "cache_mode", lambda: npu.npu_mrope(positions, x, x, x, 8, cache_mode="other"))
    raises(RuntimeError, "rotary_mode", lambda: npu.npu_mrope(positions, x, x, x, 8, rotary_mode="interleaved"))


def case_keys_are_normalised_rotated_and_cached():
    batch, length, latent = 2, 3, 16
    kv, gamma = torch.randn(batch, 1, length, latent + 64), torch.randn(latent)
    angles = torch.rand(batch, 1, length, 32)
    doubled = torch.cat([angles, angles], -1)
    normal = mean_square_norm(kv[..., :latent], gamma, -1, 1e-5)
    turned = complex_turn(kv[..., latent:], angles)
    keys = torch.cat([turned[..., ::2], turned[..., 1::2]], -1)

    def write(index, k_cache, ckv_cache, mode):
        tensors = [t.npu() for t in (kv, gamma, doubled.cos(), doubled.sin(), index)]
        caches = k_cache.npu(), ckv_cache.npu()
        _, _, k, c = npu.npu_kv_rmsnorm_rope_cache(*tensors, *caches, cache_mode=mode, is_output_kv=True)
        close(k, keys), close(c, normal)
        return caches

    index = torch.tensor([[4, 0, 2], [1, 3, 5]])
    written = write(index, torch.zeros(batch, 1, 6, 64), torch.zeros(batch, 1, 6, latent), "Norm")
    for b in range(batch):
        for t in range(length):
            close(written[0][b, 0, index[b, t]], keys[b, 0, t]), close(written[1][b, 0, index[b, t]], normal[b, 0, t])
    flat = torch.tensor([7, 2, -1, 0, 5, 4])
    written = write(flat, torch.zeros(2, 4, 1, 64), torch.zeros(2, 4, 1, latent), "PA")
    for row, place in enumerate(flat.tolist()):
        if place >= 0:
            close(written[0].view(8, 64)[place], keys[row // length, 0, row % length])
    assert not written[0].view(8, 64)[[1, 3, 6]].any()
    blocks = torch.tensor([4, 0, 2, -1])
    written = write(blocks, torch.zeros(3, 2, 1, 64), torch.zeros(3, 2, 1, latent), "PA_BLK_BNSD")
    for place, (b, t) in ((4, (0, 0)), (5, (0, 1)), (0, (0, 2)), (2, (1, 0)), (3, (1, 1))):
        close(written[1].view(6, latent)[place], normal[b, 0, t])
    assert not written[1].view(6, latent)[1].any()
