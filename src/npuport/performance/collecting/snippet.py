"""The same profiling as code, for those who would rather edit their script."""

from __future__ import annotations

from npuport.performance.collecting.request import Request

_NPU = """\
import torch_npu

profiler = torch_npu.profiler.profile(
    schedule=torch_npu.profiler.schedule(wait={wait}, warmup={warm_up}, active={active}, repeat=1),
    on_trace_ready=torch_npu.profiler.tensorboard_trace_handler({folder!r}),
    experimental_config=torch_npu.profiler._ExperimentalConfig(
        profiler_level=torch_npu.profiler.ProfilerLevel.Level{level},
        aic_metrics=torch_npu.profiler.AiCMetrics.{metrics},
        l2_cache={l2_cache},
        gc_detect_threshold=1.0,
    ),
{details})
profiler.start()  # before the loop over steps

profiler.step()  # at the end of each step

profiler.stop()  # after the loop
"""
_TORCH = """\
import torch

profiler = torch.profiler.profile(
    schedule=torch.profiler.schedule(wait={wait}, warmup={warm_up}, active={active}, repeat=1),
    on_trace_ready=torch.profiler.tensorboard_trace_handler({folder!r}, use_gzip=True),
{details})
profiler.start()  # before the loop over steps

profiler.step()  # at the end of each step

profiler.stop()  # after the loop
"""
_ARGUMENTS = {"stacks": ("with_stack", "with_modules"), "shapes": ("record_shapes",), "memory": ("profile_memory",)}


def snippet(request: Request, *, on_npu: bool) -> str:
    """Code that profiles what ``request`` asks for, with its three places in a training loop."""
    arguments = [name for one in request.details for name in _ARGUMENTS[one]]
    values = {
        "wait": request.warm_up,
        "warm_up": request.first - request.warm_up,
        "active": request.last - request.first + 1,
        "folder": str(request.folder),
        "details": "".join(f"    {name}=True,\n" for name in arguments),
    }
    if not on_npu:
        return _TORCH.format(**values)
    metrics = "PipeUtilization" if request.level else "AiCoreNone"
    return _NPU.format(**values, level=request.level, metrics=metrics, l2_cache=request.level == 2)
