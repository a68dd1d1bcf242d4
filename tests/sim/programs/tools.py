"""What programs use around training: profilers, compile, tracing, options."""

from __future__ import annotations

import tempfile
from pathlib import Path

import checks
import torch
import torch_npu


def check_torch_profiler() -> None:
    with torch.profiler.profile() as profile:
        torch.ones(4, device="npu").add(1)
    assert any(event.key == "aten::add" for event in profile.key_averages())


def check_torch_npu_profiler() -> None:
    activities = [torch_npu.profiler.ProfilerActivity.CPU, torch_npu.profiler.ProfilerActivity.NPU]
    schedule = torch_npu.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with tempfile.TemporaryDirectory() as directory:
        handler = torch_npu.profiler.tensorboard_trace_handler(directory)
        with torch_npu.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=handler) as profile:
            for _ in range(3):
                torch.ones(4, device="npu").add(1)
                profile.step()
        traces = list(Path(directory).rglob("trace_view.json"))
        assert len(traces) == 1 and "aten::add" in traces[0].read_text()


def check_compile_with_aot_eager() -> None:
    compiled = torch.compile(lambda x: torch.nn.functional.gelu(x * 2 + 1).sum(), backend="aot_eager")
    gradients = []
    for device in ("cpu", "npu"):
        x = torch.ones(3, device=device, requires_grad=True)
        compiled(x).backward()
        gradients.append(x.grad.cpu())
    torch.testing.assert_close(gradients[0], gradients[1])


def check_function_transforms() -> None:
    gradient = torch.func.vmap(torch.func.grad(lambda x: (x**2).sum()))
    assert gradient(torch.ones(2, 3, device="npu")).tolist() == [[2.0] * 3] * 2


def check_jit_trace() -> None:
    layer = torch.nn.Linear(2, 2).npu()
    x = torch.ones(1, 2, device="npu")
    assert torch.equal(torch.jit.trace(layer, x)(x), layer(x))


def check_accelerator_interface() -> None:
    assert torch.accelerator.current_accelerator() == torch.device("npu")
    assert torch.accelerator.device_count() == 1
    assert torch.get_device_module("npu") is torch.npu


def check_options_are_kept() -> None:
    torch.npu.set_compile_mode(jit_compile=False)
    torch.npu.matmul.allow_hf32 = True
    assert torch.npu.matmul.allow_hf32 is True
    torch.npu.matmul.allow_hf32 = False


def check_transfer_to_npu() -> None:
    """Last: it changes torch for the whole process."""
    from torch_npu.contrib import transfer_to_npu  # noqa: F401

    torch.manual_seed(0)
    expected = torch.randn(3)
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    assert torch.cuda.is_available()
    assert torch.equal(torch.randn(3, device="cuda").cpu(), expected)
    assert torch.ones(2).cuda().device.type == "npu"


if __name__ == "__main__":
    checks.run(globals())
