"""The estimate beside what the simulated NPU's allocator measures while megatron-core trains on two devices."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from npuport.llm.planning.layout import Job, Layout, framework
from npuport.llm.planning.memory import stage_memory
from npuport.llm.planning.model import Model
from npuport.sim import SimOptions

pytestmark = pytest.mark.skipif(importlib.util.find_spec("megatron") is None, reason="needs megatron-core")

PROGRAM = Path(__file__).with_name("megatron_models.py")
DEVICES, BATCH = 2, 2
SIZES = {
    **{"layers": 4, "hidden": 512, "heads": 8, "kv_heads": 2, "ffn": 1408, "vocabulary": 2000},
    **{"sequence": 256, "micro_batch": BATCH, "micro_batches": 1},
}
CASES: Mapping[str, Mapping[str, int]] = {
    "distributed optimizer": {"zero": 1},
    "tensor and sequence": {"tensor": 2},
    "pipeline": {"pipeline": 2, "micro_batches": 4},
    "pipeline, recomputed": {"pipeline": 2, "micro_batches": 4, "recompute": 1},
    "context": {"context": 2, "sequence": 1024, "zero": 1},
    "experts": {"expert": 2, "experts": 4, "top_k": 2},
}

Simulated = Callable[..., "subprocess.CompletedProcess[str]"]


def test_estimates_are_what_megatron_core_takes(simulated: Simulated) -> None:
    cases = [{"name": name, **SIZES, **case} for name, case in CASES.items()]
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={DEVICES}"]
    done = simulated([*launcher, PROGRAM, json.dumps(cases)], SimOptions(devices=DEVICES), timeout=400)
    line = next((line for line in done.stdout.splitlines() if "PEAKS " in line), None)
    assert line is not None, done.stdout[-3000:] + done.stderr[-3000:]
    peaks: dict[str, list[int]] = json.loads(line.partition("PEAKS ")[2])
    for name, case in CASES.items():
        estimated = estimates({**SIZES, **case})
        # Without a pipeline both ranks are of the one stage.
        for rank, peak in enumerate(peaks[name]):
            assert estimated[rank % len(estimated)] == pytest.approx(peak, rel=0.1), (name, rank, estimated, peaks)


def estimates(case: Mapping[str, int]) -> list[float]:
    """Bytes of one device of each stage."""
    model = Model(
        *(case[name] for name in ("layers", "hidden", "heads", "kv_heads")),
        case["hidden"] // case["heads"],
        case["ffn"],
        case["vocabulary"],
        experts=case.get("experts", 1),
        top_k=case.get("top_k", 1),
    )
    tensor, pipeline, context = (case.get(name, 1) for name in ("tensor", "pipeline", "context"))
    data = DEVICES // (tensor * pipeline * context)
    layout = Layout(
        tensor,
        pipeline,
        data,
        context,
        case.get("expert", 1),
        case.get("zero", 0),
        "full" if case.get("recompute") else "none",
        case["micro_batch"],
        case["micro_batches"],
    )
    job = Job(1, DEVICES, case["sequence"], BATCH * case["micro_batches"] * data)
    return [stage_memory(model, job, layout, framework("megatron"), stage).total for stage in range(pipeline)]
