"""``amp_C``, Apex's kernels over lists of tensors, on an NPU."""

from __future__ import annotations

from npuport.runtime.multi_tensor import (
    multi_tensor_adagrad,
    multi_tensor_adam,
    multi_tensor_axpby,
    multi_tensor_l2norm,
    multi_tensor_lamb,
    multi_tensor_novograd,
    multi_tensor_scale,
    multi_tensor_sgd,
)

__all__ = [
    "multi_tensor_adagrad",
    "multi_tensor_adam",
    "multi_tensor_axpby",
    "multi_tensor_l2norm",
    "multi_tensor_lamb",
    "multi_tensor_novograd",
    "multi_tensor_scale",
    "multi_tensor_sgd",
]
