"""Losses, recurrent layers, indexing, casts, optimizers, flags, and what has no reference."""

from __future__ import annotations

import copy

import torch
import torch_npu
from harness import agree, close, raises, same_on_both
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional as F

npu = torch.ops.npu
TARGET = torch.tensor([0, 3, 2, 4, 1, 2, 0])


def case_losses_of_pytorch_equal_the_cpu():
    a, b = torch.randn(4, 5), torch.randn(4, 5)
    classes = torch.tensor([0, 2, 4, 1])
    for reduction in ("none", "mean", "sum"):
        named = {"reduction": reduction}
        same_on_both(lambda x, y, k=named: F.l1_loss(x, y, **k), a, b)
        same_on_both(lambda x, y, k=named: F.smooth_l1_loss(x, y, **k), a, b)
        same_on_both(lambda x, y, k=named: F.huber_loss(x, y, **k), a, b)
        same_on_both(lambda x, y, k=named: F.mse_loss(x, y, **k), a, b)
        same_on_both(lambda x, y, k=named: F.kl_div(x.log_softmax(-1), y.softmax(-1), **k), a, b)
        same_on_both(lambda x, y, k=named: F.kl_div(x.log_softmax(-1), y.log_softmax(-1), log_target=True, **k), a, b)
        same_on_both(lambda x, y, k=named: F.binary_cross_entropy(x.sigmoid(), y.sigmoid().detach(), **k), a, b)
        same_on_both(
            lambda x, y, k=named: F.binary_cross_entropy_with_logits(
                x, y.sigmoid().detach(), pos_weight=y.exp().detach(), **k
            ),
            a,
            b,
        )
        same_on_both(
            lambda x, k=named: F.cross_entropy(x, classes.to(x.device), label_smoothing=0.1, ignore_index=2, **k), a
        )
    same_on_both(
        lambda x: F.ctc_loss(
            x.log_softmax(-1),
            torch.tensor([[1, 2, 2], [3, 1, 0]]).to(x.device),
            torch.tensor([8, 7]),
            torch.tensor([3, 2]),
        ),
        torch.randn(8, 2, 5),
    )


def case_backward_operators_of_losses():
    a, b, grad = torch.randn(4, 5), torch.rand(4, 5), torch.randn(4, 5)

    def gradients(loss, *leaves):
        leaves = [leaf.clone().requires_grad_() for leaf in leaves]
        return torch.autograd.grad(loss(*leaves), leaves, grad)

    expected = gradients(lambda x, y: F.kl_div(x, y, reduction="none"), a, b)
    on_npu = grad.npu(), a.npu(), b.npu()
    close(npu.kl_div_backward(*on_npu, 0), expected[0]), close(npu.kl_div_target_backward(*on_npu, 0), expected[1])
    close(npu.l1_loss_backward(*on_npu, 0), gradients(lambda x: F.l1_loss(x, b, reduction="none"), a)[0])
    found = npu.npu_binary_cross_entropy_with_logits_backward(*on_npu, None, None, 0)
    close(found, gradients(lambda x: F.binary_cross_entropy_with_logits(x, b, reduction="none"), a)[0])


def case_npu_cross_entropy_loss():
    for reduction in ("mean", "sum", "none"):
        agree(
            lambda x, r=reduction: npu.npu_cross_entropy_loss(x, TARGET.npu(), reduction=r)[0],
            lambda x, r=reduction: (
                getattr(-x.log_softmax(1)[torch.arange(7), TARGET], r)().view(-1)
                if r != "none"
                else -x.log_softmax(1)[torch.arange(7), TARGET]
            ),
            torch.randn(7, 5),
        )
    weight = torch.arange(1.0, 6.0)
    agree(
        lambda x: npu.npu_cross_entropy_loss(x, TARGET.npu(), weight.npu(), "mean", 2, 0.1)[0],
        lambda x: F.cross_entropy(x, TARGET, weight.double(), ignore_index=2, label_smoothing=0.1).view(1),
        torch.randn(7, 5),
    )
    raises(
        NotImplementedError,
        "z-loss",
        lambda: npu.npu_cross_entropy_loss(torch.randn(7, 5).npu(), TARGET.npu(), return_zloss=True),
    )


def case_softmax_cross_entropy_with_logits():
    labels = torch.rand(7, 5)
    agree(
        lambda x: npu.npu_softmax_cross_entropy_with_logits(x, labels.npu()),
        lambda x: (labels * (x.exp().sum(1, keepdim=True).log() - x)).sum(1),
        torch.randn(7, 5),
    )


def recurrent(kind, packed, settings):
    torch.manual_seed(1)
    nets = {"cpu": kind(5, 6, **settings)}
    nets["npu"] = copy.deepcopy(nets["cpu"]).npu()
    x = torch.randn(3, 4, 5)

    def run(value):
        net = nets[value.device.type]
        if packed:
            batch_first = settings.get("batch_first", False)
            lengths = torch.tensor([4, 4, 2] if batch_first else [3, 3, 1, 2])
            sequence = nn.utils.rnn.pack_padded_sequence(value, lengths, batch_first, enforce_sorted=False)
            output, state = net(sequence)
            output = nn.utils.rnn.pad_packed_sequence(output)[0]
        else:
            output, state = net(value)
        return [output, *(state if isinstance(state, tuple) else (state,))]

    same_on_both(run, x)
    for device in nets:
        torch.manual_seed(3)
        sum(t.square().sum() for t in run(x.to(device))).backward()
    for ours, theirs in zip(nets["npu"].parameters(), nets["cpu"].parameters(), strict=True):
        close(ours.grad, theirs.grad)


def case_recurrent_layers_equal_the_cpu():
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for packed in (False, True):
            for settings in (
                {},
                {"num_layers": 2, "dropout": 0.3},
                {"bidirectional": True, "batch_first": True},
                {"bias": False, "num_layers": 2},
                *([{"proj_size": 3}] if kind is nn.LSTM else []),
            ):
                recurrent(kind, packed, settings)


def case_recurrent_cells_equal_the_cpu():
    for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        for bias in (True, False):
            nets = {"cpu": kind(5, 6, bias=bias)}
            nets["npu"] = copy.deepcopy(nets["cpu"]).npu()

            def run(value, nets=nets):
                state = None
                for _ in range(3):
                    state = nets[value.device.type](value, state)
                return state

            same_on_both(run, torch.randn(3, 5))
            for device in nets:
                state = run(torch.ones(3, 5, device=device))
                (state[0] if isinstance(state, tuple) else state).sum().backward()
            for ours, theirs in zip(nets["npu"].parameters(), nets["cpu"].parameters(), strict=True):
                close(ours.grad, theirs.grad)


def case_operators_with_torch_npu_derivatives_equal_the_cpu():
    x = torch.randn(4, 5)
    index = torch.tensor([[0, 1], [2, 2], [1, 0], [3, 3]])
    same_on_both(lambda a: a.gather(1, index.to(a.device)), x)
    same_on_both(lambda a: torch.repeat_interleave(a, 3, 1), x)
    same_on_both(lambda a: torch.repeat_interleave(a, torch.tensor([1, 0, 2, 3]).to(a.device), 0), x)
    same_on_both(lambda a: torch.repeat_interleave(a, 2), x)
    same_on_both(lambda a: a.renorm(2, 0, 1.0), x)
    same_on_both(torch.cdist, torch.randn(2, 4, 5), torch.randn(2, 6, 5))
    same_on_both(lambda a: torch.fft.irfft(torch.fft.rfft(a) * 2), torch.randn(3, 16))
    same_on_both(lambda a: torch.fft.irfftn(torch.fft.rfftn(a) * 2), torch.randn(3, 4, 6))
    window = torch.hann_window(16)
    same_on_both(lambda a: torch.stft(a, 16, window=window.to(a.device), return_complex=True).abs(), torch.randn(2, 64))


def case_backward_operators_of_repeats():
    x, grad = torch.randn(4, 5), torch.randn(4, 15)
    expected = grad.view(4, 5, 3).sum(-1)
    close(npu.repeat_interleave_backward_int(grad.npu(), x.npu(), 3, 1), expected)
    repeats = torch.full((5,), 3)
    close(npu.repeat_interleave_backward_tensor(grad.npu(), x.npu(), repeats.npu(), 1), expected)


def case_extremes_and_one_hot():
    agree(lambda x: npu.npu_max(x, 1)[0], lambda x: x.amax(1), torch.randn(3, 4))
    agree(lambda x: npu.npu_min(x, 0, True)[0], lambda x: x.amin(0, True), torch.randn(3, 4))
    assert npu.npu_max(torch.randn(3, 4).npu(), 1)[1].dtype == torch.int32
    found = torch_npu.npu_one_hot(torch.tensor([5, 3, 2, 1], dtype=torch.int32).npu(), depth=5)
    expected = torch.zeros(4, 5)
    expected[1, 3] = expected[2, 2] = expected[3, 1] = 1
    close(found, expected)


def case_one_hot_of_tensors_of_python_classes():
    with FakeTensorMode():  # as a DTensor, it must reach its class and not a kernel
        found = torch.nn.functional.one_hot(torch.empty(2, 3, dtype=torch.int32, device="npu"), 5)
    assert isinstance(found, FakeTensor) and found.dtype == torch.int64 and found.shape == (2, 3, 5)


def case_optimizer_steps_escape_the_check_for_changes():
    """op-plugin's kernels for lists of tensors (ops/opapi/Foreach*.cpp) do not count as changes, unlike CUDA's."""
    weight = torch.ones(3, device="npu", requires_grad=True)
    loss = (weight * weight).sum()
    torch._foreach_add_([weight.detach()], 1.0)
    loss.backward()
    close(weight.grad, torch.full((3,), 4.0))
    loss = (weight * weight).sum()
    weight.detach().add_(1.0)
    raises(RuntimeError, "modified by an inplace operation", loss.backward)


def case_indexing():
    table, index = torch.randn(7, 5), torch.tensor([[0, 3], [3, 6]])
    agree(lambda t: npu.npu_gather_sparse_index(t, index.npu()), lambda t: t[index], table)
    close(npu.npu_indexing(table.npu(), [1, 0], [7, 4], [2, 1], 0, 2), table[1:7:2, 0:])
    close(npu.npu_sort_v2(table.npu(), descending=True), table.sort(descending=True)[0])
    cache, update = torch.zeros(2, 3, 8, 4), torch.randn(2, 3, 1, 4)
    expected = cache.clone()
    expected[0, :, 2], expected[1, :, 5] = update[0, :, 0], update[1, :, 0]
    close(torch_npu.scatter_update(cache.npu(), torch.tensor([2, 5]).npu(), update.npu(), -2), expected)


def case_casts_and_shapes():
    x = torch.randn(2, 3, 4, 6)
    agree(lambda a: torch_npu.npu_dtype_cast(a, torch.float16), lambda a: a.half(), x, tolerance=1e-3)
    agree(lambda a: npu._npu_dtype_cast(a, torch.float16), lambda a: a.half(), x, tolerance=1e-3)
    for cast in (torch_npu.npu_dtype_cast, npu._npu_dtype_cast):
        leaf = torch.tensor([1.0, -2.0]).npu().requires_grad_()
        (grad,) = torch.autograd.grad(cast(leaf, torch.float64).pow(3).sum(), leaf, create_graph=True)
        close(torch.autograd.grad(grad.sum(), leaf)[0], 6 * leaf.detach().cpu())
        (grad,) = torch.autograd.grad(cast(leaf, torch.float64).sum(), leaf, create_graph=True)
        assert grad.grad_fn is not None  # torch_npu asks for a gradient there, though none is needed
    agree(
        lambda a: npu.npu_confusion_transpose(a, [0, 2, 1, 3], [2, 4, 18], True),
        lambda a: a.permute(0, 2, 1, 3).reshape(2, 4, 18),
        x,
    )
    agree(
        lambda a: npu.npu_confusion_transpose(a, [0, 2, 1], [2, 12, 6], False),
        lambda a: a.reshape(2, 12, 6).permute(0, 2, 1),
        x,
    )
    found = torch_npu.npu_transpose(x.npu(), (2, 0, 1, 3))
    assert found.is_contiguous()
    close(found, x.permute(2, 0, 1, 3))
    close(torch_npu.npu_broadcast(x[:, :1].npu(), (2, 5, 4, 6)), x[:, :1].expand(2, 5, 4, 6))
    close(torch_npu.npu_reshape(x.npu(), (6, 24)), x.reshape(6, 24))
    close(torch_npu.npu_slice(x.npu(), [0, 1, 0, 2], [2, 2, 3, 4]), x[:, 1:3, :3, 2:6])
    target = torch.zeros(2, 3, 4, 6).npu()
    torch_npu.copy_memory_(target, x.npu())
    close(target, x)
    close(torch_npu.one_(target), torch.ones_like(x))


def train(optimizer_of, device, steps=5):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    data, target = torch.randn(32, 6).to(device), torch.randn(32, 1).to(device)
    optimizer = optimizer_of(net.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(net(data), target).backward()
        optimizer.step()
    return [p.detach().cpu() for p in net.parameters()]


def case_fused_optimizers_step_like_torch_optim():
    from torch_npu import optim

    for fused, plain, settings in (
        (optim.NpuFusedSGD, torch.optim.SGD, {"lr": 0.1}),
        (optim.NpuFusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
        (optim.NpuFusedSGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        (optim.NpuFusedAdam, torch.optim.Adam, {"lr": 0.01}),
        (optim.NpuFusedAdam, torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
        (optim.NpuFusedAdamW, torch.optim.AdamW, {"lr": 0.01}),
        (optim.NpuFusedAdamW, torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
        (optim.NpuFusedAdadelta, torch.optim.Adadelta, {"lr": 1.0}),
        (optim.NpuFusedRMSprop, torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.9}),
    ):
        ours = train(lambda p, f=fused, s=settings: f(p, **s), "npu")
        theirs = train(lambda p, f=plain, s=settings: f(p, **s), "cpu")
        for a, b in zip(ours, theirs, strict=True):
            close(a, b)


def case_fused_adamw_of_pytorch_steps_like_the_plain_one():
    plain = train(lambda p: torch.optim.AdamW(p, lr=0.01), "cpu")
    for settings in ({"foreach": True}, {"foreach": False}, {"fused": True}):
        for a, b in zip(train(lambda p, s=settings: torch.optim.AdamW(p, lr=0.01, **s), "npu"), plain, strict=True):
            close(a, b)


def case_fused_adamw_takes_no_notice_of_a_gradient_scaler():
    parameter = torch.zeros(3).npu().requires_grad_()
    optimizer = torch.optim.AdamW([parameter], lr=0.1, fused=True)
    scaler = torch.amp.GradScaler("npu", init_scale=1024.0)
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    close(optimizer.state[parameter]["exp_avg"], torch.full((3,), 102.4))  # a tenth of the scaled gradient
    parameter.grad.fill_(float("inf"))
    scaler.update()
    scaler.step(optimizer)
    assert not parameter.isfinite().any()  # the step is made where it should have been left out


def case_fused_sgd_asks_for_momentum_and_minds_the_scaler():
    parameter = torch.zeros(3).npu().requires_grad_()
    parameter.grad = torch.ones(3).npu()
    raises(RuntimeError, "momentum must be positive, but got 0", torch.optim.SGD([parameter], lr=0.1, fused=True).step)
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9, fused=True)
    scaler = torch.amp.GradScaler("npu", init_scale=1024.0)
    parameter.grad = None
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    close(parameter, torch.full((3,), -0.1))


def case_apply_adam_operators():
    var, grad = torch.randn(20), torch.randn(20)
    leaf = var.clone().requires_grad_()
    adam = torch.optim.AdamW([leaf], lr=0.1, betas=(0.8, 0.9), eps=1e-8, weight_decay=0.2)
    state = var.npu(), torch.zeros(20).npu(), torch.zeros(20).npu()
    for step in range(3):
        leaf.grad = grad
        adam.step()
        npu.npu_apply_adam_w.out(
            0.8**step, 0.9**step, 0.1, 0.2, 0.8, 0.9, 1e-8, grad.npu(), None, False, False, out=state
        )
    close(state[0], leaf)
    m, v = 0.2 * grad, 0.1 * grad**2
    expected = var - 0.1 * (1 - 0.9) ** 0.5 / (1 - 0.8) * m / (v.sqrt() + 1e-3)
    state = var.npu(), torch.zeros(20).npu(), torch.zeros(20).npu()
    npu.npu_apply_adam.out(0.8, 0.9, 0.1, 0.8, 0.9, 1e-3, grad.npu(), False, False, out=state)
    close(state[0], expected), close(state[1], m), close(state[2], v)


def case_float_status_reports_no_overflow():
    x = torch.randn(2, 3).npu()
    status = torch_npu.npu_alloc_float_status(x)
    assert status.shape == (8,) and status.dtype == torch.float32 and not status.any()
    assert torch_npu.npu_get_float_status(status).dtype == torch.int32
    assert not torch_npu.npu_clear_float_status(status).any()


def case_compositions_that_torch_npu_makes_past_the_dispatcher_equal_the_cpu():
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    same_on_both(lambda x: torch.slogdet(x)[1], a)
    same_on_both(lambda x: (x * 1).fill_diagonal_(2.0), a)
    close(torch.max(a.npu(), b.npu(), out=torch.empty(4, 4).npu()), torch.maximum(a, b))
    close(torch.min(a.npu(), b.npu(), out=torch.empty(4, 4).npu()), torch.minimum(a, b))
    close(torch.nanmean(a.npu(), 1, out=torch.empty(4).npu()), a.nanmean(1))
    same_on_both(lambda t: F.affine_grid(t, [1, 1, 4, 4], False), torch.randn(1, 2, 3))
    x, weight = torch.randn(5, 2, 3), torch.randn(3, 3, 4)
    same_on_both(lambda x, w, b: torch.conv_tbc(x, w, b, 1), x, weight, torch.randn(4))


def case_an_operator_without_a_reference_says_so():
    closing = torch.tensor([1], dtype=torch.int32).npu()
    raises(NotImplementedError, "no reference for npu::obfuscation_finalize", lambda: npu.obfuscation_finalize(closing))


def case_every_operator_of_torch_npu_has_a_kernel_or_an_error():
    from npuport.sim import kernels, ops

    installed = ops.install()
    reaching_cann = set(kernels.missing())
    assert reaching_cann <= ops._KEEP, reaching_cann - ops._KEEP
    assert not set(installed.references) & set(installed.refused)
    assert len(installed.references) > 150
