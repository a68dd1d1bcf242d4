"""Both sides of a claim as functions, their inputs, and what they give: results and gradients."""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_WIDENED = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}


class Refusal(Exception):
    """A side cannot be run on these inputs: an operator does not take them."""


@dataclass(frozen=True)
class Body:
    """One side of a claim, as a function of its inputs by name."""

    function: Callable[..., Any]

    @classmethod
    def of(cls, inputs: Sequence[dict[str, str]], text: str) -> Body:
        """The function with this body.

        Raises:
            SyntaxError: the text is no body of a function.
        """
        import torch_npu

        names: dict[str, Any] = {"torch": torch, "torch_npu": torch_npu, "math": math}
        names |= {name: importlib.import_module(name) for name in ("einops", "numpy") if f"{name}." in text}
        header = f"def side({', '.join(one['name'] for one in inputs)}):\n"
        exec(compile(header + textwrap.indent(text, "    "), "<claim>", "exec"), names)
        return cls(names["side"])


@dataclass(frozen=True)
class Given:
    """The inputs of one case: tensors on the CPU, and plain numbers."""

    values: dict[str, Any]
    case: str
    dtype: torch.dtype

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def eps(self) -> float:
        return float(torch.finfo(self.dtype).eps)

    def exact(self) -> dict[str, Any]:
        """The same numbers in float64."""
        return {name: _fresh(value, dtype=torch.float64) for name, value in self.values.items()}

    def on_device(self) -> dict[str, Any]:
        return {name: _fresh(value, device="npu") for name, value in self.values.items()}


def given(
    inputs: Sequence[dict[str, str]], case: str, dtype: torch.dtype, seed: int, wide_parameters: bool = False
) -> Given:
    """The inputs of a case; ``wide_parameters`` makes all tensors but the first float32."""
    source = torch.Generator().manual_seed(seed)
    numbers = eval(f"dict({case})")
    made = 0

    def tensor(*sizes: int, scale: float = 1.0) -> Tensor:
        nonlocal made
        made += 1
        kind = torch.float32 if wide_parameters and made > 1 else dtype
        return (torch.randn(sizes, generator=source) * scale).to(kind).requires_grad_()

    def mask(*sizes: int) -> Tensor:
        drawn = torch.rand(sizes, generator=source) < 0.3
        return drawn & ~drawn.all(-1, keepdim=True)

    def whole(*sizes: int, high: int) -> Tensor:
        return torch.randint(high, sizes, generator=source)

    names = {"torch": torch, "math": math, "tensor": tensor, "mask": mask, "whole": whole, **numbers}
    values = {one["name"]: eval(one["value"], dict(names)) for one in inputs}
    return Given(values, case, dtype)


def outputs(body: Body, values: dict[str, Any], exact: bool = False) -> dict[str, Tensor]:
    """The results and the gradients of one side, by what they are, on the CPU.

    Raises:
        Refusal: an operator does not take the inputs.
    """
    try:
        if exact:
            with _InDouble():
                results = body.function(**values)
        else:
            results = body.function(**values)
        listed = [results] if isinstance(results, Tensor) else list(results)
        differentiable = [one for one in listed if one.requires_grad]
        if differentiable:
            torch.autograd.backward(differentiable, [_gradient(one) for one in differentiable])
    except (RuntimeError, ValueError, IndexError, NotImplementedError) as error:
        raise Refusal(str(error)) from error
    found = {f"result {number}" if number else "the result": one for number, one in enumerate(listed)}
    for name, value in values.items():
        if isinstance(value, Tensor) and value.requires_grad:
            grad = value.grad if value.grad is not None else torch.zeros_like(value)
            found[f"the gradient of {name}"] = grad
    return {name: one.detach().cpu() for name, one in found.items()}


def _gradient(result: Tensor) -> Tensor:
    """Some gradient of a result, the same for every side."""
    drawn = torch.randn(result.shape, generator=torch.Generator().manual_seed(result.numel()))
    # Rounded to what every dtype holds, so that all sides get the same numbers.
    return drawn.to(torch.bfloat16).to(result.device, result.dtype)


def _fresh(value: Any, **where: Any) -> Any:
    """A leaf of its own with the numbers of ``value``; what is no floating tensor keeps its dtype."""
    if not isinstance(value, Tensor):
        return value
    if not value.is_floating_point():
        where = {key: one for key, one in where.items() if key != "dtype"}
    return value.detach().clone().to(**where).requires_grad_(value.requires_grad)


class _InDouble(TorchFunctionMode):
    """Casts to a floating dtype give float64: what rounding does to the original is no part of the truth."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _WIDENED:
            return args[0].double()
        widened = [_double(one) for one in args]
        return func(*widened, **{key: _double(value) for key, value in (kwargs or {}).items()})


def _double(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value
