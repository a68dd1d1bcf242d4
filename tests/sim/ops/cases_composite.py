"""Fused products and the older fused attention operators against what they stand for."""

from __future__ import annotations

import warnings

import torch
from harness import agree, close, gradients_check, raises
from torch.nn import functional

npu = torch.ops.npu


def case_softmax_with_mask_and_relative_position_bias():
    x, mask, bias = torch.randn(2, 3, 4, 5, 5), torch.randn(1, 3, 1, 5, 5), torch.randn(1, 1, 4, 5, 5)
    found = npu.npu_masked_softmax_with_rel_pos_bias(x.npu(), mask.npu(), bias.npu(), 0.5)
    close(found, (0.5 * x + mask + bias).softmax(-1))
    close(npu.npu_masked_softmax_with_rel_pos_bias(x.npu(), None, bias.npu()), (x + bias).softmax(-1))


def case_softmax_of_a_sum_with_dropout():
    x, added = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 4, 6)
    agree(
        lambda a: npu.npu_dropout_with_add_softmax(a, added.npu(), 0.3, 0.0, -1)[2],
        lambda a: (added.to(a.dtype) + 0.3 * a).softmax(-1),
        x,
    )
    leaf = x.npu().requires_grad_()
    mask, softmax, output = npu.npu_dropout_with_add_softmax(leaf, added.npu(), 0.3, 0.5, -1)
    assert mask.numel() == 256 and mask.dtype == torch.uint8
    kept = mask[: x.numel()].view(x.shape).cpu().bool()
    assert 0.3 < kept.float().mean() < 0.7
    close(softmax, (added + 0.3 * x).softmax(-1))
    plain = x.clone().requires_grad_()
    expected = (added + 0.3 * plain).softmax(-1) * kept / 0.5
    close(output, expected)
    grad = torch.randn(x.shape)
    output.backward(grad.npu()), expected.backward(grad)
    close(leaf.grad, plain.grad)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        npu.npu_dropout_with_add_softmax(leaf, added.npu().requires_grad_(), 0.3, 0.0, -1)
    assert any("x1" in str(w.message) for w in caught)


def multi_head(q, k, v, wq, wk, wv, wo, bq, bk, bv, bo, mask):
    heads, width, length = 16, 16, 16

    def split(x, w, b):
        return functional.linear(x, w, b).view(2, length, heads, width).transpose(1, 2)

    scores = split(q, wq, bq) / width**0.5 @ split(k, wk, bk).mT + mask
    context = (scores.softmax(-1) @ split(v, wv, bv)).transpose(1, 2).reshape(2 * length, -1)
    return functional.linear(context, wo, bo)


def case_multi_head_attention():
    width = 256
    inputs = [torch.randn(32, width) for _ in range(3)]
    weights = [torch.randn(width, width) / 16 for _ in range(4)]
    biases = [torch.randn(width) for _ in range(4)]
    mask = torch.randn(2, 16, 16, 16)

    def ours(q, k, v, wq, wk, wv, wo, bq, bk, bv, bo):
        return npu.npu_multi_head_attention(
            q, k, v, wq, wk, wv, mask.npu(), wo, bq, bk, bv, bo, None, 16, 16, 16, 16, 0.0, True
        )[0]

    agree(ours, lambda *t: multi_head(*t, mask.to(t[0].dtype)), *inputs, *weights, *biases, tolerance=1e-4)
    leaves = [t.npu().requires_grad_() for t in (*inputs, *weights)]
    y, packed, *_, softmax, dropped, _ = npu.npu_multi_head_attention(
        *leaves[:6], mask.npu(), leaves[6], None, None, None, None, None, 16, 16, 16, 16, 0.5, True
    )
    kept = ((packed.cpu()[:, None] >> torch.arange(8)) & 1).view(softmax.shape)
    close(dropped, softmax.cpu() * kept / 0.5)
    y.sum().backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)
    raises(
        RuntimeError,
        "align to 16",
        lambda: npu.npu_multi_head_attention(
            *leaves[:6], mask.npu(), leaves[6], None, None, None, None, None, 16, 16, 16, 8, 0.0, True
        ),
    )


def case_matmul_with_a_fused_operation():
    x1, x2, x3, bias = torch.randn(5, 4), torch.randn(4, 3), torch.randn(5, 3), torch.randn(3)
    product = x1 @ x2 + bias
    for name, expected in (("", product), ("relu", product.relu()), ("add", product + x3), ("mul", product * x3)):
        close(npu.npu_fused_matmul(x1.npu(), x2.npu(), bias=bias.npu(), x3=x3.npu(), fused_op_type=name), expected)
    for name, approximate in (("gelu_erf", "none"), ("gelu_tanh", "tanh")):
        found = npu.npu_fused_matmul(x1.npu(), x2.npu(), fused_op_type=name)
        close(found, functional.gelu(x1 @ x2, approximate=approximate))
    found = npu.npu_fused_matmul(x1.half().npu(), x2.half().npu(), fused_op_type="16cast32")
    assert found.dtype == torch.float32
    raises(RuntimeError, "needs x3", lambda: npu.npu_fused_matmul(x1.npu(), x2.npu(), fused_op_type="add"))


def case_transposed_batches_of_products():
    x, weight = torch.randn(5, 3, 4), torch.randn(3, 4, 6)
    expected = torch.einsum("mbk,bkn->mbn", x, weight)
    found = npu.npu_transpose_batchmatmul(x.npu(), weight.npu(), perm_x1=[1, 0, 2], perm_y=[1, 0, 2])
    close(found, expected)
    found = npu.npu_transpose_batchmatmul(x.transpose(0, 1).contiguous().npu(), weight.npu(), perm_y=[1, 0, 2])
    close(found, expected)
    found = npu.npu_transpose_batchmatmul(
        x.npu(), weight.npu(), perm_x1=[1, 0, 2], perm_y=[1, 0, 2], batch_split_factor=3
    )
    close(found, expected.reshape(5, 3, 6).transpose(0, 1))


def case_feed_forward():
    x, w1, w2 = torch.randn(7, 4), torch.randn(3, 4, 6), torch.randn(3, 6, 4)
    b1, b2 = torch.randn(3, 6), torch.randn(3, 4)
    for name, activation in (
        ("relu", torch.relu),
        ("gelu", functional.gelu),
        ("silu", functional.silu),
        ("fastgelu", lambda t: t * torch.sigmoid(1.702 * t)),
    ):
        found = npu.npu_ffn(x.npu(), w1[0].npu(), w2[0].npu(), name, bias1=b1[0].npu(), bias2=b2[0].npu())
        close(found, activation(x @ w1[0] + b1[0]) @ w2[0] + b2[0])
        expected = torch.cat([activation(p @ w1[e] + b1[e]) @ w2[e] + b2[e] for e, p in enumerate(x.split([2, 0, 5]))])
        for named in ({"expert_tokens": [2, 0, 5]}, {"expert_tokens_index": [2, 2, 7]}):
            close(npu.npu_ffn(x.npu(), w1.npu(), w2.npu(), name, bias1=b1.npu(), bias2=b2.npu(), **named), expected)
    raises(NotImplementedError, "swiglu", lambda: npu.npu_ffn(x.npu(), w1[0].npu(), w2[0].npu(), "swiglu"))


def case_gradients_of_products_by_finite_differences():
    gradients_check(npu.npu_linear, torch.randn(2, 3), torch.randn(4, 3), torch.randn(4))
    gradients_check(lambda a, b: npu.npu_bmmV2(a, b, []), torch.randn(2, 2, 3), torch.randn(2, 3, 2))
    gradients_check(lambda a, b: npu.npu_bmmV2(a, b, [4, 2]), torch.randn(2, 2, 3), torch.randn(2, 3, 2))
    gradients_check(lambda a: npu.npu_confusion_transpose(a, [0, 2, 1], [2, 12], True), torch.randn(2, 3, 4))
    gradients_check(lambda a: npu.npu_confusion_transpose(a, [1, 0], [4, 6], False), torch.randn(2, 3, 4))
