"""The stand-in for apex against formulas, torch's own classes and Apex's documents. The argument is the device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

DEVICE = sys.argv[1]
if DEVICE == "npu":
    from npuport.runtime.activation import activate

    activate()
else:
    from npuport.runtime.stand_ins import StandInFinder

    sys.meta_path.append(StandInFinder())

import amp_C  # noqa: E402
import torch  # noqa: E402
from apex import amp  # noqa: E402
from apex.contrib.clip_grad import clip_grad_norm_  # noqa: E402
from apex.fp16_utils import network_to_half, prep_param_lists  # noqa: E402
from apex.multi_tensor_apply import multi_tensor_applier  # noqa: E402
from apex.normalization import (  # noqa: E402
    FusedLayerNorm,
    FusedRMSNorm,
    MixedFusedLayerNorm,
    MixedFusedRMSNorm,
)
from apex.optimizers import FusedAdagrad, FusedAdam, FusedLAMB, FusedNovoGrad, FusedSGD  # noqa: E402
from apex.parallel import LARC  # noqa: E402
from torch import Tensor, nn  # noqa: E402

SATURATES = False
if DEVICE == "npu":
    import torch_npu

    SATURATES = not torch_npu.npu.utils.is_support_inf_nan()


def check(test: Callable[[], None]) -> None:
    torch.manual_seed(0)
    test()
    print("passed", test.__name__)


def same(found: Tensor, wanted: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(found.detach().cpu().double(), wanted.detach().cpu().double(), rtol=1e-5, atol=tolerance)


def raises(kind: type[Exception], action: Callable[[], Any], part: str) -> None:
    try:
        action()
    except kind as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"{kind.__name__} expected")


def parameters(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    shapes = ((3, 4), (5,), (2, 3, 2))
    return [nn.Parameter(torch.randn(shape, generator=generator).to(DEVICE, dtype)) for shape in shapes]


def stepped(make: Callable[[list[nn.Parameter]], Any], steps: int = 5) -> list[nn.Parameter]:
    """Parameters after some steps on gradients that depend on nothing else."""
    given = parameters()
    optimizer = make(given)
    generator = torch.Generator().manual_seed(2)
    for _ in range(steps):
        for parameter in given:
            parameter.grad = torch.randn(parameter.shape, generator=generator).to(DEVICE)
        optimizer.step()
    return given


def equal(make: Callable[[list[nn.Parameter]], Any], reference: Callable[[list[nn.Parameter]], Any]) -> None:
    for found, wanted in zip(stepped(make), stepped(reference), strict=True):
        same(found, wanted)


@check
def fused_adam_is_adamw() -> None:
    equal(
        lambda p: FusedAdam(p, lr=0.01, weight_decay=0.1, betas=(0.8, 0.99)),
        lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1, betas=(0.8, 0.99)),
    )
    equal(
        lambda p: FusedAdam(p, lr=0.01, weight_decay=0.1, adam_w_mode=False),
        lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    )
    equal(lambda p: FusedAdam(p, lr=0.01), lambda p: torch.optim.Adam(p, lr=0.01))
    raises(RuntimeError, lambda: FusedAdam(parameters(), amsgrad=True), "AMSGrad")
    raises(NotImplementedError, lambda: FusedAdam(parameters(), capturable=True, master_weights=True), "master_weights")


@check
def fused_adam_keeps_float32_averages_of_float16_parameters() -> None:
    given = parameters(torch.float16)
    optimizer = FusedAdam(given, lr=0.01)
    for parameter in given:
        parameter.grad = torch.ones_like(parameter)
    before = [parameter.detach().clone() for parameter in given]
    optimizer.step()
    assert all(value.dtype is torch.float32 for p in given for value in optimizer.state[p].values())
    assert all(p.dtype is torch.float16 for p in given)
    for parameter, old in zip(given, before, strict=True):
        same(parameter, old.float() - 0.01, 1e-3)
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in given)


@check
def fused_sgd_is_sgd() -> None:
    options: list[dict[str, Any]] = [
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"weight_decay": 0.1},
    ]
    for option in options:
        equal(lambda p, o=option: FusedSGD(p, lr=0.1, **o), lambda p, o=option: torch.optim.SGD(p, lr=0.1, **o))
    raises(ValueError, lambda: FusedSGD(parameters(), lr=0.1, nesterov=True), "Nesterov")


@check
def fused_sgd_decays_after_momentum() -> None:
    parameter = parameters()[:1]
    optimizer = FusedSGD(parameter, lr=0.1, momentum=0.9, weight_decay=0.5, wd_after_momentum=True)
    p, v = parameter[0].detach().cpu().double(), torch.zeros(3, 4, dtype=torch.float64)
    for step in range(3):
        gradient = torch.full((3, 4), 1.0 + step)
        parameter[0].grad = gradient.to(DEVICE)
        optimizer.step()
        v = 0.9 * v + gradient
        p = p - 0.1 * (v + 0.5 * p)
        same(parameter[0], p)


@check
def fused_adagrad_is_adagrad() -> None:
    equal(
        lambda p: FusedAdagrad(p, lr=0.1, eps=1e-8, weight_decay=0.1),
        lambda p: torch.optim.Adagrad(p, lr=0.1, eps=1e-8, weight_decay=0.1),
    )


def lamb(
    p: list[Tensor], gradients: list[list[Tensor]], lr: float, decay: float, clip: float, nvlamb: bool
) -> list[Tensor]:
    """LAMB in float64, written out (https://arxiv.org/abs/1904.00962, with Apex's clipping before it)."""
    first, second = [torch.zeros_like(each) for each in p], [torch.zeros_like(each) for each in p]
    for step, found in enumerate(gradients, 1):
        norm = torch.sqrt(sum((g**2).sum() for g in found))  # type: ignore[arg-type]
        for place, gradient in enumerate(found):
            g = gradient / max(1.0, float(norm) / clip)
            first[place] = 0.9 * first[place] + 0.1 * g
            second[place] = 0.999 * second[place] + 0.001 * g**2
            update = (first[place] / (1 - 0.9**step)) / ((second[place] / (1 - 0.999**step)).sqrt() + 1e-6)
            update = update + decay * p[place]
            ratio = p[place].norm() / update.norm() if decay or nvlamb else 1.0
            p[place] = p[place] - lr * ratio * update
    return p


@check
def fused_lamb_follows_its_formula() -> None:
    generator = torch.Generator().manual_seed(2)
    gradients = [[torch.randn(p.shape, generator=generator).double() for p in parameters()] for _ in range(5)]
    for decay, nvlamb in ((0.01, False), (0.0, False), (0.0, True)):
        start = [p.detach().cpu().double() for p in parameters()]
        wanted = lamb(start, gradients, 0.01, decay, 1.0, nvlamb)
        found = stepped(lambda p, d=decay, n=nvlamb: FusedLAMB(p, lr=0.01, weight_decay=d, use_nvlamb=n))
        for one, other in zip(found, wanted, strict=True):
            same(one, other, 1e-5)


@check
def fused_novograd_follows_its_formula() -> None:
    generator = torch.Generator().manual_seed(2)
    gradients = [[torch.randn(p.shape, generator=generator).double() for p in parameters()] for _ in range(5)]
    for inside in (False, True):
        p = [each.detach().cpu().double() for each in parameters()]
        m, v = [torch.zeros_like(each) for each in p], [g.norm() for g in gradients[0]]
        for step, found in enumerate(gradients, 1):
            for place, g in enumerate(found):
                v[place] = (0.98 * v[place] ** 2 + 0.02 * (g**2).sum()).sqrt()
                scale = v[place] / (1 - 0.98**step) ** 0.5 + 1e-8
                m[place] = 0.9 * m[place] + 0.1 * (g / scale + 0.1 * p[place] if inside else g)
                mean = m[place] / (1 - 0.9**step)
                p[place] = p[place] - 0.01 * (mean if inside else mean / scale + 0.1 * p[place])
        result = stepped(
            lambda q, i=inside: FusedNovoGrad(q, lr=0.01, betas=(0.9, 0.98), weight_decay=0.1, reg_inside_moment=i)
        )
        for one, other in zip(result, p, strict=True):
            same(one, other, 1e-5)


@check
def larc_scales_gradients() -> None:
    parameter = parameters()[:1]
    optimizer = LARC(torch.optim.SGD(parameter, lr=0.1, weight_decay=0.01), trust_coefficient=0.02)
    p, g = parameter[0].detach().cpu().double(), torch.ones(3, 4).double()
    parameter[0].grad = g.float().to(DEVICE)
    optimizer.step()
    local = 0.02 * p.norm() / (g.norm() + 0.01 * p.norm() + 1e-8)
    same(parameter[0], p - 0.1 * min(float(local) / 0.1, 1.0) * (g + 0.01 * p))
    assert optimizer.param_groups[0]["weight_decay"] == 0.01


@check
def norms_equal_their_formulas() -> None:
    x = torch.randn(4, 6)
    weight, bias = torch.randn(6), torch.randn(6)
    wanted = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt() * weight + bias
    rms = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight
    for kind, expected in ((FusedLayerNorm, wanted), (FusedRMSNorm, rms)):
        norm = kind(6).to(DEVICE)
        norm.weight.data.copy_(weight)
        if norm is not None and hasattr(norm, "bias"):
            norm.bias.data.copy_(bias)
        same(norm(x.to(DEVICE)), expected, 1e-5)
        assert norm(x.to(DEVICE).half()).dtype is torch.float16
        norm(x.to(DEVICE)).sum().backward()
        assert norm.weight.grad is not None
    for mixed in (MixedFusedLayerNorm, MixedFusedRMSNorm):
        assert mixed(6).to(DEVICE)(x.to(DEVICE).half()).dtype is torch.float32
    same(FusedRMSNorm((6,), elementwise_affine=False)(x.to(DEVICE)), rms / weight, 1e-5)


@check
def lists_of_tensors() -> None:
    flag = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    x, y = [torch.full((3,), 2.0, device=DEVICE)], [torch.full((3,), 3.0, device=DEVICE)]
    out = [torch.zeros(3, device=DEVICE, dtype=torch.float16)]
    multi_tensor_applier(amp_C.multi_tensor_scale, flag, [x, out], 0.5)
    same(out[0], torch.ones(3))
    itself = [torch.full((3,), 2.0, device=DEVICE)]
    place = itself[0].data_ptr()
    multi_tensor_applier(amp_C.multi_tensor_scale, flag, [itself, itself], 0.5)
    same(itself[0], torch.ones(3))
    assert itself[0].data_ptr() == place
    multi_tensor_applier(amp_C.multi_tensor_axpby, flag, [x, y, out], 2.0, -1.0, 0)
    same(out[0], torch.ones(3))
    norm, each = multi_tensor_applier(amp_C.multi_tensor_l2norm, flag, [[*x, *y]], True)
    same(norm, torch.tensor([39.0]).sqrt(), 1e-5)
    same(each, torch.tensor([12.0, 27.0]).sqrt(), 1e-5)
    if not SATURATES:
        assert int(flag) == 0
        multi_tensor_applier(amp_C.multi_tensor_axpby, flag, [x, [y[0] * float("inf")], out], 1.0, 1.0, 0)
        assert int(flag) == 0
        multi_tensor_applier(amp_C.multi_tensor_scale, flag, [[x[0] * float("inf")], out], 1.0)
        assert int(flag) == 1
    given = parameters()
    for p in given:
        p.grad = torch.ones_like(p)
    same(clip_grad_norm_(given, 1.0), torch.tensor(29.0).sqrt(), 1e-5)
    same(torch.cat([p.grad.flatten() for p in given]).norm(), torch.tensor(1.0), 1e-5)


class Net(nn.Module):
    """A linear layer, a batch norm and a second linear layer; notes the dtypes it met."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)
        self.met: list[torch.dtype] = []

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        self.met = [x.dtype, h.dtype]
        return self.second(torch.relu(self.norm(h)))


def made(level: str, **options: Any) -> tuple[Net, Any]:
    net = Net().to(DEVICE)
    optimizer = FusedSGD(net.parameters(), lr=0.125)
    return amp.initialize(net, optimizer, opt_level=level, verbosity=0, **options)


def dtypes(net: Net) -> list[torch.dtype]:
    return [net.first.weight.dtype, net.norm.weight.dtype, net.norm.running_mean.dtype]


HALF, FLOAT = torch.float16, torch.float32
X = torch.ones(3, 4, device=DEVICE) * torch.arange(3, device=DEVICE)[:, None]


@check
def levels_choose_dtypes() -> None:
    for level, weights, met, masters in (
        ("O0", [FLOAT, FLOAT, FLOAT], [FLOAT, FLOAT], FLOAT),
        ("O2", [HALF, FLOAT, FLOAT], [HALF, HALF], FLOAT),
        ("O3", [HALF, HALF, HALF], [HALF, HALF], HALF),
    ):
        net, optimizer = made(level)
        assert dtypes(net) == weights, (level, dtypes(net))
        out = net(X)
        assert out.dtype is FLOAT
        assert net.met == met, (level, net.met)
        with amp.scale_loss(out.sum(), optimizer) as scaled:
            assert scaled.dtype is FLOAT
            scaled.backward()
        assert amp.master_params(optimizer).__next__().dtype is masters
        assert all(value.dtype is not HALF for value in net.state_dict().values())
        optimizer.step()
    net, _ = made("O3", keep_batchnorm_fp32="True")
    assert dtypes(net) == [HALF, FLOAT, FLOAT]
    net, _ = made("O2", keep_batchnorm_fp32=False)
    assert dtypes(net) == [HALF, HALF, HALF]
    net, _ = made("O2", cast_model_type=torch.bfloat16, cast_model_outputs=HALF)
    assert net.first.weight.dtype is torch.bfloat16
    if DEVICE == "cpu":
        assert net(X).dtype is HALF
    raises(RuntimeError, lambda: made("o2"), "letter O")
    raises(RuntimeError, lambda: made("O1", master_weights=True), "master_weights")
    raises(RuntimeError, lambda: made("O2", patch_torch_functions=True), "patch_torch_functions")
    raises(RuntimeError, lambda: amp.initialize(Net().to(DEVICE).half()), "float16")
    plain = Net()
    assert amp.initialize(plain, enabled=False) is plain
    assert made("O2", enabled=False)[0].first.weight.dtype is FLOAT


def backward(net: Net, optimizer: Any, factor: float = 1.0, **options: Any) -> None:
    with amp.scale_loss(net(X).float().sum() * factor, optimizer, **options) as scaled:
        scaled.backward()


@check
def scale_halves_at_overflow_and_skips_the_step() -> None:
    net, optimizer = made("O2")
    scaler = amp._amp_state.loss_scalers[0]
    before = net.first.weight.detach().clone(), [p.detach().clone() for p in optimizer.param_groups[0]["params"]]
    seen = []
    for factor in (1e6, 1e6, 1e-3):
        optimizer.zero_grad()
        backward(net, optimizer, factor)
        optimizer.step()
        seen.append(scaler.loss_scale())
        if factor > 1:
            same(net.first.weight, before[0])
            assert all(p.grad is None for p in optimizer._amp_stash.all_fp32_from_fp16_params)
    assert seen == [2.0**15, 2.0**14, 2.0**14], seen
    assert not torch.equal(net.first.weight, before[0])
    same(net.first.weight, optimizer.param_groups[0]["params"][0].half())


@check
def scale_doubles_after_2000_steps() -> None:
    net, optimizer = made("O2", max_loss_scale=2.0**17)
    scaler = amp._amp_state.loss_scalers[0]
    assert scaler.loss_scale() == 2.0**16
    seen = []
    for unskipped in (1998, 1999, 1999):
        scaler._unskipped = unskipped
        backward(net, optimizer, 1e-4)
        optimizer.step()
        seen.append((scaler.loss_scale(), scaler._unskipped))
    assert seen == [(2.0**16, 1999), (2.0**17, 0), (2.0**17, 0)], seen
    net, optimizer = made("O2", min_loss_scale=2.0**16)
    backward(net, optimizer, 1e6)
    assert amp._amp_state.loss_scalers[0].loss_scale() == 2.0**16
    net, optimizer = made("O2", loss_scale="128.0")
    backward(net, optimizer, 1e9)
    assert amp._amp_state.loss_scalers[0].loss_scale() == 128.0


@check
def master_gradients_are_unscaled_and_summed() -> None:
    for delayed in (False, True):
        net, optimizer = made("O2", loss_scale=64.0)
        reference = Net().to(DEVICE)
        reference.load_state_dict(net.state_dict())
        net.eval(), reference.eval()  # a batch norm in training amplifies what float16 rounds
        (reference(X).sum() * 3).backward()
        backward(net, optimizer, 1.0, delay_unscale=delayed)
        backward(net, optimizer, 2.0)
        for found, wanted in zip(amp.master_params(optimizer), reference.parameters(), strict=True):
            same(found.grad, wanted.grad, 2e-2)
        optimizer.zero_grad()
        assert all(p.grad is None for p in optimizer._amp_stash.all_fp32_from_fp16_params)


@check
def each_loss_has_its_scale_and_state() -> None:
    net, optimizer = made("O2", num_losses=2)
    backward(net, optimizer, 1e6, loss_id=1)
    optimizer.step()
    saved = amp.state_dict()
    assert saved == {
        "loss_scaler0": {"loss_scale": 65536.0, "unskipped": 0},
        "loss_scaler1": {"loss_scale": 32768.0, "unskipped": 0},
    }, saved
    made("O2", num_losses=2)
    amp.load_state_dict(saved)
    assert amp.state_dict() == saved
    raises(RuntimeError, lambda: amp.load_state_dict({"model": 1}), "model")


@check
def parameters_added_later_get_masters() -> None:
    net, optimizer = made("O2")
    more = nn.Linear(2, 2).to(DEVICE).half()
    optimizer.add_param_group({"params": more.parameters(), "lr": 0.5})
    assert [p.dtype for p in optimizer.param_groups[1]["params"]] == [FLOAT, FLOAT]
    loss = more(net(X).half()).float().sum()
    with amp.scale_loss(loss * 1e-3, optimizer) as scaled:
        scaled.backward()
    before = more.weight.detach().clone()
    optimizer.step()
    assert not torch.equal(before, more.weight)


@check
def half_precision_by_hand() -> None:
    net = network_to_half(Net().to(DEVICE))
    assert dtypes(net[1]) == [HALF, FLOAT, FLOAT]
    model, masters = prep_param_lists(net)
    assert [m.dtype for m in masters] == [FLOAT] * len(model)


@check
def level_one_casts_functions() -> None:  # the last one: casts stay on
    class Own:
        @staticmethod
        def doubled(x: Tensor) -> Tensor:
            return x * 2

    amp.register_half_function(Own, "doubled")
    net, optimizer = made("O1")
    assert dtypes(net) == [FLOAT, FLOAT, FLOAT]
    net(X)
    assert net.met == [FLOAT, HALF]
    assert Own.doubled(X).dtype is HALF
    assert amp.float_function(lambda x: x)(X.half()).dtype is FLOAT
    assert amp.promote_function(lambda x, y: x + y)(X.half(), X).dtype is FLOAT
    if DEVICE == "npu":  # the CPU has a list of its own
        assert torch.softmax(X.half(), -1).dtype is FLOAT
    with amp.disable_casts():
        net(X)
        assert net.met == [FLOAT, FLOAT]
        assert Own.doubled(X).dtype is FLOAT
    net.eval()
    before = net.first.weight.detach().clone()
    first = net(X).detach().clone()
    backward(net, optimizer, 1e-3)
    same(net.second.bias.grad, torch.full((2,), 3e-3), 1e-5)
    optimizer.step()
    assert not torch.equal(net.first.weight, before)
    net.second.weight.data.add_(1)
    assert not torch.equal(net(X), first)  # a cast of the old weights would show
    scaler = amp._amp_state.loss_scalers[0]
    backward(net, optimizer, 1e30)
    assert scaler.loss_scale() == 2.0**15
    optimizer.step()


def missing() -> None:
    import apex.transformer  # noqa: F401


raises(ModuleNotFoundError, missing, "npuport's stand-in for apex has no apex.transformer")
print("passed missing")
