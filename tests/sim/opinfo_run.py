"""Compare operators of PyTorch's OpInfo database on the npu device with the CPU: results and gradients, float32.

Run by test_opinfo.py inside a simulated run; prints one JSON object. Arguments: how many operators to skip between two that are tried,
and how many samples of each.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

# Their results are not fixed by their inputs: memory that nobody wrote, or a layout of memory that is not the device's to keep.
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_"}
REFUSED_BY_TORCH_NPU = ("Only Supports format", "memory_format", "NPU contiguous operator only supported", "complex", "sparse", "Complex")


def on(device, value):
    return tree_map(lambda leaf: leaf.detach().to(device).requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf, value)


def compute(operator, sample, device, gradient):
    torch.manual_seed(1234)
    value, arguments, keywords = (on(device, part) for part in (sample.input, sample.args, sample.kwargs))
    if "device" in keywords:
        keywords["device"] = device
    result = operator(value, *arguments, **keywords)
    tensors = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
    others = [leaf for leaf in tree_flatten(result)[0] if not isinstance(leaf, torch.Tensor)]
    inputs = [leaf for leaf in tree_flatten((value, arguments, keywords))[0] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    targets = [tensor.sum() for tensor in tensors if tensor.requires_grad]
    gradients = torch.autograd.grad(targets, inputs, allow_unused=True) if gradient and inputs and targets else ()
    found = [None if t is None else t.detach().cpu() for t in [*tensors, *gradients]]
    return found, others, {t.device.type for t in tensors}


def compare(operator, sample, gradient):
    expected, expected_others, _ = compute(operator, sample, "cpu", gradient)
    found, others, devices = compute(operator, sample, "npu", gradient)
    assert len(found) == len(expected), "another number of results"
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None), "a gradient is missing"
        if ours is not None:
            assert ours.dtype == theirs.dtype, f"dtype {ours.dtype}, not {theirs.dtype}"
            torch.testing.assert_close(ours, theirs, equal_nan=True)
    assert [o for o in others if isinstance(o, (int, float, bool))] == [o for o in expected_others if isinstance(o, (int, float, bool))]


def main(stride: int, samples: int, start: int = 0) -> None:
    warnings.simplefilter("ignore")
    failed: dict[str, str] = {}
    operators = tried = passed = 0
    for operator in op_db[start::stride]:
        if operator.name in UNDEFINED or torch.float32 not in operator.supported_dtypes("cpu"):
            continue
        operators += 1
        gradient = operator.supports_autograd
        begin = time.monotonic()
        torch.manual_seed(0)
        for count, sample in enumerate(operator.sample_inputs("cpu", torch.float32, requires_grad=gradient)):
            if count >= samples or time.monotonic() - begin > 5:
                break
            try:
                compute(operator, sample, "cpu", gradient)
            except Exception:  # a sample that the CPU refuses says nothing
                continue
            tried += 1
            try:
                compare(operator, sample, gradient)
                passed += 1
            except Exception as error:
                failed.setdefault(operator.formatted_name, f"{type(error).__name__}: {error}".split("\n")[0][:200] + (str(error).split("\n")[1][:120] if isinstance(error, AssertionError) and "\n" in str(error) else ""))
    print(json.dumps({"operators": operators, "samples": tried, "passed": passed, "failed": failed}))


main(*map(int, sys.argv[1:]))
