"""A fused operator against its parts: quiet where it is healthy, named where it is not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from faults import Device, Fault, noisy  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from npuport.precision.operators.calls import Step, read_step, step_file  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.operators.suspects import Comparison, compare  # noqa: E402

WIDTH, HEADS, LENGTH = 64, 4, 16
NOISE = 1e-6


@dataclass(frozen=True)
class Way:
    """How a model is computed, and what is wrong with it."""

    is_fused: bool
    scale: float = 1.0  # of the attention's scores, times what is right
    shift: int = 0  # of the causal mask
    eps: float = 1e-5
    rate: float = 1e-3  # of learning


class Attention(nn.Module):
    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril(way.shift))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scale = self.way.scale / (width // HEADS) ** 0.5
        if self.way.is_fused:
            mixed = F.scaled_dot_product_attention(q, k, v, self.mask, scale=scale)
        else:
            scores = (q @ k.transpose(-2, -1)) * scale
            mixed = scores.masked_fill(~self.mask, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class RmsNorm(nn.Module):
    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way, self.weight = way, nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.way.is_fused:
            return F.rms_norm(x, (WIDTH,), self.weight, self.way.eps)
        return x * (x.pow(2).mean(-1, keepdim=True) + self.way.eps).rsqrt() * self.weight


class Model(nn.Module):
    def __init__(self, way: Way) -> None:
        super().__init__()
        self.norms = nn.ModuleList(RmsNorm(way) for _ in range(3))
        self.attentions = nn.ModuleList(Attention(way) for _ in range(3))
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm, attention in zip(self.norms, self.attentions, strict=True):
            x = x + attention(norm(x))
        return self.head(x).square().mean()


def step_of(way: Way, seed: int, fault: Fault | None = None, dtype: torch.dtype = torch.float32) -> Step:
    torch.manual_seed(0)
    model, x = Model(way).to(dtype), torch.randn(4, LENGTH, WIDTH).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=way.rate, fused=way.is_fused, foreach=False)
    recorder = Recorder()
    with Device(NOISE, seed, fault), recorder.following():
        model(x).backward()
        recorder.optimizer_begins()
        optimizer.step()
        recorder.optimizer_ended(optimizer)
    return recorder.take(0, 0)


@pytest.fixture(scope="module")
def eager() -> Step:
    torch.set_num_threads(1)
    return step_of(Way(False), 1)


def operators_of(comparison: Comparison) -> list[tuple[str, str]]:
    return [(one.call.module, one.kind) for one in comparison.suspects]


def test_a_healthy_fusion_is_quiet(eager: Step) -> None:
    fused = step_of(Way(True), 2)
    assert any("_scaled_dot_product" in call.operator for call in fused.calls)
    assert any("_fused_adamw" in call.operator for call in fused.calls)
    assert operators_of(compare(eager, fused)) == []
    assert operators_of(compare(fused, eager)) == []


@pytest.mark.parametrize(
    "way", [Way(True, scale=1.01), Way(True, shift=1), Way(True, eps=1e-2)], ids=["scale", "mask", "eps"]
)
def test_a_fused_operator_that_computes_something_else_is_named(way: Way, eager: Step) -> None:
    first = compare(eager, step_of(way, 2)).suspects[0]
    assert first.call.module == ("norms.0" if way.eps > 1e-5 else "attentions.0"), str(first.text)
    assert first.kind in ("operators", "input")


def test_an_error_inside_one_fused_operator_is_named(eager: Step) -> None:
    operator = "_scaled_dot_product_flash_attention_for_cpu"
    fault = Fault("noise in the second attention", "", operator, 1, noisy(0.001))
    first = compare(eager, step_of(Way(True), 2, fault)).suspects[0]
    assert first.call.module == "attentions.1" and operator in first.call.operator, str(first.text)


def test_a_fused_optimizer_that_makes_other_parameters_is_named(eager: Step) -> None:
    first = compare(eager, step_of(Way(True, rate=1.1e-3), 2)).suspects[0]
    assert "_fused_adamw_" in first.call.operator, str(first.text)


def in_bfloat16(seed: int, fault: Fault | None = None) -> Step:
    return step_of(Way(False), seed, fault, torch.bfloat16)


def test_a_run_in_another_precision_is_one_note(eager: Step) -> None:
    comparison = compare(eager, in_bfloat16(2))
    assert operators_of(comparison) == []
    (note,) = comparison.notes
    assert str(note).startswith("Calls that compute in bfloat16 where the reference computes in float32: ")


def test_single_calls_in_a_finer_precision_are_a_note() -> None:
    steps = []
    for dtype in (torch.bfloat16, torch.float32):
        recorder = Recorder()
        with recorder:
            (torch.arange(9.0).reshape(3, 3) + 1).to(dtype).softmax(-1).float() * 2
        steps.append(recorder.take(0, 0))
    finer, coarser = compare(steps[0], steps[1]), compare(steps[1], steps[0])
    assert finer.suspects == ()
    assert str(finer.notes[0]).startswith(
        "Calls that compute in float32 where the reference computes in bfloat16: 1 (_softmax);"
    )
    assert [one.kind for one in coarser.suspects] == ["dtype"]


def test_a_fault_in_a_run_in_another_precision_is_named(eager: Step) -> None:
    fault = Fault("a tenth too large", "", "_softmax", 1, lambda result, _: result.mul_(1.1))
    first = compare(eager, in_bfloat16(2, fault)).suspects[0]
    assert (first.call.module, first.call.operator) == ("attentions.1", "aten._softmax.default"), str(first.text)


def test_arguments_that_come_to_the_same_are_no_suspicion() -> None:
    steps = []
    for dim, scale in ((-1, 1.0), (1, 1.0), (0, 1.0)):
        recorder = Recorder()
        with recorder:
            torch.arange(9.0).reshape(3, 3).softmax(dim) * scale
        steps.append(recorder.take(0, 0))
    assert compare(steps[0], steps[1]).suspects == ()
    assert [one.kind for one in compare(steps[0], steps[2]).suspects] == ["argument"]


def test_torch_npu_s_fused_operators_are_judged_by_their_parts(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch_npu") is None:
        pytest.skip("torch_npu is not installed")
    script = Path(__file__).with_name("fused_training.py")
    command = [sys.executable, "-m", "npuport", "run", "--sim", "--", sys.executable, str(script), str(tmp_path)]
    inside = {name: value for name, value in os.environ.items() if name != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    done = subprocess.run(command, env=inside, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    parts, fused, scaled = (read_step(step_file(tmp_path / name, 0, 0)) for name in ("parts", "fused", "scaled"))
    assert {"npu.npu_fusion_attention.default", "npu.npu_rms_norm.default", "npu.npu_swiglu.default"} <= {
        call.operator for call in fused.calls
    }
    assert compare(parts, fused).suspects == ()
    assert compare(fused, parts).suspects == ()
    first = compare(parts, scaled).suspects[0]
    assert (first.call.module, first.call.operator) == ("0", "npu.npu_fusion_attention.default"), str(first.text)
