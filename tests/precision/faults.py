"""Faults of devices and of programs, put into a training step, and the noise that every device has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from fault_models import CASES
from held_out_models import HELD_OUT_CASES
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from npuport.precision.operators.calls import Step
from npuport.precision.operators.recording import Recorder

NOISES = {"1e-6": 1e-6, "1e-5": 1e-5, "bf16": 4e-3}


class Device(TorchDispatchMode):
    """A device of its own: noise on every floating result, and one operator that is wrong."""

    def __init__(self, noise: float, seed: int, fault: Fault | None) -> None:
        super().__init__()
        self.noise, self.fault = noise, fault
        self.random = torch.Generator().manual_seed(seed)
        self.seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, tuple | list) and result else result
        is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)
        if not isinstance(first, torch.Tensor) or not first.is_floating_point() or is_view or not first.numel():
            return result
        if first.numel() > 1:
            first.mul_(1 + self.noise * torch.randn(first.shape, generator=self.random))
        if self.fault is not None and self.fault.operator == func._schema.name.removeprefix("aten::"):
            if self.seen == self.fault.which and self.fault.change is not None:
                self.fault.change(first, args)
            self.seen += 1
        return result


@dataclass(frozen=True)
class Fault:
    """A fault: in the ``which``-th call of an operator (``change`` spoils its result), or in the program (``edit``).

    ``expected`` are operators of which the first suspect must be one; for a device's fault it is the operator itself.
    """

    name: str
    model: str
    operator: str = ""
    which: int = 0
    change: Callable[[torch.Tensor, Any], None] | None = None
    edit: Callable[[nn.Module, Any], Any] | None = None
    after: Callable[[nn.Module, torch.optim.Optimizer], None] | None = None
    module: str = ""  # of the suspect; "" does not matter
    expected: tuple[str, ...] = ()


def noisy(size: float) -> Callable[[torch.Tensor, Any], None]:
    def change(result: torch.Tensor, _: Any) -> None:
        result.mul_(1 + size * torch.randn(result.shape, generator=torch.Generator().manual_seed(5)))

    return change


def scaled(factor: float) -> Callable[[torch.Tensor, Any], None]:
    def change(result: torch.Tensor, _: Any) -> None:
        result.mul_(factor)

    return change


def element(value: float, add: bool = True) -> Callable[[torch.Tensor, Any], None]:
    def change(result: torch.Tensor, _: Any) -> None:
        flat = result.view(-1)
        flat[flat.numel() // 3] = flat[flat.numel() // 3] + value if add else value

    return change


def as_bfloat16(result: torch.Tensor, _: Any) -> None:
    result.copy_(result.bfloat16().float())


def stale(result: torch.Tensor, _: Any) -> None:
    """The second half of the result was never written."""
    result[result.shape[0] // 2 :] = 0


def wrong_eps(model: nn.Module, batch: Any) -> Any:
    next(one for one in model.modules() if isinstance(one, nn.LayerNorm | nn.GroupNorm | nn.BatchNorm2d)).eps = 1e-2
    return batch


def no_bias(name: str) -> Callable[[nn.Module, Any], Any]:
    def edit(model: nn.Module, batch: Any) -> Any:
        model.get_submodule(name).bias = None
        return batch

    return edit


def shifted_tokens(model: nn.Module, batch: Any) -> Any:
    model.get_submodule("tokens").register_forward_pre_hook(lambda _, args: ((args[0] + 1) % 32,))
    return batch


def wrong_mask(model: nn.Module, batch: Any) -> Any:
    model.mask.copy_(torch.ones(24, 24, dtype=torch.bool).triu(2))
    return batch


def other_gelu(model: nn.Module, batch: Any) -> Any:
    from fault_models import Block

    class Other(Block):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            old, F.gelu = F.gelu, lambda one: old(one, approximate="tanh")
            try:
                return super().forward(x, mask)
            finally:
                F.gelu = old

    model.blocks[1].__class__ = Other
    return batch


def dropped_residual(model: nn.Module, batch: Any) -> Any:
    from fault_models import Block

    class Other(Block):
        def forward(self, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
            return self.down(F.gelu(self.up(self.norm2(x))))

    model.blocks[1].__class__ = Other
    return batch


def other_batch(_: nn.Module, batch: Any) -> Any:
    return batch.roll(1, 1) if isinstance(batch, torch.Tensor) else (batch[0].flip(0), *batch[1:])


def stale_buffer(model: nn.Module, batch: Any) -> Any:
    with torch.no_grad():
        next(one for one in model.modules() if isinstance(one, nn.Conv2d | nn.Linear)).weight.mul_(1.01)
    return batch


def optimizer_beta(_: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.param_groups[0]["betas"] = (0.8, 0.999)


def learning_rate(_: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.param_groups[0]["lr"] *= 1.01


FAULTS = (
    Fault("softmax 1 % noise", "gpt", "_softmax", 1, noisy(0.01)),
    Fault("layer norm eps", "gpt", edit=wrong_eps, expected=("native_layer_norm",), module="blocks.0.norm1"),
    Fault("linear 0.3 % too large", "gpt", "addmm", 4, scaled(1.003)),
    Fault("linear in bfloat16", "gpt", "addmm", 5, as_bfloat16),
    Fault("gelu by tanh", "gpt", edit=other_gelu, expected=("gelu",), module="blocks.1"),
    Fault("one wrong element", "gpt", "bmm", 2, element(3.0)),
    Fault("one NaN", "gpt", "gelu", 2, element(float("nan"), add=False)),
    Fault("embedding off by one", "gpt", edit=shifted_tokens, expected=("add", "remainder", "embedding")),
    Fault("missing bias", "gpt", edit=no_bias("blocks.1.up"), expected=("mm", "addmm"), module="blocks.1.up"),
    Fault("doubled gradient", "gpt", "gelu_backward", 1, scaled(2.0)),
    Fault("stale memory", "gpt", "_softmax_backward_data", 1, stale),
    Fault("wrong mask", "gpt", edit=wrong_mask, expected=("masked_fill",)),
    Fault(
        "dropped residual",
        "gpt",
        edit=dropped_residual,
        expected=("native_layer_norm", "addmm", "mul", "bmm", "div", "clone", "add"),
    ),
    Fault("optimizer's beta", "gpt", after=optimizer_beta, expected=("lerp_", "mul_", "addcmul_")),
    Fault("another learning rate", "gpt", after=learning_rate, expected=("mul_", "addcdiv_")),
    Fault("another batch", "gpt", edit=other_batch, expected=("embedding",)),
    Fault("weights changed", "gpt", edit=stale_buffer, expected=("addmm",)),
    Fault("weight gradient 1 % noise", "gpt", "mm", 3, noisy(0.01)),
    Fault("convolution 1 % noise", "cnn", "convolution", 1, noisy(0.01)),
    Fault("convolution 0.3 % too large", "cnn", "convolution", 2, scaled(1.003)),
    Fault("convolution in bfloat16", "cnn", "convolution", 0, as_bfloat16),
    Fault("batch norm eps", "cnn", edit=wrong_eps, expected=("native_batch_norm", "_native_batch_norm_legit")),
    Fault("one wrong element of a gradient", "cnn", "threshold_backward", 1, element(0.5)),
    Fault("batch norm doubled", "cnn", "native_batch_norm", 1, scaled(2.0)),
    Fault("missing bias of the head", "cnn", edit=no_bias("head"), expected=("mm", "addmm"), module="head"),
    Fault("another order of images", "cnn", edit=other_batch, expected=("convolution",)),
    Fault("sigmoid 1 % noise", "lstm", "sigmoid_", 4, noisy(0.01)),
    Fault("tanh in bfloat16", "lstm", "tanh", 3, as_bfloat16),
    Fault("gates 0.3 % too large", "lstm", "addmm", 6, scaled(1.003)),
    Fault("one NaN in a cell", "lstm", "tanh", 2, element(float("nan"), add=False)),
    Fault("tokens off by one", "lstm", edit=shifted_tokens, expected=("add", "remainder", "embedding")),
    Fault("tanh's gradient doubled", "lstm", "tanh_backward", 2, scaled(2.0)),
    Fault("log softmax 1 % noise", "lstm", "_log_softmax", 2, noisy(0.01)),
    Fault("group norm eps", "unet", edit=wrong_eps, expected=("native_group_norm",), module="norm1"),
    Fault("silu 1 % noise", "unet", "silu", 1, noisy(0.01)),
    Fault("transposed convolution 0.3 %", "unet", "convolution", 3, scaled(1.003)),
    Fault("one wrong element of an image", "unet", "cat", 1, element(2.0)),
    Fault("convolution's gradient 1 % noise", "unet", "convolution_backward", 1, noisy(0.01)),
    Fault("mean square error stale", "unet", "mse_loss_backward", 0, stale),
    Fault("missing bias of a convolution", "unet", edit=no_bias("middle"), expected=("convolution",), module="middle"),
)


def prepared(model_name: str, fault: Fault | None) -> tuple[nn.Module, Any, torch.optim.Optimizer]:
    """A model, a batch and an optimizer with a state, spoilt by a fault of the program."""
    case = {**CASES, **HELD_OUT_CASES}[model_name]
    torch.manual_seed(0)
    model, batch = case.model(), case.batch()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    with torch.no_grad():  # a moment of training, so that the optimizer has a state
        for parameter in model.parameters():
            optimizer.state[parameter] = {
                "step": torch.tensor(3.0),
                "exp_avg": 0.01 * torch.randn(parameter.shape),
                "exp_avg_sq": 1e-4 * torch.rand(parameter.shape),
            }
    if fault is not None and fault.edit is not None:
        batch = fault.edit(model, batch)
    if fault is not None and fault.after is not None:
        fault.after(model, optimizer)
    return model, batch, optimizer


def step_of(model_name: str, noise: float, seed: int, fault: Fault | None = None) -> Step:
    """One recorded step of a model on a device with noise, and with a fault or none."""
    return step_and_digest(model_name, noise, seed, fault)[0]


def step_and_digest(model_name: str, noise: float, seed: int, fault: Fault | None = None) -> tuple[Step, str]:
    """The same with the digest of the trained model."""
    model, batch, optimizer = prepared(model_name, fault)
    recorder = Recorder()
    with Device(noise, seed, fault), recorder.following():
        model(batch).backward()
        recorder.optimizer_begins()
        optimizer.step()
        recorder.optimizer_ended(optimizer)
    return recorder.take(0, 0), digest_of(model)


def digest_of(model: nn.Module) -> str:
    """Tells whether two steps computed the same: a hash of the bits of all parameters and their gradients."""
    found = hashlib.sha256()
    for parameter in model.parameters():
        for one in (parameter.detach(), parameter.grad):
            found.update(b"" if one is None else one.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def is_right(fault: Fault, operator: str, module: str) -> bool:
    """Whether the operator and module of a suspect are those of the fault."""
    short = operator.removeprefix("aten.").rpartition(".")[0]
    allowed = fault.expected or (fault.operator,)
    return short in allowed and (not fault.module or module == fault.module)
