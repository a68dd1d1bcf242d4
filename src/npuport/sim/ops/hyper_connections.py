"""Manifold-constrained hyper-connections: n residual streams around a layer, mixed by learned matrices.

Pages: torch_npu-npu_mhc_{pre,sinkhorn,post}.md of Ascend/op-plugin; its tests' golden functions give the order of the
indices. Shapes: x is [..., n, D] with one or two leading dimensions. All is computed in float32 at least.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel

_PADDED_COLUMNS = 8


def _post(x: Tensor, h_res: Tensor | None, h_out: Tensor, h_post: Tensor) -> Tensor:
    """h_resᵀ·x + h_post ⊗ h_out; without h_res the streams stay where they are."""
    mixed = x if h_res is None else h_res.mT @ x
    return mixed + h_post.unsqueeze(-1) * h_out.unsqueeze(-2)


@kernel("npu::npu_mhc_post")
def npu_mhc_post(x: Tensor, h_res: Tensor | None, h_out: Tensor, h_post: Tensor) -> Tensor:
    """The next layer's streams [..., n, D] from x, h_res [..., n, n], h_out [..., D] and h_post [..., n]."""
    return _post(wide(x), None if h_res is None else wide(h_res), wide(h_out), wide(h_post)).to(x.dtype)


@kernel("npu::npu_mhc_post_backward")
def npu_mhc_post_backward(
    grad_y: Tensor, x: Tensor, h_res: Tensor | None, h_out: Tensor, h_post: Tensor
) -> tuple[Tensor | None, ...]:
    """(dx, dh_res, dh_out, dh_post); dh_res is 0 without h_res."""
    _check_post(grad_y, x, h_res, h_post)
    leaves = x, h_res, h_out, h_post
    found = vector_jacobian(_post, [None if t is None else wide(t) for t in leaves], (wide(grad_y),))
    dx, dres, dout, dpost = (
        None if f is None or t is None else f.to(t.dtype) for f, t in zip(found, leaves, strict=True)
    )
    return dx, h_post.new_zeros(*h_post.shape, x.size(-2)) if dres is None else dres, dout, dpost


def _check_post(grad_y: Tensor, x: Tensor, h_res: Tensor | None, h_post: Tensor) -> None:
    """The checks of MhcPostBackwardNpuOpApi.cpp, but for float64, in which gradients are checked."""
    if x.dtype == torch.float32:
        raise RuntimeError("x dtype must be FLOAT16 or BFLOAT16, but got Float")
    if h_post.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"h_post dtype must be FLOAT32, but got {h_post.dtype}")
    if x.dim() not in (3, 4):
        raise RuntimeError(f"x dim must be 3 or 4, but got {x.dim()}")
    if grad_y.shape != x.shape:
        raise RuntimeError("grad_y shape must be the same as x shape.")
    square = [*x.shape[:-1], x.size(-2)]
    if h_res is not None and list(h_res.shape) != square:
        raise RuntimeError(f"h_res shape must be {square}, but got {list(h_res.shape)}")


def _hf32(tensor: Tensor) -> Tensor:
    """float32 rounded to HF32, which has 10 bits of mantissa (golden function of op-plugin's test_npu_mhc_pre.py)."""
    bits = tensor.contiguous().view(torch.int32)
    return ((((bits >> 12) + 1) >> 1) << 13).view(torch.float32)


@kernel("npu::npu_mhc_pre")
def npu_mhc_pre(
    x: Tensor,
    phi: Tensor,
    alpha: Tensor,
    bias: Tensor,
    *,
    gamma: Tensor | None = None,
    norm_eps: float = 1e-6,
    hc_eps: float = 1e-6,
    out_flag: int = 0,
    inner_precise: int = 0,
) -> tuple[Tensor | None, ...]:
    """(h_in [..., D] in the dtype of x, h_post [..., n], h_res [..., n, n], then with `out_flag` inv_rms [...], h_mix
    [..., n² + 2n] and h_pre [..., n], otherwise None) for phi [n² + 2n, n·D] and alpha [3].

    With alpha [2] and phi [2n, n·D] h_res is a single 0. `inner_precise` 1 multiplies in HF32.
    """
    if alpha.numel() not in (2, 3):
        raise RuntimeError(f"npu_mhc_pre: alpha must have 2 or 3 elements, but got {alpha.numel()}")
    if out_flag not in (0, 1) or inner_precise not in (0, 1):
        raise RuntimeError(f"Input out_flag and inner_precise must be 0 or 1, but got {out_flag} and {inner_precise}.")
    streams, count = wide(x), x.size(-2)
    flat = streams.flatten(-2)
    inv_rms = torch.rsqrt(flat.square().mean(dim=-1) + norm_eps)
    factors = flat if gamma is None else flat * wide(gamma).flatten(), wide(phi)
    left, right = (_hf32(factor) for factor in factors) if inner_precise else factors
    h_mix = left @ right.t()
    sizes = [count, count, count * count][: alpha.numel()]
    mapped = (h_mix * inv_rms.unsqueeze(-1)).split(sizes, dim=-1)
    logits = [a * part + b for a, part, b in zip(wide(alpha), mapped, wide(bias).split(sizes), strict=True)]
    h_pre, h_post = torch.sigmoid(logits[0]) + hc_eps, 2 * torch.sigmoid(logits[1])
    h_res = logits[2].unflatten(-1, (count, count)) if len(logits) > 2 else h_post.new_zeros(1)
    h_in = (h_pre.unsqueeze(-1) * streams).sum(dim=-2).to(x.dtype)
    return h_in, h_post, h_res, *((inv_rms, h_mix, h_pre) if out_flag else (None, None, None))


@kernel("npu::npu_mhc_pre_backward")
def npu_mhc_pre_backward(
    x: Tensor,
    phi: Tensor,
    alpha: Tensor,
    grad_h_in: Tensor | None,
    grad_h_post: Tensor | None,
    grad_h_res: Tensor | None,
    inv_rms: Tensor | None,
    h_mix: Tensor,
    h_pre: Tensor,
    h_post: Tensor,
    gamma: Tensor | None = None,
    hc_eps: float = 1e-6,
    grad_x_post: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    """(dx, dphi, dalpha, dbias, dgamma); `grad_x_post` is added to dx. As in torch_npu, a forward pass without
    `out_flag` leaves nothing to go back from.
    """
    if inv_rms is None or not inv_rms.numel():
        raise RuntimeError("Tensor inv_rms is empty.")
    streams, inputs = wide(x), wide(x).flatten(-2)
    count, inverse = x.size(-2), wide(inv_rms).unsqueeze(-1)
    sizes = [count, count, count * count]
    of_h_in = torch.zeros_like(streams[..., 0, :]) if grad_h_in is None else wide(grad_h_in)
    of_logits = _grad_of_logits(streams, of_h_in, grad_h_post, grad_h_res, wide(h_pre) - hc_eps, wide(h_post) / 2)
    normal = wide(h_mix) * inverse
    dalpha = torch.stack([part.sum() for part in (of_logits * normal).split(sizes, dim=-1)])
    of_normal = of_logits * torch.repeat_interleave(wide(alpha), torch.tensor(sizes))
    of_mix = of_normal * inverse
    scale = torch.ones_like(inputs) if gamma is None else wide(gamma).flatten().expand_as(inputs)
    of_scaled = of_mix @ wide(phi)
    of_inverse = (of_normal * wide(h_mix)).sum(dim=-1, keepdim=True)
    through_norm = of_scaled * scale - of_inverse * inverse.pow(3) * inputs / inputs.size(-1)
    dx = through_norm.view_as(streams) + wide(h_pre).unsqueeze(-1) * of_h_in.unsqueeze(-2)
    return (
        (dx if grad_x_post is None else dx + wide(grad_x_post)).to(x.dtype),
        of_mix.flatten(0, -2).t() @ (inputs * scale).flatten(0, -2),
        dalpha,
        of_logits.flatten(0, -2).sum(dim=0),
        _of_gamma(of_scaled * inputs, gamma, x),
    )


def _of_gamma(products: Tensor, gamma: Tensor | None, x: Tensor) -> Tensor:
    """[n, D], 0 without a gamma."""
    total = products.flatten(0, -2).sum(dim=0)
    return (torch.zeros_like(total) if gamma is None else total).view(x.shape[-2:])


def _grad_of_logits(
    x: Tensor,
    of_h_in: Tensor,
    of_h_post: Tensor | None,
    of_h_res: Tensor | None,
    pre_sigmoid: Tensor,
    post_sigmoid: Tensor,
) -> Tensor:
    """[..., n² + 2n]: the gradient before the sigmoids."""
    of_h_pre = (of_h_in.unsqueeze(-2) * x).sum(dim=-1)
    pre = of_h_pre * pre_sigmoid * (1 - pre_sigmoid)
    post = torch.zeros_like(pre) if of_h_post is None else wide(of_h_post) * 2 * post_sigmoid * (1 - post_sigmoid)
    res = pre.new_zeros(*pre.shape, pre.size(-1)) if of_h_res is None else wide(of_h_res)
    return torch.cat([pre, post, res.flatten(-2)], dim=-1)


def _sinkhorn(x: Tensor, eps: float, num_iters: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """(result, the 2·num_iters matrices on the way, the sums that divided them; the first sum is of no use)."""
    norms = [x.softmax(dim=-1)]
    current = norms[0] + eps
    sums = [torch.ones_like(current.sum(dim=-1))]
    for step in range(1, 2 * num_iters):
        total = current.sum(dim=-2 if step % 2 else -1, keepdim=True) + eps
        current = current / total
        norms.append(current)
        sums.append(total.flatten(-2))
    return current, norms, sums


@kernel("npu::npu_mhc_sinkhorn")
def npu_mhc_sinkhorn(
    x: Tensor, *, eps: float = 1e-6, num_iters: int = 20, out_flag: int = 0
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """A doubly stochastic matrix [..., n, n] by dividing through the sums of columns and rows in turn, and with
    `out_flag` the steps for the gradient, in the sizes but not the order of the device, otherwise None.
    """
    result, norms, sums = _sinkhorn(x, eps, num_iters)
    if not out_flag:
        return result, None, None
    missing = _PADDED_COLUMNS - x.size(-1)
    padded = [torch.nn.functional.pad(torch.stack(steps), (0, missing)).flatten() for steps in (norms, sums)]
    return result, padded[0], padded[1]


@kernel("npu::npu_mhc_sinkhorn_backward")
def npu_mhc_sinkhorn_backward(grad_y: Tensor, norm: Tensor, sum: Tensor) -> Tensor:
    """dx from the steps that npu_mhc_sinkhorn saved with `out_flag`."""
    streams = grad_y.size(-1)
    norms = norm.view(-1, *grad_y.shape[:-1], _PADDED_COLUMNS)[..., :streams]
    sums = sum.view(len(norms), *grad_y.shape[:-2], _PADDED_COLUMNS)[..., :streams]
    grad = grad_y
    for step in range(len(norms) - 1, 0, -1):
        dim = -2 if step % 2 else -1
        grad = (grad - (grad * norms[step]).sum(dim=dim, keepdim=True)) / sums[step].unsqueeze(dim)
    return norms[0] * (grad - (grad * norms[0]).sum(dim=-1, keepdim=True))
