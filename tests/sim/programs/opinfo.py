"""Compare operators of PyTorch's OpInfo database on the npu device with the CPU: results and gradients, float32.

    python opinfo.py STRIDE SAMPLES     every STRIDE-th operator, at most SAMPLES samples of each

Prints one JSON object: how many operators and samples were tried, how many samples agreed, and the first error of each
operator.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

# Not fixed by their inputs (memory that nobody wrote), or about memory of the host.
UNDEFINED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "as_strided"}
SECONDS_PER_OPERATOR = 5


def on(device: str, value: Any) -> Any:
    def move(leaf: Any) -> Any:
        return leaf.detach().to(device).requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(move, value)


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def compute(operator: Any, sample: Any, device: str) -> tuple[list[torch.Tensor | None], list[Any]]:
    """Tensors (results, then gradients of the inputs) and plain numbers that ``operator`` gives for ``sample`` on
    ``device``."""
    torch.manual_seed(1234)
    inputs = on(device, (sample.input, sample.args, sample.kwargs))
    value, arguments, keywords = inputs
    if "device" in keywords:
        keywords["device"] = device
    result = operator(value, *arguments, **keywords)
    roots = [tensor.sum() for tensor in tensors(result) if tensor.requires_grad]
    leaves = [tensor for tensor in tensors(inputs) if tensor.requires_grad]
    gradients = torch.autograd.grad(roots, leaves, allow_unused=True) if roots and leaves else ()
    found = [None if tensor is None else tensor.detach().cpu() for tensor in (*tensors(result), *gradients)]
    return found, [leaf for leaf in tree_leaves(result) if isinstance(leaf, (int, float, bool))]


def compare(operator: Any, sample: Any) -> None:
    expected, expected_numbers = compute(operator, sample, "cpu")
    found, numbers = compute(operator, sample, "npu")
    assert [t is None for t in found] == [t is None for t in expected], "a result or a gradient is missing"
    assert numbers == expected_numbers
    for ours, theirs in zip(found, expected, strict=True):
        if ours is not None:
            # Attention is computed by another sequence of operators: a few float32 roundings more than the default.
            torch.testing.assert_close(ours, theirs, rtol=2e-5, atol=5e-5, equal_nan=True)


def samples_of(operator: Any, most: int) -> Iterator[Any]:
    begin = time.monotonic()
    torch.manual_seed(0)
    for count, sample in enumerate(
        operator.sample_inputs("cpu", torch.float32, requires_grad=operator.supports_autograd)
    ):
        if count >= most or time.monotonic() - begin > SECONDS_PER_OPERATOR:
            return
        try:
            compute(operator, sample, "cpu")
        except Exception:
            continue
        yield sample


def main(stride: int, most: int) -> None:
    warnings.simplefilter("ignore")
    operators = tried = passed = 0
    failed: dict[str, str] = {}
    for operator in op_db[::stride]:
        if operator.name in UNDEFINED or torch.float32 not in operator.supported_dtypes("cpu"):
            continue
        operators += 1
        for sample in samples_of(operator, most):
            tried += 1
            try:
                compare(operator, sample)
                passed += 1
            except Exception as error:
                failed.setdefault(operator.formatted_name, f"{type(error).__name__}: {error}"[:400])
    print(json.dumps({"operators": operators, "samples": tried, "passed": passed, "failed": failed}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
