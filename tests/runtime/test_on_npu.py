"""Values that converted code maps at run time."""

from __future__ import annotations

from typing import Any

import pytest

with pytest.MonkeyPatch.context() as variables:
    variables.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # nothing here needs a device
    torch = pytest.importorskip("torch")
from npuport.runtime import on_npu


@pytest.mark.parametrize(
    ("value", "mapped"),
    [
        ("cuda", "npu"),
        ("cuda:3", "npu:3"),
        ("cpu", "cpu"),
        ("/data/cuda/x", "/data/cuda/x"),
        ("cuda_dir", "cuda_dir"),
        (["cuda:0", "cuda:1"], ["npu:0", "npu:1"]),
        (("cuda", 1), ("npu", 1)),
        ({"cuda:1": "cuda:0"}, {"cuda:1": "npu:0", "npu:1": "npu:0"}),
        (0, 0),
        (None, None),
    ],
)
def test_devices(value: Any, mapped: Any) -> None:
    assert on_npu.device(value) == mapped


@pytest.mark.parametrize(
    ("value", "mapped"),
    [
        ("nccl", "hccl"),
        ("NCCL", "hccl"),
        ("gloo", "gloo"),
        ("cpu:gloo,cuda:nccl", "cpu:gloo,npu:hccl"),
        ("cuda:nccl", "npu:hccl"),
        (None, None),
        ("inductor", "inductor"),
    ],
)
def test_backends(value: Any, mapped: Any) -> None:
    assert on_npu.backend(value) == mapped


def test_texts() -> None:
    assert on_npu.holds("cuda", "npu:0")
    assert on_npu.holds("cuda", ["cuda", "cpu"])
    assert on_npu.holds("npu", "cuda:0")
    assert not on_npu.holds("cuda", "cpu")
    assert on_npu.starts("npu:0", "cuda")
    assert on_npu.starts("cuda:0", "npu")
    assert not on_npu.starts("cpu", "cuda")


def test_memory_formats() -> None:
    assert on_npu.memory_format(torch.channels_last) is torch.contiguous_format
    assert on_npu.memory_format(torch.preserve_format) is torch.preserve_format


def test_double_leaves_the_cpu_alone() -> None:
    assert on_npu.double(torch.ones(2)).dtype == torch.float64
    model = on_npu.double(torch.nn.Linear(2, 2))
    assert model.weight.dtype == torch.float64
