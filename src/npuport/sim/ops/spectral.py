"""Fourier transforms: the backward operators of torch_npu's derivatives (op_plugin/config/derivatives.yaml).

Both transforms are linear, so the gradient is the transform's adjoint, taken by autograd at zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


@kernel("npu::fft_r2c_backward")
def fft_r2c_backward(
    grad: Tensor, dim: Sequence[int], normalization: int, onesided: bool, last_dim_size: int
) -> Tensor | None:
    """Gradient of the real-to-complex transform: real, `last_dim_size` long in the last of `dim`."""
    shape = list(grad.shape)
    shape[dim[-1]] = last_dim_size
    origin = torch.zeros(shape, dtype=grad.real.dtype)

    def forward(x: Tensor) -> Tensor:
        found: Tensor = torch.ops.aten._fft_r2c(x, list(dim), normalization, onesided)
        return found

    return vector_jacobian(forward, (origin,), (grad,))[0]


@kernel("npu::fft_c2r_backward")
def fft_c2r_backward(grad: Tensor, dim: Sequence[int], normalization: int) -> Tensor | None:
    """Gradient of the complex-to-real transform: complex, half as long (plus one) in the last of `dim`."""
    length = grad.size(dim[-1])
    shape = list(grad.shape)
    shape[dim[-1]] = length // 2 + 1
    origin = torch.zeros(shape, dtype=torch.promote_types(grad.dtype, torch.complex64))

    def forward(x: Tensor) -> Tensor:
        found: Tensor = torch.ops.aten._fft_c2r(x, list(dim), normalization, length)
        return found

    return vector_jacobian(forward, (origin,), (grad,))[0]


@kernel("npu::stft_backward")
def stft_backward(
    grad_output: Tensor,
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor | None:
    """Gradient of torch.stft for its input; padding by `center` happens before the operator."""

    def forward(x: Tensor) -> Tensor:
        return torch.stft(
            x, n_fft, hop_length, win_length, window, False, "reflect", normalized, onesided, return_complex
        )

    if not grad_output.numel():
        raise NoReferenceError("npu::stft_backward", "an empty gradient")
    return vector_jacobian(forward, (input,), (grad_output,))[0]
