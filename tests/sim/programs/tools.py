"""What programs use around training: profilers, compile, tracing, options."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from unittest import mock

import checks
import torch
import torch_npu


def check_torch_profiler_holds_the_host_side() -> None:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
    with tempfile.TemporaryDirectory() as directory:
        trace = Path(directory, "trace.json")
        with torch.profiler.profile(activities=activities, record_shapes=True, with_stack=True) as profile:
            torch.ones(4, device="npu").add(1)
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    assert any(event["name"] == "aten::add" for event in events)
    assert not any(event.get("cat") == "kernel" for event in events)


def check_torch_npu_profiler_holds_the_host_side() -> None:
    profiler = torch_npu.profiler
    level = profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level1, mstx=True)
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(said):
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
            schedule=profiler.schedule(wait=0, warmup=1, active=1, repeat=1),
            on_trace_ready=profiler.tensorboard_trace_handler(directory),
            record_shapes=True,
            profile_memory=True,
            with_stack=True,
            experimental_config=level,
        ) as profile:
            for _ in range(3):
                mark = torch_npu.npu.mstx.range_start("adding", torch.npu.current_stream())
                torch.ones(4, device="npu").add(1)
                torch_npu.npu.mstx.range_end(mark)
                profile.step()
        files = {path.name: path for path in Path(directory).rglob("ASCEND_PROFILER_OUTPUT/*")}
        assert {"operator_details.csv", "operator_memory.csv", "trace_view.json"} <= set(files)
        assert not {"kernel_details.csv", "op_statistic.csv", "step_trace_time.csv"} & set(files)
        assert "aten::add" in files["trace_view.json"].read_text()
    assert "[ERROR] Call" not in said.getvalue(), said.getvalue()


def check_compile_with_aot_eager() -> None:
    compiled = torch.compile(lambda x: torch.nn.functional.gelu(x * 2 + 1).sum(), backend="aot_eager")
    gradients = []
    for device in ("cpu", "npu"):
        x = torch.ones(3, device=device, requires_grad=True)
        compiled(x).backward()
        gradients.append(x.grad.cpu())
    torch.testing.assert_close(gradients[0], gradients[1])


def check_compile_as_it_comes() -> None:
    """Inductor, which has no kernels for the simulated NPU: the program is told, once, and gets its results."""
    said = io.StringIO()
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU()).npu()
    compiled = [torch.compile(layer), torch.compile(layer, mode="max-autotune")]
    with contextlib.redirect_stderr(said):
        for function in (layer, *compiled):
            function(torch.ones(2, 3, device="npu")).sum().backward()
    gradient = layer[0].weight.grad.clone()
    layer.zero_grad()
    layer(torch.ones(2, 3, device="npu")).sum().backward()
    torch.testing.assert_close(gradient, 3 * layer[0].weight.grad)
    assert said.getvalue().count("npuport: torch.compile: inductor") == 1, said.getvalue()


def check_compile_on_the_cpu_is_left_to_inductor() -> None:
    with mock.patch("torch._inductor.compile_fx.compile_fx", side_effect=lambda graph, *_, **__: graph) as inductor:
        assert torch.compile(lambda x: x * 2)(torch.ones(2)).tolist() == [2, 2]
    assert inductor.call_count == 1


def check_compile_with_torchair_is_refused() -> None:
    for use in (lambda: torch.compile(torch.nn.ReLU(), backend="npu"), torch_npu.dynamo._get_default_backend("npu")):
        checks.raises(ImportError, "aot_eager", use)


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
