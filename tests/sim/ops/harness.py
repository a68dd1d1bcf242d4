"""What the cases of this directory share; runs inside a simulated run."""

from __future__ import annotations

import torch

TOLERANCE = 1e-5
FOUND: list[torch.Tensor] = []
"""What was compared since it was last emptied."""


def on(device, value):
    return value.to(device) if isinstance(value, torch.Tensor) else value


def close(found, expected, tolerance=TOLERANCE):
    FOUND.append(found.detach().cpu().clone())
    torch.testing.assert_close(
        found.detach().cpu().double(), expected.detach().cpu().double(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def agree(on_npu, on_cpu, *tensors, tolerance=TOLERANCE, gradient=True):
    """`on_npu(*tensors on the npu)` and `on_cpu(*the same in double precision)` give the same values and gradients."""
    ours = [t.detach().clone().npu().requires_grad_(gradient and t.is_floating_point()) for t in tensors]
    theirs = [
        (t.detach().double() if t.is_floating_point() else t).requires_grad_(gradient and t.is_floating_point())
        for t in tensors
    ]
    found, expected = on_npu(*ours), on_cpu(*theirs)
    assert found.device.type == "npu", found.device
    assert found.shape == expected.shape, (found.shape, expected.shape)
    close(found, expected, tolerance)
    if not (gradient and expected.requires_grad):
        return
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(1))
    found.backward(weights.to(found.device, found.dtype))
    expected.backward(weights.double())
    for our, their in zip(ours, theirs, strict=True):
        assert (our.grad is None) == (their.grad is None), "a gradient is missing"
        if our.grad is not None:
            assert our.grad.dtype == our.dtype, (our.grad.dtype, our.dtype)
            close(our.grad, their.grad, tolerance)


def same_on_both(function, *tensors, tolerance=TOLERANCE, seed=7):
    """One function of PyTorch's own, with random draws, gives the same on the npu as on the CPU, gradients included."""
    results = []
    for device in ("cpu", "npu"):
        inputs = [t.detach().clone().to(device).requires_grad_(t.is_floating_point()) for t in tensors]
        torch.manual_seed(seed)
        outputs = function(*inputs)
        outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        scalar = sum((o * o).sum() for o in outputs if o.requires_grad)
        grads = (
            torch.autograd.grad(scalar, [i for i in inputs if i.requires_grad], allow_unused=True)
            if torch.is_tensor(scalar)
            else ()
        )
        results.append([None if t is None else t.detach().cpu() for t in [*outputs, *grads]])
    for ours, theirs in zip(results[1], results[0], strict=True):
        assert (ours is None) == (theirs is None), "a gradient is missing"
        if ours is not None:
            assert ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
            close(ours, theirs, tolerance)


def raises(kind, words, function):
    try:
        function()
    except kind as error:
        assert words in str(error), str(error)
        return
    raise AssertionError(f"no {kind.__name__} with {words!r}")


def gradients_check(function, *tensors):
    """torch.autograd.gradcheck of `function` of npu tensors, in float64."""
    leaves = [t.detach().double().npu().requires_grad_() if t.is_floating_point() else t.npu() for t in tensors]
    assert torch.autograd.gradcheck(function, leaves, eps=1e-6, atol=1e-6, rtol=1e-4, check_undefined_grad=False)
