"""Layout, scattering, packing, convolution into an output, BERT's Adam, and the loss over a split vocabulary."""

from __future__ import annotations

import torch
import torch_npu
from harness import close, raises
from torch.nn import functional as F

npu = torch.ops.npu


def case_operators_with_an_output():
    x = torch.randn(4, 6)
    for call, expected in (
        (lambda out: npu.npu_slice.out(x.npu(), [1, 2], [2, 3], out=out), x[1:3, 2:5]),
        (lambda out: npu.npu_indexing.out(x.npu(), [0, 1], [4, 6], [2, 2], out=out), x[0:4:2, 1:6:2]),
        (lambda out: npu.npu_sort_v2.out(x.npu(), 1, True, out=out), x.sort(1, True)[0]),
        (lambda out: npu.npu_stride_copy.out(x.npu(), [3, 2], [6, 2], 1, out=out), x.as_strided((3, 2), (6, 2), 1)),
    ):
        out = torch.empty(expected.shape).npu()
        assert call(out).data_ptr() == out.data_ptr()
        close(out, expected)
    for dims, function in ((2, F.conv2d), (3, F.conv3d)):
        image, weight = torch.randn(1, 2, *[5] * dims), torch.randn(3, 2, *[3] * dims)
        expected = function(image, weight, padding=1)
        out = torch.empty(expected.shape).npu()
        operator = getattr(npu, f"npu_conv{dims}d").out
        operator(image.npu(), weight.npu(), None, [1] * dims, [1] * dims, [1] * dims, 1, out=out)
        close(out, expected)


def case_pad_and_stride_add():
    x = torch.randn(2, 3)
    expected = torch.zeros(5, 7)
    expected[1:3, 4:] = x
    close(torch_npu.npu_pad(x.npu(), (1, 2, 4)), expected)
    a, b = torch.randn(2, 40, 3, 3), torch.randn(2, 64, 3, 3)
    found = npu.npu_stride_add(a.npu(), b.npu(), 1, 2, 2)
    expected = b[:, 32:64].clone()
    expected[:, :24] += a[:, 16:40]
    close(found, expected)


def case_sign_bits():
    x = torch.tensor([5, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2.0])
    for size in (1, 2):
        packed = torch_npu.npu_sign_bits_pack(x.npu(), size)
        assert packed.shape == (size, 2 // size) and packed.flatten().tolist() == [0b10011111, 0b00001111]
    signs = torch_npu.npu_sign_bits_unpack(packed.flatten(), 2, torch.float16)
    assert signs.dtype == torch.float16
    close(signs.flatten()[:14], torch.where(x < 0, -1.0, 1.0))
    close(signs.flatten()[14:], torch.full((2,), -1.0))
    raises(RuntimeError, "one-dimensional", lambda: npu.npu_sign_bits_pack(x[None].npu(), 1))


def case_scattering():
    x, updates = torch.randn(3, 4), torch.randn(4)
    expected, where = x.clone(), torch.tensor([2, 0, 0, 1])
    for column in range(4):
        expected[where[column], column] = updates[column]
    close(npu.npu_scatter(x.npu(), where.int().npu(), updates.npu(), 0), expected)
    x, index, updates = torch.randn(4, 5, 6), torch.tensor([[3, 0], [1, 4], [0, 2]]), torch.randn(3, 6)
    expected = x.clone()
    for row, (i, j) in enumerate(index.tolist()):
        expected[i, j] = updates[row]
    on_npu = x.npu()
    close(torch_npu.npu_scatter_nd_update(on_npu, index.int().npu(), updates.npu()), expected)
    close(on_npu, x)
    torch_npu.npu_scatter_nd_update_(on_npu, index.npu(), updates.npu())
    close(on_npu, expected)
    raises(RuntimeError, "indices", lambda: npu.npu_scatter_nd_update(on_npu, index[0].npu(), updates.npu()))
    targets = [torch.randn(2, 8, 3) for _ in range(3)]
    updates, starts, mask = torch.randn(3, 2, 2, 3), [6, 0, 3], torch.tensor([1, 0, 1], dtype=torch.uint8)
    expected = [t.clone() for t in targets]
    for i in (0, 2):
        for j in range(2):
            expected[i][j, starts[i]] = updates[i, j, 0]
            expected[i][j, starts[i] + 1] = updates[i, j, 1]
    arguments = torch.tensor(starts).npu(), updates.npu(), mask.npu()
    for found, wanted in zip(npu.npu_scatter_list([t.npu() for t in targets], *arguments), expected, strict=True):
        close(found, wanted)
    on_npu = [t.npu() for t in targets]
    npu.npu_scatter_list_(on_npu, *arguments)
    for found, wanted in zip(on_npu, expected, strict=True):
        close(found, wanted)


def case_masked_fill_range():
    start, end = torch.tensor([[0, 1], [3, 2]], dtype=torch.int32), torch.tensor([[2, 2], [3, 4]], dtype=torch.int32)
    value = torch.tensor([7.0, 8.0])
    for shape, axis in (((5,), 0), ((2, 5), 0), ((2, 5), 1), ((2, 3, 5), -1), ((2, 5, 3), 1)):
        x = torch.randn(*[5 if axis == 0 and d == 0 else s for d, s in enumerate(shape)])
        expected = x.clone()
        for i in range(2):
            for j in range(2):
                for k in range(int(start[i, j]), int(end[i, j])):
                    if len(shape) > 1 and axis % len(shape) == len(shape) - 1:
                        expected[j].select(-1, k).fill_(float(value[i]))
                    else:
                        expected.select(axis, k).fill_(float(value[i]))
        close(npu.npu_masked_fill_range(x.npu(), start.npu(), end.npu(), value.npu(), axis), expected)


def case_normalize_batch():
    x, lengths = torch.randn(3, 4, 9), torch.tensor([9, 5, 2], dtype=torch.int32)
    for kind in (0, 1):
        expected = torch.empty(x.shape)
        for b, length in enumerate(lengths.tolist()):
            for c in range(4):
                part = x[b, c, :length] if kind == 0 else x[b, :, :length].flatten()
                mean = sum(part.tolist()) / part.numel()
                deviation = (sum((v - mean) ** 2 for v in part.tolist()) / (part.numel() - 1)) ** 0.5
                expected[b, c] = (x[b, c] - mean) / (deviation + 1e-5)
        close(npu.npu_normalize_batch(x.npu(), lengths.npu(), kind), expected, 1e-4)


def case_exponential_draws():
    for rate in (1.0, 2.5):
        x = torch.zeros(20000).npu()
        assert torch_npu.npu_sim_exponential_(x, rate).data_ptr() == x.data_ptr()
        assert x.min() >= 0 and abs(float(x.mean()) * rate - 1) < 0.05 and abs(float(x.std()) * rate - 1) < 0.05


def case_adam_of_bert():
    var, m, v, grad = torch.randn(30), torch.randn(30), torch.rand(30), torch.randn(30)
    for mode, step, limit, norm, decay in (
        (0, None, -1.0, 0.0, 0.0), (0, None, 1.0, 4.0, 0.1), (0, None, 1.0, 0.5, 0.1), (1, 0.3, -1.0, 0.0, 0.1),
    ):  # fmt: skip
        g = grad / norm if limit > 0 and norm > 1 else grad
        new_m, new_v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        update = (0.02 if step is None else step) * new_m / (new_v.sqrt() + 1e-3) + 0.02 * decay * var
        state = var.npu(), m.npu(), v.npu()
        arguments = 0.02, 0.9, 0.99, 1e-3, grad.npu(), limit, norm, decay, step, mode
        torch_npu.npu_bert_apply_adam(*arguments, out=state)
        for found, expected in zip(state, (var - update, new_m, new_v), strict=True):
            close(found, expected)
    raises(RuntimeError, "not implemented for Tensor", lambda: npu.npu_bert_apply_adam(*arguments))


def case_loss_over_a_split_vocabulary():
    """Two processes with 128 words each give the loss and the gradients of one with 256."""
    words, width, count = 128, 16, 11
    x, weight = torch.randn(count, width).half(), (torch.randn(2 * words, width) * 0.3).half()
    target = torch.randint(0, 2 * words, (count,))
    leaves = [t.double().requires_grad_() for t in (x, weight)]
    loss = F.cross_entropy(leaves[0] @ leaves[1].T, target, reduction="none")
    grad = torch.randn(count)
    loss.backward(grad.double())
    parts = []
    for rank in range(2):
        own = weight[rank * words : (rank + 1) * words].npu()
        found = npu.npu_fused_linear_online_max_sum(
            x.npu(), own, target.npu(), rank * words, (rank + 1) * words - 1, rank == 0
        )
        bits = "".join(str(int(word // words != rank)) for word in target.tolist()) + "11111"
        assert found[3].tolist() == [int(bits[:8], 2), int(bits[8:], 2)]
        parts.append((own, *found))
    highest = torch.maximum(parts[0][1], parts[1][1])
    sums = sum(p[2] * (p[1] - highest).exp() for p in parts)
    own_words = [(target // words == rank).npu() for rank in range(2)]
    predicted = sum((p[3] + p[1] - highest) * own for p, own in zip(parts, own_words, strict=True))
    found, softmax = npu.npu_fused_cross_entropy_loss_with_max_sum(
        highest, sums, predicted, vocab_parallel_logits=parts[0][6]
    )
    close(found, loss, 1e-4)
    close(softmax, (leaves[0] @ leaves[1].T).softmax(1)[:, :words], 1e-3)
    dx = 0
    for rank, (own, _, _, _, mask, local, _) in enumerate(parts):
        named = {"softmax": softmax} if rank == 0 else {"logits_max": highest, "sum_exp_logits": sums}
        part, dweight = npu.npu_fused_linear_cross_entropy_loss_with_max_sum_backward(
            grad.npu(), x.npu(), own, mask, local, **named
        )
        dx = dx + part.float()
        close(dweight, leaves[1].grad[rank * words : (rank + 1) * words], 3e-3)
    close(dx, leaves[0].grad, 3e-3)
    alone, nothing = npu.npu_fused_cross_entropy_loss_with_max_sum(highest, sums, predicted)
    close(alone, found)
    assert nothing is None and parts[1][6] is None
