"""Layer, group and root-mean-square normalisation.

Formulas and result dtypes: Ascend/op-plugin docs/zh/custom_APIs/torch_npu and op_plugin/ops (RmsNormKernelOpApi.cpp,
AddLayerNormKernelNpuOpApi.cpp, …), checked against the golden functions of op-plugin's tests. Statistics are float32;
dgamma and dbeta are float32 as the device returns them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel


def _normalised_dims(gamma: Tensor) -> list[int]:
    return list(range(-gamma.dim(), 0))


def rms_statistics(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    """1 / sqrt(mean(x²) + epsilon) over the dimensions of gamma, float32, those dimensions kept as 1."""
    return torch.rsqrt(wide(x).square().mean(dim=_normalised_dims(gamma), keepdim=True) + epsilon)


@kernel("npu::npu_rms_norm")
def npu_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """(x·rstd·gamma in the dtype of the input, rstd) (torch_npu-npu_rms_norm.md)."""
    rstd = rms_statistics(input, gamma, epsilon)
    return (wide(input) * rstd * wide(gamma)).to(input.dtype), rstd


@kernel("npu::npu_rms_norm_backward")
def npu_rms_norm_backward(dy: Tensor, input: Tensor, gamma: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """(dx, dgamma float32)."""
    x, grad = wide(input), wide(dy)
    scaled = grad * wide(gamma)
    inner = (scaled * x).mean(dim=_normalised_dims(gamma), keepdim=True)
    dx = rstd * scaled - x * rstd.pow(3) * inner
    return dx.to(input.dtype), (grad * x * rstd).sum_to_size(gamma.shape)


@kernel("npu::npu_gemma_rms_norm")
def npu_gemma_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """As npu_rms_norm with 1 + gamma (op-plugin test_npu_gemma_rms_norm.py)."""
    rstd = rms_statistics(input, gamma, epsilon)
    return (wide(input) * rstd * (1 + wide(gamma))).to(input.dtype), rstd


@kernel("npu::npu_add_rms_norm")
def npu_add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:
    """(rms_norm(x1 + x2), rstd, x1 + x2), the sum rounded to the dtype first (golden function of op-plugin's
    test_npu_add_rms_norm.py).
    """
    total = x1 + x2
    y, rstd = npu_rms_norm(total, gamma, epsilon)
    return y, rstd, total


@kernel("npu::npu_add_rms_norm_cast")
def npu_add_rms_norm_cast(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(y float32, y, rstd, x1 + x2) (op-plugin test_npu_add_rms_norm_cast.py)."""
    total = x1 + x2
    rstd = rms_statistics(total, gamma, epsilon)
    y = wide(total) * rstd * wide(gamma)
    return y, y.to(x1.dtype), rstd, total


@kernel("npu::npu_add_rms_norm_v2_functional")
def npu_add_rms_norm_v2_functional(
    x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """(rstd, y, x1 + x2) (op-plugin test_npu_add_rms_norm_v2.py)."""
    y, rstd, total = npu_add_rms_norm(x1, x2, gamma, epsilon)
    return rstd, y, total


@kernel("npu::npu_add_rms_norm_v2")
def npu_add_rms_norm_v2(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Tensor:
    """Writes y into x1 and x1 + x2 into x2; returns rstd."""
    y, rstd, total = npu_add_rms_norm(x1, x2, gamma, epsilon)
    x1.copy_(y)
    x2.copy_(total)
    return rstd


@kernel("npu::npu_layer_norm_eval")
def npu_layer_norm_eval(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """F.layer_norm without gradient (torch_npu-npu_layer_norm_eval.md)."""
    return functional.layer_norm(input, list(normalized_shape), weight, bias, eps)


@kernel("npu::npu_add_layer_norm")
def npu_add_layer_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5, additional_output: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(layer_norm(x1 + x2), mean, rstd, x1 + x2); statistics float32 (AddLayerNormKernelNpuOpApi.cpp)."""
    dtype = x1.dtype if x1.dtype == x2.dtype else torch.float32
    total = wide(x1) + wide(x2)
    y, mean, rstd = _layer_norm(total, gamma, beta, epsilon)
    return y.to(dtype), mean, rstd, total.to(dtype)


def _layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, rstd = torch.native_layer_norm(x, list(gamma.shape), wide(gamma), wide(beta), epsilon)
    return y, mean, rstd


def _layer_norm_backward(
    grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(dx, dgamma, dbeta), float32."""
    dx, dgamma, dbeta = torch.ops.aten.native_layer_norm_backward(
        wide(grad),
        x,
        list(gamma.shape),
        mean,
        rstd,
        wide(gamma),
        torch.zeros_like(wide(gamma)),
        [True] * 3,
    )
    return dx, dgamma, dbeta


@kernel("npu::npu_layernorm_grad")
def npu_layernorm_grad(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """(dx, dweight, dbias): native_layer_norm_backward with everything wanted (LayerNormBackwardKernelNpu.cpp)."""
    shape = list(normalized_shape)
    gamma = torch.ones(shape, dtype=input.dtype) if weight is None else weight.view(shape)
    kept = [*input.shape[: input.dim() - len(shape)], *[1] * len(shape)]
    dx, dgamma, dbeta = _layer_norm_backward(
        grad_out, wide(input), wide(mean).reshape(kept), wide(rstd).reshape(kept), gamma
    )
    return dx.to(input.dtype), dgamma, dbeta


@kernel("npu::npu_add_layer_norm_backward")
def npu_add_layer_norm_backward(
    dy_opt: Tensor | None,
    x1: Tensor,
    x2: Tensor,
    rstd: Tensor,
    mean: Tensor,
    gamma: Tensor,
    dsum_opt: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(dx1, dx2, dgamma, dbeta); dsum is the gradient of the fourth forward result, x1 + x2."""
    total = wide(x1) + wide(x2)
    grad = torch.zeros_like(total) if dy_opt is None else dy_opt
    dx, dgamma, dbeta = _layer_norm_backward(grad, total, mean, rstd, gamma)
    if dsum_opt is not None:
        dx = dx + wide(dsum_opt)
    return dx.to(x1.dtype), dx.to(x2.dtype).clone(), dgamma, dbeta


@kernel("npu::npu_deep_norm")
def npu_deep_norm(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: float = 0.3, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    """(mean, rstd, layer_norm(alpha·x + gx)) (DeepNormKernelOpApi.cpp, test_npu_deep_norm.py)."""
    y, mean, rstd = _layer_norm(alpha * wide(x) + wide(gx), gamma, beta, epsilon)
    return mean, rstd, y.to(x.dtype)


@kernel("npu::npu_deep_norm_backward")
def npu_deep_norm_backward(
    dy: Tensor, x: Tensor, gx: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor, alpha: float = 0.3
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(dx, dgx, dbeta, dgamma)."""
    dx, dgamma, dbeta = _layer_norm_backward(dy, alpha * wide(x) + wide(gx), mean, rstd, gamma)
    return (alpha * dx).to(x.dtype), dx.to(gx.dtype), dbeta, dgamma


def _group_norm(
    input: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    batch, channels = input.shape[:2]
    size = input[0, 0].numel()
    out, mean, rstd = torch.native_group_norm(input, weight, bias, batch, channels, size, groups, eps)
    return out, mean, rstd


@kernel("npu::npu_group_norm_silu")
def npu_group_norm_silu(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, group: int, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """(silu(group_norm(x)), mean, rstd) (torch_npu-npu_group_norm_silu.md)."""
    out, mean, rstd = _group_norm(input.contiguous(), group, weight, bias, eps)
    return functional.silu(out), mean, rstd


@kernel("npu::npu_group_norm_swish")
def npu_group_norm_swish(
    input: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    eps: float | None = 1e-5,
    swish_scale: float | None = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(y·sigmoid(swish_scale·y) with y = group_norm(x), mean, rstd) (torch_npu-npu_group_norm_swish.md)."""
    out, mean, rstd = _group_norm(input.contiguous(), num_groups, weight, bias, 1e-5 if eps is None else eps)
    scale = 1.0 if swish_scale is None else swish_scale
    return out * torch.sigmoid(scale * out), mean, rstd


@kernel("npu::npu_group_norm_swish_grad")
def npu_group_norm_swish_grad(
    grad: Tensor,
    input: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    rstd: Tensor,
    grad_input_mask: Sequence[bool],
    swish_scale: float | None = 1.0,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """(dx, dweight, dbias). Uses the saved statistics, since the operator does not get the forward's eps."""
    scale = 1.0 if swish_scale is None else swish_scale
    batch, channels = input.shape[:2]
    shape = [1, channels] + [1] * (input.dim() - 2)

    def forward(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        grouped = wide(x.reshape(batch, num_groups, -1))
        centred = grouped - grouped.mean(dim=-1, keepdim=True)
        # rstd = (var + eps)^-½; eps follows from the saved rstd, so that its derivative is the forward's.
        eps = wide(rstd).reshape(batch, num_groups, 1).pow(-2) - centred.detach().square().mean(dim=-1, keepdim=True)
        normal = centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + eps)
        out = normal.reshape(x.shape) * wide(w).view(shape) + wide(b).view(shape)
        return out * torch.sigmoid(scale * out)

    found = vector_jacobian(forward, (input, weight, bias), (wide(grad),))
    dx, dweight, dbias = (gradient if wanted else None for gradient, wanted in zip(found, grad_input_mask, strict=True))
    return dx, dweight, dbias


@kernel("npu::npu_normalize_batch")
def npu_normalize_batch(self: Tensor, seq_len: Tensor, normalize_type: int = 0) -> Tensor:
    """Sequences [B, C, T] by mean and (unbiased) deviation + 1e-5 of their first seq_len[b] steps, for each feature
    (type 0) or over all (type 1) (golden function of op-plugin's test_normalize_batch.py).
    """
    if seq_len.dim() != 1 or seq_len.size(0) != self.size(0):
        raise RuntimeError("seq_len's length should be equal self' num")
    if normalize_type not in (0, 1):
        raise RuntimeError(f"normalize_type expected to be in range [0, 1], but got {normalize_type}")
    dims = (1,) if normalize_type == 0 else (0, 1)
    rows = []
    for row, length in zip(wide(self), seq_len.tolist(), strict=True):
        known = row[:, :length]
        rows.append((row - known.mean(dim=dims, keepdim=True)) / (known.std(dim=dims, keepdim=True) + 1e-5))
    return torch.stack(rows).to(self.dtype)
