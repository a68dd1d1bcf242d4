"""Dropout, convolutions and matrix products under torch_npu's names."""

from __future__ import annotations

import torch
import torch_npu
from harness import agree, close, raises, same_on_both
from torch.nn import functional as F

npu = torch.ops.npu


def case_synchronised_batch_norm_over_two_halves_is_batch_norm_over_the_whole():
    x, weight, bias, grad = torch.randn(6, 3, 4, 4), torch.randn(3), torch.randn(3), torch.randn(6, 3, 4, 4)
    reference = torch.nn.BatchNorm2d(3)
    with torch.no_grad():
        reference.weight.copy_(weight), reference.bias.copy_(bias)
    whole = x.clone().requires_grad_()
    expected = reference(whole)
    expected.backward(grad)
    halves, halves_grad = x.npu().split([2, 4]), grad.npu().split([2, 4])
    counts = torch.tensor([2 * 16.0, 4 * 16.0]).npu()
    w, b = weight.npu(), bias.npu()
    sums = [torch.stack(s) for s in zip(*(npu.batch_norm_reduce(h, 1e-5) for h in halves), strict=True)]
    stats = [torch.stack(s) for s in zip(*(torch.batch_norm_stats(h, 1e-5) for h in halves), strict=True)]
    for gather, parts in (
        (npu.batch_norm_gather_stats_update, sums),
        (torch.batch_norm_gather_stats_with_counts, stats),
    ):
        running_mean, running_var = torch.zeros(3).npu(), torch.ones(3).npu()
        mean, invstd = gather(halves[0], *parts, running_mean, running_var, 0.1, 1e-5, counts)
        close(running_mean, reference.running_mean), close(running_var, reference.running_var)
        close(torch.cat([torch.batch_norm_elemt(h, w, b, mean, invstd, 1e-5) for h in halves]), expected)
        pieces = [
            torch.batch_norm_backward_reduce(g, h, mean, invstd, w, True, True, True)
            for g, h in zip(halves_grad, halves, strict=True)
        ]
        sum_dy, sum_dy_xmu, dweight, dbias = (sum(p) for p in zip(*pieces, strict=True))
        dx = torch.cat(
            [
                torch.batch_norm_backward_elemt(g, h, mean, invstd, w, sum_dy, sum_dy_xmu, counts)
                for g, h in zip(halves_grad, halves, strict=True)
            ]
        )
        close(dx, whole.grad), close(dweight, reference.weight.grad, 1e-4), close(dbias, reference.bias.grad)


def case_dropout_equals_the_cpu_in_every_digit():
    x = torch.randn(50, 70)
    for function in (
        lambda a: F.dropout(a, 0.4),
        lambda a: F.dropout(a, 0.0),
        lambda a: F.dropout(a, 1.0),
        lambda a: F.dropout(a, 0.4, training=False),
        lambda a: F.dropout2d(a[None, :, :, None], 0.4),
        lambda a: F.alpha_dropout(a, 0.4, True),
    ):
        same_on_both(function, x, tolerance=0)


def case_npu_dropout_keeps_a_packed_mask():
    x = torch.ones(30, 41).npu().requires_grad_()
    y, mask = npu._npu_dropout(x, 0.3)
    assert mask.dtype == torch.uint8 and mask.numel() == 1280 // 8
    kept = (y != 0).flatten().cpu()
    bits = ((mask.cpu()[:, None] >> torch.arange(8)) & 1).flatten()[: kept.numel()].bool()
    assert torch.equal(bits, kept) and 0.6 < kept.float().mean() < 0.8
    y.sum().backward()
    close(x.grad, y)


def case_dropout_follows_a_device_that_was_seeded_on_its_own():
    x = torch.ones(100).npu()
    lstm = torch.nn.LSTM(100, 4, 2, dropout=0.5).npu()

    def draw(seed):
        torch.npu.manual_seed(seed)
        return torch.cat([F.dropout(x, 0.5), npu._npu_dropout(x, 0.5)[0], lstm(x[None])[0].flatten()])

    first = draw(5)
    torch.rand(3)
    assert torch.equal(draw(5), first)
    assert not torch.equal(draw(6), first)


def case_generated_masks_depend_on_seed_and_offset_alone():
    like = torch.randn(1).npu()
    first = npu._npu_dropout_gen_mask(like, [10, 100], 0.25, 3, 0)
    assert torch.equal(first, npu._npu_dropout_gen_mask(like, [10, 100], 0.25, 3, 0))
    assert not torch.equal(first, npu._npu_dropout_gen_mask(like, [10, 100], 0.25, 4, 0))
    kept = ((first.cpu()[:, None] >> torch.arange(8)) & 1).flatten()[:1000].float().mean()
    assert 0.7 < kept < 0.8
    y, _ = npu.npu_dropout_do_mask(torch.ones(10, 100).npu(), first, 0.25)
    assert abs((y != 0).float().mean().item() - kept.item()) < 1e-6


def case_convolutions():
    x, weight, bias = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3), torch.randn(4)
    agree(
        lambda a, w, b: npu.npu_convolution(a, w, b, [2, 2], [1, 1], [1, 1], 1),
        lambda a, w, b: F.conv2d(a, w, b, stride=2, padding=1),
        x, weight, bias,
    )  # fmt: skip
    agree(
        lambda a, w, b: npu.npu_convolution_transpose(a, w, b, [1, 1], [0, 0], [2, 2], [1, 1], 1),
        lambda a, w, b: F.conv_transpose2d(a, w, b, stride=2, padding=1),
        x, torch.randn(3, 4, 3, 3), bias,
    )  # fmt: skip
    depthwise = torch.randn(3, 1, 3, 3)
    found = torch.ops.aten._conv_depthwise2d(x.npu(), depthwise.npu(), [3, 3], None, [1, 1], [1, 1], [1, 1])
    close(found, F.conv2d(x, depthwise, padding=1, groups=3))


def case_convolutions_in_half_precision_round_once():
    x, weight, bias = torch.randn(4, 16, 20, 20).half(), torch.randn(16, 16, 3, 3).half(), torch.randn(16).half()
    ours = [t.npu().requires_grad_() for t in (x, weight, bias)]
    theirs = [t.double().requires_grad_() for t in (x, weight, bias)]
    found, expected = F.conv2d(*ours, padding=1), F.conv2d(*theirs, padding=1)
    grad = torch.randn(expected.shape).half()
    found.backward(grad.npu())
    expected.backward(grad.double())
    for f, e in ((found, expected), *((o.grad, t.grad) for o, t in zip(ours, theirs, strict=True))):
        assert f.dtype == torch.float16
        rounding = (f.detach().cpu().double() - e.detach()).abs() / e.detach().abs().clamp(min=1)
        assert rounding.max() < 2**-11 * 1.05, rounding.max()


def case_convolution_sizes_may_be_longer_than_the_space():
    x, weight = torch.randn(1, 3, 6, 6, requires_grad=True), torch.randn(2, 3, 3, 3, requires_grad=True)
    sizes = [2, 2, 9], [1, 0, 7, 7], [1, 1, 5, 5], 1
    expected = F.conv2d(x, weight, stride=2, padding=(1, 0))
    on_npu = x.detach().npu(), weight.detach().npu()
    close(npu.npu_conv2d(*on_npu, None, *sizes), expected)
    grad = torch.randn(expected.shape)
    expected.backward(grad)
    found = npu.npu_conv2d_backward(on_npu[0], grad.npu(), on_npu[1], *sizes, [True, True, True])
    for ours, theirs in zip(found, (x.grad, weight.grad, grad.sum((0, 2, 3))), strict=True):
        close(ours, theirs)


def case_matrix_products():
    for left, right in (
        ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 6)),
        ((1, 3, 4), (2, 4, 5)), ((2, 3, 4), (1, 1, 4, 5)), ((3, 4), (1, 4, 5)), ((1, 3, 4), (4,)),
    ):  # fmt: skip
        a, b = torch.randn(left), torch.randn(right)
        same_on_both(torch.matmul, a, b)
        leaves = a.clone().requires_grad_(), b.clone().requires_grad_()
        product = torch.matmul(*leaves)
        grad = torch.randn(product.shape)
        expected = torch.autograd.grad(product, leaves, grad)
        found = torch.ops.aten.matmul_backward(grad.npu(), a.npu(), b.npu(), [True, True])
        # Dimensions that the product added are left to autograd, as torch_npu's own shapes for torch.compile say.
        shapes = torch.ops.aten.matmul_backward(*(t.to("meta") for t in (grad, a, b)), [True, True])
        assert [f.shape for f in found] == [m.shape for m in shapes], (left, right)
        close(found[0].sum_to_size(left), expected[0]), close(found[1].sum_to_size(right), expected[1])
    agree(npu.npu_linear, F.linear, torch.randn(3, 4), torch.randn(5, 4), torch.randn(5))
    agree(lambda a, b: npu.npu_bmmV2(a, b, []), torch.bmm, torch.randn(3, 4, 5), torch.randn(3, 5, 6))
    agree(
        lambda a, b: npu.npu_bmmV2(a, b, [12, 6]),
        lambda a, b: (a @ b).view(12, 6),
        torch.randn(3, 4, 5),
        torch.randn(3, 5, 6),
    )


def case_second_derivative_of_matmul():
    a, b, grad = torch.randn(2, 3, 4), torch.randn(4, 5), torch.randn(2, 3, 5)
    leaves = [t.double().requires_grad_() for t in (grad, a, b)]
    products = leaves[0] @ leaves[2].T, torch.einsum("bij,bik->jk", leaves[1], leaves[0])
    seconds = torch.randn(2, 3, 4), torch.randn(4, 5)
    expected = torch.autograd.grad(products, leaves, [s.double() for s in seconds])
    found = npu.matmul_double_backward(seconds[0].npu(), seconds[1].npu(), grad.npu(), a.npu(), b.npu(), [True] * 3)
    for ours, theirs in zip(found, expected, strict=True):
        close(ours, theirs)


def case_products_accumulated_in_a_wider_dtype():
    a, b = torch.randn(3, 4).half(), torch.randn(4, 5).half()
    found = torch.mm(a.npu(), b.npu(), out_dtype=torch.float32)
    assert found.dtype == torch.float32
    close(found, a.double() @ b.double())
    bias = torch.randn(3, 5).half()
    close(torch.addmm(bias.npu(), a.npu(), b.npu(), out_dtype=torch.float32), bias.double() + a.double() @ b.double())
    found = torch.bmm(a[None].npu(), b[None].npu(), out_dtype=torch.float32)
    close(found, (a.double() @ b.double())[None])


def case_a_cpu_tensor_beside_npu_tensors_is_an_error():
    raises(RuntimeError, "same device", lambda: npu.npu_linear(torch.randn(2, 4).npu(), torch.randn(3, 4)))
    raises(RuntimeError, "same device", lambda: torch_npu.npu_rms_norm(torch.randn(2, 4).npu(), torch.randn(4)))
    raises(NotImplementedError, "CPU", lambda: npu.npu_swiglu(torch.randn(2, 4)))


def case_half_precision_products_are_accumulated_in_float32():
    """A sum of many products whose partial sums float16 cannot hold."""
    a, b = torch.full((2, 4096), 1.0).half(), torch.full((4096, 2), 1.0).half()
    b[::2] = -1.0
    b[0] = 0.25
    for product in (torch.mm, torch.matmul):
        close(product(a.npu(), b.npu()), torch.full((2, 2), 1.25))
    many = torch.full((1, 1, 64, 64), 1.0).half()
    found = torch.nn.functional.conv2d(many.npu(), many.npu())
    assert found.dtype == torch.float16
    close(found, torch.full((1, 1, 1, 1), 4096.0))
    grads = torch.ops.aten.matmul_backward(torch.ones(2, 2).half().npu(), a.npu(), b.npu(), [True, True])
    close(grads[1], torch.full((4096, 2), 2.0)), close(grads[0], b.sum(1, keepdim=True).T.expand(2, 4096))
