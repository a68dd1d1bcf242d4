"""The profiler of a device, set up for a request: torch_npu's where an NPU is, PyTorch's own elsewhere."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import torch

from npuport.performance.collecting.request import Request


def has_npu() -> bool:
    """Whether this process trains on an NPU: torch_npu is imported and sees one."""
    return "torch_npu" in sys.modules and bool(torch.npu.is_available())


def profiler(request: Request, rank: int) -> Any:
    """A profiler that is not started: ``start``, ``step`` at the end of each step, ``stop``.

    Its schedule begins with the warm-up step of the request. On an NPU the result is a folder (…_ascend_pt), elsewhere
    a trace (rank0.pt.trace.json.gz).
    """
    made = _of_npu(request) if has_npu() else _of_torch(request, rank)
    made.step_num = request.warm_up
    return made


def _of_torch(request: Request, rank: int) -> Any:
    from torch.profiler import profile, schedule

    def write(ready: Any) -> None:
        path = request.folder / f"rank{rank}.pt.trace.json.gz"
        aside = path.with_name(f".new-{path.name}")
        ready.export_chrome_trace(str(aside))
        aside.replace(path)

    return profile(schedule=_steps(request, schedule), on_trace_ready=write, **_details(request))


def _of_npu(request: Request) -> Any:
    import torch_npu.profiler as npu

    levels = (npu.ProfilerLevel.Level0, npu.ProfilerLevel.Level1, npu.ProfilerLevel.Level2)
    wanted = {
        "profiler_level": levels[request.level],
        # At level 0 no unit of an AI Core is counted.
        "aic_metrics": npu.AiCMetrics.PipeUtilization if request.level else npu.AiCMetrics.AiCoreNone,
        "l2_cache": request.level == 2,
        "gc_detect_threshold": 1.0,  # ms
    }
    # Options came one by one; what an older torch_npu does not know is left out.
    known = inspect.signature(npu._ExperimentalConfig).parameters
    options = npu._ExperimentalConfig(**{name: value for name, value in wanted.items() if name in known})
    return npu.profile(
        schedule=_steps(request, npu.schedule),
        on_trace_ready=npu.tensorboard_trace_handler(str(request.folder)),
        experimental_config=options,
        **_details(request),
    )


def _steps(request: Request, schedule: Any) -> Any:
    """The schedule; its steps have the numbers of the training's."""
    own = schedule(wait=0, warmup=request.first - request.warm_up, active=request.last - request.first + 1, repeat=1)
    return lambda step: own(max(step - request.warm_up, 0))


def _details(request: Request) -> dict[str, bool]:
    return {
        "record_shapes": "shapes" in request.details,
        "profile_memory": "memory" in request.details,
        "with_stack": "stacks" in request.details,
        "with_modules": "stacks" in request.details,
    }


def written(folder: Path, rank: int) -> int:
    """Bytes that a rank's profile takes; on an NPU those of all ranks on this machine."""
    files = [folder / f"rank{rank}.pt.trace.json.gz"] if not has_npu() else list(folder.glob("*_ascend_pt/**/*"))
    return sum(one.stat().st_size for one in files if one.is_file())
