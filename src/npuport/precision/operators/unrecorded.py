"""Operators below a dispatch mode compute, and are differentiated, as without one.

While a mode is asked about an operator, PyTorch excludes every dispatch key above Python
(``pythonFallback``, aten/src/ATen/core/PythonFallbackKernel.cpp), for the kernel too if the mode calls it. Most kernels
do not notice. But

- a kernel that makes a conjugate view and hands it on has it read as if it were not conjugated: the values of
  ``linalg.pinv`` and ``linalg.lstsq`` of complex matrices are wrong;
- an operator without an autograd kernel is differentiated through those that its own kernel calls, and they find no
  autograd: nothing has a gradient. Of torch_npu such are ``npu_ciou``, ``npu_dtype_cast_backward``;
- ``torch.ctc_loss`` with tensors of lengths asks whether there is a mode (``areAnyTensorSubclassLike``,
  aten/src/ATen/native/LossCTC.cpp), and then divides by the lengths where they are: on the CPU beside a device's loss
  that is an error. Without a mode it reads the lengths first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

import torch

_KEYS = torch._C.DispatchKey
_LAZY_VIEWS = (_KEYS.Conjugate, _KEYS.Negative, _KEYS.ZeroTensor)
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_BACKENDS = ("CPU", "CUDA", "PrivateUse1")
_exclude = torch._C._dispatch_tls_set_dispatch_key_excluded


def with_lazy_views() -> None:
    """Have lazy views resolved again in the kernel that a mode calls; for the rest of its ``__torch_dispatch__``."""
    for key in _LAZY_VIEWS:
        _exclude(key, False)


def called(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator that a mode was asked about, as it is without the mode."""
    with_lazy_views()
    if not is_differentiated_inside(func):
        return func(*args, **kwargs)
    with differentiated_inside():
        return func(*args, **kwargs)


@cache
def is_differentiated_inside(func: Any) -> bool:
    """Whether an operator has a kernel of its own on some device, but none for autograd there."""
    name = func.name()

    def has(key: str) -> bool:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))

    if has("Autograd"):
        return False
    return has("CompositeExplicitAutograd") or any(has(one) and not has(f"Autograd{one}") for one in _BACKENDS)


@contextmanager
def differentiated_inside() -> Iterator[None]:
    """Operators that are called inside are differentiated again."""
    excluded = torch._C._dispatch_tls_local_exclude_set().raw_repr() & ~_OF_AUTOGRAD
    with torch._C._ForceDispatchKeyGuard(
        torch._C._dispatch_tls_local_include_set(), torch._C.DispatchKeySet.from_raw_repr(excluded)
    ):
        yield


@contextmanager
def lengths_read_first() -> Iterator[None]:
    """``torch.ctc_loss`` reads tensors of lengths, as it does without a mode."""
    original = torch.ctc_loss

    @wraps(original)
    def ctc_loss(
        log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *rest: Any, **named: Any
    ) -> Any:
        lengths = (input_lengths, target_lengths)
        if all(type(one) is torch.Tensor and not one.is_meta and one.dtype in _WHOLE for one in lengths):
            input_lengths, target_lengths = (one.tolist() for one in lengths)
        return original(log_probs, targets, input_lengths, target_lengths, *rest, **named)

    torch.ctc_loss = ctc_loss
    try:
        yield
    finally:
        torch.ctc_loss = original


def _bits(*keys: Any) -> int:
    whole = 0
    for key in keys:
        whole |= torch._C.DispatchKeySet(key).raw_repr()
    return whole


# What the autograd keys of two backends have in common is the bit of autograd itself.
_OF_AUTOGRAD = (_bits(_KEYS.AutogradCPU) & _bits(_KEYS.AutogradPrivateUse1)) | _bits(
    _KEYS.AutogradOther, _KEYS.AutogradNestedTensor, _KEYS.ADInplaceOrView
)
