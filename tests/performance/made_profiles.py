"""Small profiles made for tests, in memory and as the files that profilers write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from npuport.performance.tables import COMMUNICATION, EVENTS, KERNELS, MEMORY, STEPS, Profile, Schema, shaped

LOOP, ENGINE, QUEUE = 1, 2, 3  # threads: the training loop, autograd's, the task queue's

Row = Mapping[str, Any]


def table(rows: Sequence[Row], schema: Schema) -> pl.DataFrame:
    """A table of rows that name only the columns they need."""
    columns = {name: [row.get(name) for row in rows] for name in schema if name != "id"}
    plain = {name: pl.String if kind == pl.Categorical else kind for name, kind in schema.items() if name != "id"}
    return shaped(pl.DataFrame(columns, schema=plain), schema)


def made(
    *,
    events: Sequence[Row] = (),
    kernels: Sequence[Row] = (),
    communication: Sequence[Row] = (),
    memory: Sequence[Row] = (),
    steps: Sequence[tuple[int, int, int]] = ((0, 0, 1000),),
    **fields: Any,
) -> Profile:
    """A profile of these rows; steps are (number, start, end) of the training loop's thread."""
    marks = [{"step": step, "start_ns": start, "end_ns": end, "thread": LOOP} for step, start, end in steps]
    defaults: dict[str, Any] = {"path": Path("made"), "origin": "made", "device": "npu", "rank": 0}
    return Profile(
        **(defaults | fields),
        events=table(events, EVENTS),
        kernels=table(kernels, KERNELS),
        communication=table(communication, COMMUNICATION),
        memory=table(memory, MEMORY),
        steps=table(marks, STEPS),
    )


def event(name: str, start: int, end: int, category: str = "operator", thread: int = LOOP, **more: Any) -> Row:
    """A host event."""
    return {"name": name, "category": category, "thread": thread, "start_ns": start, "end_ns": end, **more}


def kernel(start: int, end: int, launched: int | None = None, thread: int | None = LOOP, **more: Any) -> Row:
    """A kernel, launched at a time on a thread."""
    launch = {"launch_ns": launched, "launch_thread": None if launched is None else thread}
    return {"name": "k", "kind": "kernel", "stream": 2, "start_ns": start, "end_ns": end, **launch, **more}


def collective(start: int, end: int, kind: str = "operation", **more: Any) -> Row:
    """A collective, or with another kind a task of one."""
    return {"name": "allReduce", "kind": kind, "start_ns": start, "end_ns": end, **more}


def training_step(at: int = 0) -> list[Row]:
    """Host events of one step of 1,000 ns: loading 0-100, forward 200-400, backward 400-600, optimizer 600-700."""
    return [
        event("enumerate(DataLoader)#It.__next__", at + 0, at + 100),
        event("aten::linear", at + 200, at + 300, sequence=at + 1),
        event("aten::nll_loss", at + 300, at + 400, sequence=at + 2),
        event("NllLossBackward0", at + 410, at + 500, thread=ENGINE, sequence=at + 2, forward_thread=LOOP),
        event("AddmmBackward0", at + 500, at + 600, thread=ENGINE, sequence=at + 1, forward_thread=LOOP),
        event("Optimizer.step#SGD.step", at + 600, at + 700),
    ]


# ------------------------------------------------------------------------------------------- files of torch_npu

_PYTHON, _CANN, _DEVICE, _HCCL = 10, 20, 30, 40


def npu_trace(extra: Sequence[Row] = ()) -> list[Row]:
    """The events of a ``trace_view.json``: two kernels, a collective with its tasks, a compilation, an item()."""
    names = {_PYTHON: "Python", _CANN: "CANN", _DEVICE: "Ascend Hardware", _HCCL: "HCCL"}
    lanes = {(_HCCL, 0): "Group 0 Communication", (_HCCL, 1): "Plane 0"}
    stack = "/x/site-packages/torch/_tensor.py(9): item;\r\n/home/me/train.py(12): step;\r\n/home/me/train.py(40): main"
    return [
        _span("ProfilerStep#7", _PYTHON, LOOP, 1000, 1000, "cpu_op"),
        _span("aten::linear", _PYTHON, LOOP, 1100, 50, "cpu_op", {"Sequence number": 3, "Fwd thread id": 0}),
        _span("AddmmBackward0", _PYTHON, ENGINE, 1200, 50, "cpu_op", {"Sequence number": 3, "Fwd thread id": 1}),
        _span("aten::item", _PYTHON, LOOP, 1300, 600, "cpu_op", {"Call stack": stack, "Input Dims": ";\r\n2,3"}),
        _span("AscendCL@aclrtSynchronizeStream", _CANN, LOOP, 1310, 580, None, {"connection_id": 5}),
        _span("AscendCL@aclopCompileAndExecute", _CANN, QUEUE, 1120, 30, None, {"connection_id": 6}),
        _span("MatMul", _DEVICE, 2, 1150, 100, None, {"Task Type": "AI_CORE"}),
        _span("MatMulGrad", _DEVICE, 2, 1250, 100.5, None, {"Task Type": "AI_CORE"}),
        _span("hcom_allReduce_1", _HCCL, 0, 1400, 500, None, {"data_type": "FP32", "alg_type": "RING"}),
        _span("Notify_Wait", _HCCL, 1, 1400, 400, None, {"transport type": "LOCAL", "size(Byte)": 0}),
        _span("Memcpy", _HCCL, 1, 1800, 100, None, {"transport type": "SDMA", "size(Byte)": 64, "link type": "HCCS"}),
        {"ph": "C", "name": "AI Core Freq", "pid": _DEVICE, "tid": 0, "ts": _time(1000), "args": {"MHz": 1800}},
        _flow(1150, LOOP, 1100),
        _flow(1250, ENGINE, 1200),
        *(
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
            for pid, name in names.items()
        ),
        *(
            {"ph": "M", "name": "thread_name", "pid": pid, "tid": lane, "args": {"name": name}}
            for (pid, lane), name in lanes.items()
        ),
        *extra,
    ]


def _time(microseconds: float) -> str:
    return f"1736408883{microseconds:010.3f}"


def _span(
    name: str, pid: int, tid: int, ts: float, dur: float, cat: str | None, arguments: Row | None = None
) -> dict[str, Any]:
    entry = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": _time(ts), "dur": dur, "args": arguments or {}}
    return entry if cat is None else {**entry, "cat": cat}


def _flow(device: float, thread: int, launched: float) -> Row:
    device_ns = int(_time(device).replace(".", ""))
    return {
        "ph": "s", "cat": "async_npu", "name": "torch_to_npu", "id": device_ns, "pid": _PYTHON, "tid": thread,
        "ts": _time(launched),
    }  # fmt: skip


OLD_COLUMNS = (
    "Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Input Shapes"
)
NEW_COLUMNS = OLD_COLUMNS.replace("Step Id,", "Step Id,Device_id,").replace("Block Dim", "Block Num")
LEVEL_0_COLUMNS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"
_VALUES = {
    "Step Id": "7", "Device_id": "0", "Model ID": "1", "Task ID": "9", "Stream ID": "2", "OP State": "dynamic",
    "Accelerator Core": "AI_CORE", "Wait Time(us)": "0", "Block Dim": "24", "Block Num": "24",
    "Input Shapes": '"""4,8;8"""',
}  # fmt: skip


def kernel_rows(columns: str, **other: str) -> str:
    """A ``kernel_details.csv`` with two kernels and a collective, as a release with these columns writes it."""
    rows = [
        {"Name": "MatMul", "Type": "MatMulV2", "Start Time(us)": _time(1150) + "\t", "Duration(us)": "100.0"},
        {"Name": "MatMulGrad", "Type": "MatMulV2", "Start Time(us)": _time(1250) + "\t", "Duration(us)": "100.5"},
        {
            "Name": "hcom_allReduce_1", "Type": "hcom_allReduce_", "Accelerator Core": "HCCL",
            "Start Time(us)": _time(1400) + "\t", "Duration(us)": "500.0", "OP State": "N/A", "Stream ID": "N/A",
        },
    ]  # fmt: skip
    lines = [",".join((_VALUES | row | other).get(name, "N/A") for name in columns.split(",")) for row in rows]
    return "\n".join([columns, *lines]) + "\n"


def write_npu_profile(
    folder: Path, *, rank: int = 0, trace: str | None = None, kernels: str | None = None, version: str = ""
) -> Path:
    """A result folder of torch_npu's profiler under ``folder``; an empty text leaves a file out."""
    result = folder / f"host_{rank}_20260101_ascend_pt"
    output = result / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    info: dict[str, Any] = {"rank_id": str(rank), "config": {"experimental_config": {"_profiler_level": "Level1"}}}
    if version:
        info["torch_npu_version"] = version
    (result / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    texts = {
        "trace_view.json": json.dumps(npu_trace()) if trace is None else trace,
        "kernel_details.csv": kernel_rows(OLD_COLUMNS) if kernels is None else kernels,
    }
    for name, text in texts.items():
        if text:
            (output / name).write_text(text)
    return result
