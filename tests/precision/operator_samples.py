"""PyTorch's own samples of its operators as recorded steps, and calls whose results are changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from npuport.precision.checking.calls import CallCheck, check_call
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.recording import Recorder


def differentiable_operators(dtype: Any) -> list[Any]:
    """Those of PyTorch's operator database that have gradients in a dtype."""
    from torch.testing._internal.common_methods_invocations import op_db

    return [one for one in op_db if one.supports_autograd and dtype in one.dtypes and dtype in one.backward_dtypes]


def recorded_samples(operator: Any, dtype: Any, scale: float, number: int) -> Iterator[Step]:
    """The first samples of an operator, forward and backward, with gradients of about the size ``scale``."""
    torch.manual_seed(0)
    for sample in islice(operator.sample_inputs("cpu", dtype, requires_grad=True), number):
        recorder = Recorder()
        try:
            with recorder:
                made = sample.output_process_fn_grad(operator(sample.input, *sample.args, **sample.kwargs))
                leaves = torch.utils._pytree.tree_leaves(made)
                wanted = [one for one in leaves if isinstance(one, torch.Tensor) and one.requires_grad]
                gradients = [torch.randn(one.shape).to(one.dtype) * scale for one in wanted]
                torch.autograd.backward(wanted, gradients)
        except (RuntimeError, NotImplementedError):
            continue  # a sample that shows an error
        yield recorder.take(0, 0)


def with_result(call: Call, step: Step, position: int, result: Any) -> tuple[Call, Step]:
    """The call with another result, as if the device had computed that."""
    number = max(step.storages) + 1
    values = result.contiguous()
    storages = {**step.storages, number: values.reshape(-1).view(torch.uint8)}
    ref = replace(call.outputs[position], storage=number, stride=tuple(values.stride()), offset=0)
    seen = -1

    def changed(value: Any) -> Any:
        nonlocal seen
        if isinstance(value, TensorRef):
            seen += 1
            return ref if seen == position else value
        return type(value)(changed(one) for one in value) if isinstance(value, list | tuple) else value

    return replace(call, result=changed(call.result)), replace(step, storages=storages)


def doubled(call: Call, step: Step) -> Iterator[tuple[int, CallCheck]]:
    """The verdict on a call with each of its floating results doubled, where that changes it."""
    for position, ref in enumerate(call.outputs):
        result = step.tensor(ref)
        finite = result[torch.isfinite(result)]
        if result.is_floating_point() and bool((finite != 0).any()):
            check = check_call(*with_result(call, step, position, result * 2))
            if any(one.position == position for one in check.results):  # not what a kernel notes for itself
                yield position, check
