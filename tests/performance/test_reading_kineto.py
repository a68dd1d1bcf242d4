"""Reading traces of PyTorch's own profiler, as its releases wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_profiles import ENGINE, LOOP

from npuport.performance.analysis import analyse
from npuport.performance.reading.kineto import read_kineto
from npuport.performance.step_split import Part

_OLD = {"cpu_op": "Operator", "cuda_runtime": "Runtime", "kernel": "Kernel", "gpu_memcpy": "Memcpy"}


def written(path: Path, *, old: bool = False, device: bool = True, **header: Any) -> Path:
    """A step of 1,000 us: loading 0-100, forward 200-400, backward 400-600, optimizer 600-700; kernels run later."""
    events = [
        span("cpu_op" if old else "user_annotation", "ProfilerStep#3", LOOP, 0, 1000),
        span("cpu_op", "enumerate(DataLoader)#It.__next__", LOOP, 0, 100),
        span("cpu_op", "aten::linear", LOOP, 200, 200, {"Sequence number": 5, "Fwd thread id": 0}),
        span("cpu_op", "AddmmBackward0", ENGINE, 410, 190, {"Sequence number": 5, "Fwd thread id": 1}),
        span("cpu_op", "Optimizer.step#SGD.step", LOOP, 600, 100),
    ]
    if device:
        launches = [(250, LOOP, 300, 450), (450, ENGINE, 450, 750), (650, LOOP, 750, 800)]
        for number, (launched, thread, start, end) in enumerate(launches, 1):
            links = {"correlation": number, "external id" if old else "External id": number}
            events.append(span("cuda_runtime", "cudaLaunchKernel", thread, launched, 5, links))
            lane = "stream 7" if old else 7
            events.append(span("kernel", "gemm", lane, start, end - start, {**links, "stream": 7, "device": 0}))
        events.append(span("kernel", "ncclDevKernel_AllReduce", 20, 700, 200, {"stream": 20, "correlation": 77}))
    if old:
        for one in events:
            one["cat"] = _OLD.get(one["cat"], one["cat"])
            one["tid"] = str(one["tid"])
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, **header}, indent=2))
    return path


def span(cat: str, name: str, tid: Any, ts: float, dur: float, arguments: Any = None) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": arguments or {}}


@pytest.mark.parametrize("old", [False, True])
def test_a_gpu_trace(tmp_path: Path, old: bool) -> None:
    (rank,) = analyse([written(tmp_path / "a.pt.trace.json", old=old)])
    assert (rank.profile.device, rank.profile.problems) == ("gpu", ())
    (step,) = rank.splits
    found = {part: time // 1000 for part, time in step.parts.items()}
    assert found == {
        Part.DATA: 100,
        Part.FORWARD: 150,
        Part.BACKWARD: 300,
        Part.OPTIMIZER: 50,
        Part.COMMUNICATION: 100,
        Part.PREPARING: 200,
        Part.GAP: 100,
    }
    assert (step.communication, step.overlapped) == (200_000, 100_000)


def test_a_trace_of_the_cpu_alone(tmp_path: Path) -> None:
    (rank,) = analyse([written(tmp_path / "a.pt.trace.json", device=False)])
    assert rank.profile.device == "cpu"
    assert {part.name: time // 1000 for part, time in rank.splits[0].parts.items()} == {
        "DATA": 100, "FORWARD": 200, "BACKWARD": 190, "OPTIMIZER": 100, "GAP": 410,
    }  # fmt: skip
    assert [one.code for one in rank.findings] == ["NT301"]


def test_what_a_trace_says_about_itself(tmp_path: Path) -> None:
    distributed = {"rank": 5, "backend": "nccl", "nccl_version": "2.21"}
    path = written(tmp_path / "a.json", baseTimeNanoseconds=10**18, distributedInfo=distributed, with_stack=1)
    profile = read_kineto(path)
    assert (profile.rank, profile.versions, profile.settings) == (5, {"nccl": "2.21"}, {"stacks": 1})
    assert profile.steps["start_ns"].to_list() == [10**18]


def test_a_file_that_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "a.pt.trace.json"
    path.write_text('{"traceEvents": [{"ph": "X", "name": "x", "ts": 1, "dur": 2, "cat": "other"}]}')
    assert [str(one.reason) for one in read_kineto(path).problems] == [
        "1 events are of a kind that is not read: other",
        "it holds no events of PyTorch's profiler",
    ]
