"""Memory formats of the device (NZ, 5HD and others).

The simulated device keeps every tensor in ND, so casting a format changes nothing.
"""

from __future__ import annotations

from typing import Any

_kept: list[Any] = []  # torch.library forgets kernels whose library object is gone

_AS_IT_IS = ("npu_format_cast", "npu_format_cast.Tensor", "npu_format_cast_", "npu_format_cast_.acl_format")
# torch_npu's derivative of these wants a new tensor.
_COPIES = ("_npu_format_cast", "_npu_format_cast.aclnn", "_npu_format_cast.input_dtype")


def install() -> None:
    """Make the format casts that torch_npu has the identity."""
    import torch

    library = torch.library.Library("npu", "IMPL")
    for names, kernel in ((_AS_IT_IS, _same), (_COPIES, _copy)):
        for name in names:
            if torch._C._dispatch_has_kernel_for_dispatch_key(f"npu::{name}", "PrivateUse1"):
                library.impl(name, kernel, "PrivateUse1", allow_override=True)
    for name in _AS_IT_IS:  # the result is the argument: nothing to differentiate, and nothing to warn about
        library.impl(name, torch.library.fallthrough_kernel, "AutogradPrivateUse1")
    _kept.append(library)


def _same(input: Any, *_args: Any, **_kwargs: Any) -> Any:
    return input


def _copy(input: Any, *_args: Any, **_kwargs: Any) -> Any:
    return input.clone()
