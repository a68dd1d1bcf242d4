"""Steps of distributed and compiled trainings are recorded on the simulated NPU, without an edit of the script."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from npuport.precision.operators.calls import read_step, step_file
from npuport.precision.operators.options import Options
from npuport.precision.operators.starting import OPTIONS
from npuport.sim import SimOptions

JOB = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("hccl")
rank = dist.get_rank()
torch.npu.set_device(rank)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)).npu()


def step(model):
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(8, 16).npu()).square().mean().backward()
    optimizer.step()


sharded = net()
fully_shard(sharded[0])
fully_shard(sharded)
step(nn.parallel.DistributedDataParallel(net(), device_ids=[rank]))
step(sharded)
step(torch.compile(net(), backend="aot_eager"))
dist.destroy_process_group()
"""


def test_jobs_of_several_processes_and_compiled_models_are_recorded(
    simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(JOB, encoding="utf-8")
    options = Options(tmp_path / "dump", what="statistics", steps="0-2")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    variables = {OPTIONS: options.dumped()}
    done = simulated([*launcher, tmp_path / "job.py"], SimOptions(devices=2), **variables)
    assert done.returncode == 0, done.stderr[-3000:]
    wrapped, sharded, compiled = (
        [read_step(step_file(options.folder, step, rank)) for rank in (0, 1)] for step in (0, 1, 2)
    )
    for step in (*wrapped, *sharded, *compiled):
        assert step.device == "npu"
        assert {"forward", "backward", "optimizer"} == {call.phase for call in step.calls}
        assert all(step.statistics_of(ref) is not None for call in step.calls for ref in call.outputs)
    reduced = [call for call in wrapped[0].calls if call.operator == "c10d.allreduce_.default"][-1]
    assert ("group", "0", (0, 1)) in reduced.arguments
    results = [[step.statistics_of(ref) for ref in call.outputs] for step in wrapped for call in step.calls
               if call.operator == reduced.operator and len(call.outputs) == len(reduced.outputs)]  # fmt: skip
    assert results[0] == results[-1]  # of both ranks, once it is there
    assert "gradient of module.0.weight" in wrapped[0].names.values()
    assert any(call.operator.startswith("c10d._allgather") for call in sharded[0].calls)
    assert {"shard of parameter 0.weight", "shard of gradient of 0.weight"} <= set(sharded[0].names.values())
    assert {call.module for call in compiled[0].calls} >= {"_orig_mod.0", "_orig_mod.1", "_orig_mod.2"}
