"""Calls that make complex tensors are judged like others: their results are held against complex128."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from npuport.precision import record  # noqa: E402
from npuport.precision.operators.calls import Step, read_step  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402

LAYERS, FAULTY = 6, 3


class Device(TorchDispatchMode):
    """Gives every result a noise of its own; one transform may be too large."""

    def __init__(self, seed: int, factor: float) -> None:
        super().__init__()
        self._generator, self._factor, self._transforms = torch.Generator().manual_seed(seed), factor, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if (
            func.is_view
            or not isinstance(result, torch.Tensor)
            or not (result.dtype.is_floating_point or result.is_complex())
        ):
            return result
        result = result * (1 + 1e-6 * torch.randn(result.shape, generator=self._generator))
        self._transforms += "_fft_r2c" in str(func)
        return result * self._factor if "_fft_r2c" in str(func) and self._transforms == FAULTY else result


def step_of(folder: Path, seed: int, factor: float = 1.0) -> Step:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(16, 16), torch.randn(8, 12, 16)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    turn = torch.polar(torch.ones(7, 1), torch.full((7, 1), 0.3))
    with Device(seed, factor), record(folder):
        for _ in range(LAYERS):
            x = torch.fft.irfft(torch.fft.rfft(layer(x), dim=1) * turn, n=12, dim=1).tanh()
        x.square().mean().backward()
        optimizer.step()
    return read_step(folder / "step0" / "rank0.pt")


def test_a_healthy_pair_has_no_suspect(tmp_path: Path) -> None:
    found = compare(step_of(tmp_path / "a", 1), step_of(tmp_path / "b", 2))
    assert found.suspects == ()
    assert found.noise == pytest.approx(1.0, abs=0.2)


def test_a_transform_that_is_0_3_percent_too_large_is_named(tmp_path: Path) -> None:
    candidate = step_of(tmp_path / "b", 2, 1.003)
    found = compare(step_of(tmp_path / "a", 1), candidate)
    faulty = [call for call in candidate.calls if "_fft_r2c" in call.operator][FAULTY - 1]
    assert found.suspects[0].call is faulty
