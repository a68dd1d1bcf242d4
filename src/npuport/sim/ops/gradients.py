"""Gradients of a reference function by PyTorch's own autograd, for backward operators whose formula would only
repeat the forward one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

_AUTOGRAD_KEYS = (
    torch._C.DispatchKey.AutogradCPU,
    torch._C.DispatchKey.AutogradOther,
    torch._C.DispatchKey.AutogradFunctionality,
    torch._C.DispatchKey.ADInplaceOrView,
)


def vector_jacobian(
    function: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]],
    inputs: Sequence[torch.Tensor | None],
    grads: Sequence[torch.Tensor | None],
) -> tuple[torch.Tensor | None, ...]:
    """Gradients of `function(*inputs)` for `inputs`, given the gradients of its outputs; None where an input is None or
    takes no gradient.

    Runs the forward again. Kernels are called below autograd, so the autograd keys are switched on for the time of the
    call.
    """
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in _AUTOGRAD_KEYS:
        excluded = excluded.remove(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded), torch.enable_grad():
        wanted = [i is not None and (i.is_floating_point() or i.is_complex()) for i in inputs]
        leaves = [
            i.detach().requires_grad_() if i is not None and want else i for i, want in zip(inputs, wanted, strict=True)
        ]
        outputs = function(*leaves)
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if g is not None and o.requires_grad]
        if not pairs:
            return tuple(
                torch.zeros_like(i) if i is not None and w else None for i, w in zip(inputs, wanted, strict=True)
            )
        found = iter(
            torch.autograd.grad(
                [o for o, _ in pairs],
                [leaf for leaf, want in zip(leaves, wanted, strict=True) if want and leaf is not None],
                [g for _, g in pairs],
                allow_unused=True,
                materialize_grads=True,
            )
        )
        return tuple(next(found) if want else None for want in wanted)
