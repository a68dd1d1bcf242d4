"""Hyper-connections, causal windows and compressed sequences, against sums written out and PyTorch's convolution."""

from __future__ import annotations

import torch
import torch_npu
from harness import agree, close, gradients_check, raises
from torch.nn import functional as F

npu = torch.ops.npu


def case_streams_after_a_layer():
    for lead in ((3,), (2, 3)):
        x, mix, out, spread = (torch.randn(*lead, *s) for s in ((4, 16), (4, 4), (16,), (4,)))

        def expected(x, mix, out, spread):
            rows = [sum(mix[..., i, j, None] * x[..., i, :] for i in range(4)) + spread[..., j, None] * out
                    for j in range(4)]  # fmt: skip
            return torch.stack(rows, -2)

        close(npu.npu_mhc_post(*(t.npu() for t in (x, mix, out, spread))), expected(x, mix, out, spread))
        gradients_check(npu.npu_mhc_post, x, mix, out, spread)
        halves = x.half(), mix, out.half(), spread
        leaves = [t.double().requires_grad_() for t in halves]
        grad = torch.randn(x.shape).half()
        expected(*leaves).backward(grad.double())
        found = npu.npu_mhc_post_backward(grad.npu(), *(t.npu() for t in halves))
        for ours, theirs in zip(found, leaves, strict=True):
            close(ours, theirs.grad, 5e-3)
        close(npu.npu_mhc_post(x.npu(), None, out.npu(), spread.npu()), x + spread[..., None] * out[..., None, :])
    assert torch_npu.npu_mhc_post(x.half().npu(), mix.npu(), out.half().npu(), spread.npu()).dtype == torch.float16


def streams_before(x, phi, alpha, bias, gamma):
    """The page's formulas for one token after another."""
    tokens = []
    for token in x.reshape(-1, 4, 16):
        flat = token.flatten()
        normal = flat / (flat.square().mean() + 1e-6).sqrt() * gamma.flatten()
        mapped = phi @ normal
        pre = 1 / (1 + (-(alpha[0] * mapped[:4] + bias[:4])).exp()) + 1e-6
        post = 2 / (1 + (-(alpha[1] * mapped[4:8] + bias[4:8])).exp())
        res = (alpha[2] * mapped[8:] + bias[8:]).view(4, 4)
        tokens.append((pre @ token, post, res))
    return [torch.stack(t) for t in zip(*tokens, strict=True)]


def case_streams_before_a_layer():
    x, phi, alpha = torch.randn(3, 4, 16), torch.randn(24, 64) * 0.2, torch.randn(3)
    bias, gamma = torch.randn(24), torch.rand(4, 16) + 0.5
    leaves = x, phi, alpha, bias, gamma
    for part in range(3):
        agree(
            lambda x, p, a, b, g, part=part: npu.npu_mhc_pre(x, p, a, b, gamma=g, out_flag=1)[part],
            lambda *t, part=part: streams_before(*t)[part],
            *leaves,
            tolerance=2e-5,
        )
    gradients_check(
        lambda x, p, a, b, g: sum(t.sin().sum() for t in npu.npu_mhc_pre(x, p, a, b, gamma=g, out_flag=1)[:3]),
        x[:1], *leaves[1:],
    )  # fmt: skip
    on_npu = [t.npu().requires_grad_() for t in leaves[:4]]
    found = npu.npu_mhc_pre(*on_npu)
    assert found[3:] == (None, None, None)
    short = phi[:8].npu(), alpha[:2].npu(), bias[:8].npu()
    whole = npu.npu_mhc_pre(*on_npu)
    for ours, theirs in zip(npu.npu_mhc_pre(x.npu(), *short)[:2], whole[:2], strict=True):
        close(ours, theirs)
    rough = npu.npu_mhc_pre(*on_npu, inner_precise=1)[2] - whole[2]
    assert 0 < rough.abs().max() < 0.02
    raises(RuntimeError, "inv_rms is empty", found[0].sum().backward)
    grads = torch.randn(3, 16).npu(), torch.randn(3, 4).npu(), torch.randn(3, 4, 4).npu()
    saved = npu.npu_mhc_pre(*on_npu, out_flag=1)
    plain = npu.npu_mhc_pre_backward(*on_npu[:3], *grads, *saved[3:], saved[1])
    more = npu.npu_mhc_pre_backward(*on_npu[:3], *grads, *saved[3:], saved[1], grad_x_post=x.npu())
    close(more[0] - plain[0], x)
    assert plain[4].shape == (4, 16) and not plain[4].any()


def case_sinkhorn():
    def expected(x):
        y = x.softmax(-1) + 1e-6
        y = y / (y.sum(-2, keepdim=True) + 1e-6)
        for _ in range(4):
            y = y / (y.sum(-1, keepdim=True) + 1e-6)
            y = y / (y.sum(-2, keepdim=True) + 1e-6)
        return y

    for shape in ((5, 4, 4), (2, 3, 6, 6)):
        x = torch.randn(shape)
        agree(lambda a: npu.npu_mhc_sinkhorn(a, num_iters=5, out_flag=1)[0], expected, x)
        y, norms, sums = npu.npu_mhc_sinkhorn(x.npu(), num_iters=5)
        close(y, expected(x))
        close(y.sum(-1), torch.ones(shape[:-1]), 0.1)
        assert norms is None and sums is None
        tokens = x.numel() // shape[-1] ** 2
        _, norms, sums = npu.npu_mhc_sinkhorn(x.npu(), num_iters=5, out_flag=1)
        assert norms.shape == (10 * tokens * shape[-1] * 8,) and sums.shape == (10 * tokens * 8,)


def case_masked_causal_convolution():
    x, weight, mask = torch.randn(7, 2, 5), torch.randn(3, 5), torch.rand(2, 7) > 0.3

    def expected(x, w, keep):
        out = F.conv1d(F.pad(x.permute(1, 2, 0), (2, 0)), w.t().unsqueeze(1), groups=5).permute(2, 0, 1)
        return out if keep is None else out.masked_fill(~keep.t().unsqueeze(-1), 0)

    for keep in (None, mask):
        on_npu = lambda x, w, keep=keep: npu.npu_masked_causal_conv1d(  # noqa: E731
            x, w, mask=None if keep is None else keep.npu()
        )
        agree(on_npu, lambda x, w, keep=keep: expected(x, w, keep), x, weight)
        gradients_check(on_npu, x, weight)


def case_compressed_sequences():
    x, weight = torch.randn(17, 2, 4), torch.randn(4, 2)
    for ends in ([17], [6, 9, 17]):

        def expected(x, w, ends=ends):
            blocks, start = [], 0
            for end in ends:
                first = start
                while first + 4 <= end:
                    blocks.append(sum(x[first + k] * w[k][:, None] for k in range(4)))
                    first += 2
                start = end
            return torch.stack(blocks)

        on_npu = lambda x, w, ends=ends: npu.npu_nsa_compress(x, w, 4, 2, actual_seq_len=ends)  # noqa: E731
        agree(on_npu, expected, x, weight)
        gradients_check(on_npu, x, weight)
