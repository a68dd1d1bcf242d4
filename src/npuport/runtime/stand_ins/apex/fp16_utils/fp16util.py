"""Models in half precision with batch norm in float32, and their master weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.utils import clip_grad_norm_ as clip_grad_norm

__all__ = ["clip_grad_norm"]

_BatchNorm = nn.modules.batchnorm._BatchNorm


class tofp16(nn.Module):
    """Casts its input to float16."""

    def forward(self, input: Tensor) -> Tensor:
        return input.half()


def convert_module(module: nn.Module, dtype: torch.dtype) -> None:
    """Cast the parameters and buffers of this module alone, those with a fraction, in place."""
    for tensor in [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(dtype)
            if tensor.grad is not None:
                tensor.grad.data = tensor.grad.data.to(dtype)


def convert_network(network: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Cast all modules but batch norms with parameters, in place."""
    for module in network.modules():
        if isinstance(module, _BatchNorm) and module.affine:
            continue
        convert_module(module, dtype)
        if isinstance(module, nn.RNNBase):
            module.flatten_parameters()
    return network


def BN_convert_float(module: nn.Module) -> nn.Module:
    """Batch norms with parameters back to float32, in place."""
    for child in module.modules():
        if isinstance(child, _BatchNorm) and child.affine:
            child.float()
    return module


def network_to_half(network: nn.Module) -> nn.Module:
    """The network in float16 with batch norm in float32, behind a cast of its input."""
    return nn.Sequential(tofp16(), BN_convert_float(network.half()))


class FP16Model(nn.Module):
    """A network in float16 with batch norm in float32, which casts its inputs."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = convert_network(network, torch.float16)

    def forward(self, *inputs: Tensor) -> Any:
        return self.network(*(each.half() for each in inputs))


def prep_param_lists(
    model: nn.Module,
    flat_master: bool = False,
) -> tuple[list[Any], list[Any]]:
    """The trained parameters, and float32 copies of them, flattened into one where ``flat_master``."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if flat_master:
        masters = [nn.Parameter(_flatten_dense_tensors([each.data for each in parameters]).float())]
    else:
        masters = [nn.Parameter(each.detach().clone().float()) for each in parameters]
    for master in masters:
        if flat_master:
            master.grad = torch.zeros_like(master)
    return parameters, masters


@torch.no_grad()
def model_grads_to_master_grads(
    model_params: list[Any],
    master_params: list[Any],
    flat_master: bool = False,
) -> None:
    """The gradients of the parameters become those of the master weights, as float32."""
    if flat_master:
        master_params[0].grad.copy_(_flatten_dense_tensors([each.grad for each in model_params]))
        return
    for model, master in zip(model_params, master_params, strict=True):
        master.grad = None if model.grad is None else model.grad.to(master.dtype, copy=True)


@torch.no_grad()
def master_params_to_model_params(
    model_params: list[Any],
    master_params: list[Any],
    flat_master: bool = False,
) -> None:
    """The master weights go into the parameters."""
    values = _unflatten_dense_tensors(master_params[0], model_params) if flat_master else master_params
    for model, master in zip(model_params, values, strict=True):
        model.copy_(master)


def to_python_float(t: Any) -> Any:
    """A tensor's only number."""
    return t.item() if hasattr(t, "item") else t[0]
