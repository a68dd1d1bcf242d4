"""How a reference kernel reaches the dispatcher.

A kernel is a plain function of *CPU* tensors. `kernel("npu::npu_swiglu")` puts it in a table; `registered()` returns
the table, and `on_npu` turns such a function into what the dispatcher calls: every npu tensor is lent to the function
as a CPU tensor over the same memory, and what comes back is handed over to the npu device. So kernels can be read,
tested and debugged without any device, and cannot call themselves.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from npuport.sim.recorder.references import observed
from npuport.sim.refusals import guarded
from npuport.sim.saturation import saturate, saturates

Function = TypeVar("Function", bound=Callable[..., Any])

_HOST = torch.device("cpu")
FORWARD = "PrivateUse1"
AUTOGRAD = "AutogradPrivateUse1"


@dataclass(frozen=True)
class Kernel:
    """One function for one operator at one dispatch key.

    lend: it wants CPU tensors (a reference kernel); otherwise it gets the npu tensors themselves.
    mixed: CPU tensors are legitimate arguments beside npu tensors (packed sequences keep their lengths on the host).
    """

    operator: str
    key: str
    function: Callable[..., Any]
    lend: bool = True
    mixed: bool = False

    def callable(self) -> Callable[..., Any]:
        """What the dispatcher calls."""
        lent = guarded(self.operator, self.function)
        function = on_npu(lent, mixed=self.mixed) if self.lend else self.function
        return observed(self.operator, function, nested=not self.lend)


_kernels: dict[tuple[str, str], Kernel] = {}
_running = threading.local()


def kernel(
    *operators: str, keys: tuple[str, ...] = (FORWARD,), lend: bool = True, mixed: bool = False
) -> Callable[[Function], Function]:
    """Offer the decorated function as the kernel of `operators` (`namespace::name` or `namespace::name.overload`) at
    `keys`.

    `lend` and `mixed` as in `Kernel`. Raises ValueError when an operator gets a second function for the same key.
    """

    def offer(function: Function) -> Function:
        for operator in operators:
            for key in keys:
                if (operator, key) in _kernels:
                    raise ValueError(f"{operator} has two reference kernels for {key}; remove one of them")
                _kernels[operator, key] = Kernel(operator, key, function, lend, mixed)
        return function

    return offer


def registered() -> tuple[Kernel, ...]:
    """All kernels offered so far (import the modules of this package first)."""
    return tuple(_kernels.values())


def device_of_call() -> torch.device:
    """The npu device whose tensors were lent to the running kernel; the CPU outside of a call."""
    device: torch.device = getattr(_running, "device", _HOST)
    return device


def lent(tensor: torch.Tensor) -> torch.Tensor:
    """The npu tensor that was lent to the running kernel as `tensor`; any other tensor is returned as it is."""
    owners: dict[int, tuple[torch.Tensor, torch.Tensor]] = getattr(_running, "owners", {})
    found = owners.get(id(tensor))
    return tensor if found is None else found[1]


def cpu_view(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the memory of an npu tensor (on the simulated NPU, device memory is host memory)."""
    view: torch.Tensor = torch.ops.npuport_sim.alias(tensor)
    return view


def to_npu(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A new npu tensor with the values, shape and (dense) strides of a CPU tensor."""
    source = tensor.resolve_conj().resolve_neg() if tensor.is_complex() else tensor
    placed = torch.empty_like(source, device=device)
    cpu_view(placed).copy_(source)
    return placed


class _Loan:
    """What one call lends to its kernel: which npu tensor stands behind which CPU tensor, and on which device
    results belong.
    """

    __slots__ = ("device", "elsewhere", "owners")

    def __init__(self) -> None:
        self.device: torch.device | None = None
        self.elsewhere: torch.device | None = None  # of a tensor that is not a scalar
        self.owners: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def lend(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type != "npu":
                self.elsewhere = value.device if value.dim() > 0 else self.elsewhere
                return value
            self.device = self.device or value.device
            if value.device != self.device:
                self.elsewhere = value.device
            view = cpu_view(value)
            self.owners[id(view)] = (view, value)
            return view
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            return [self.lend(item) for item in value]
        return value

    def hand_back(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            owned = self.owners.get(id(value))
            if owned is not None:
                return owned[1]
            return value if self.device is None or value.device.type != "cpu" else to_npu(value, self.device)
        if isinstance(value, StaysOnHost):
            return value.tensor
        if isinstance(value, (list, tuple)):
            return type(value)(self.hand_back(item) for item in value)
        return value


@dataclass(frozen=True)
class StaysOnHost:
    """Wrap a result that the operator returns on the CPU."""

    tensor: torch.Tensor


def on_npu(function: Callable[..., Any], *, mixed: bool = False) -> Callable[..., Any]:
    """The function as the dispatcher calls it: npu tensors in, npu tensors out.

    As on the real device, a tensor of another device, or of the CPU and no scalar, is a RuntimeError unless `mixed`.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        loan = _Loan()
        positional = [loan.lend(a) for a in args]
        named = {name: loan.lend(v) for name, v in kwargs.items()}
        if loan.elsewhere and loan.device and not mixed:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{loan.device} and {loan.elsewhere}!"
            )
        outer = device_of_call(), getattr(_running, "owners", {})
        _running.device, _running.owners = loan.device or _HOST, loan.owners
        try:
            result = function(*positional, **named)
            if saturates():
                saturate(result, loan.device)
            return loan.hand_back(result)
        finally:
            _running.device, _running.owners = outer

    return call
