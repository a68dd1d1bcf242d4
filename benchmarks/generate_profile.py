"""Write a result of torch_npu's profiler (text, level 1, with stacks) of any size.

    python benchmarks/generate_profile.py FOLDER --events 1000000

Steps of 190 kernels each, with about as many events of each sort for a kernel as the profile of a real training step
has: operators with shapes and stacks, Python frames, the task queue, CANN's calls, the device's tasks, flows between
them, an all-reduce with its tasks, the overlap lanes and, nearly half of all, counters.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

PYTHON, CANN, DEVICE, HCCL, OVERLAP, COUNTERS = 1000, 2000, 3000, 4000, 5000, 6000
LOOP, QUEUE, ENGINE = 1000, 1001, 1002
KERNELS = 190
STEP = 120_000.0  # us
START = 1_736_408_883_000_000.0
OPERATORS = ("aten::linear", "aten::addmm", "aten::gelu", "aten::native_layer_norm", "aten::add", "aten::softmax")
KINDS = ("MatMulV2", "Gelu", "LayerNormV3", "Add", "SoftmaxV2", "Transpose")
STACK = ";\r\n".join(
    f"/home/user/project/{name}.py({line}): {function}"
    for name, line, function in (("model", 63, "forward"), ("layers", 118, "forward"), ("train", 301, "train_step"))
)
COLUMNS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,"
    "Output Data Types,Output Formats,Context ID,aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,"
    "aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,"
    "aic_fixpipe_time(us),aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),"
    "aiv_vec_ratio,aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),"
    "aiv_mte3_ratio,aiv_icache_miss_rate,cube_utilization(%)"
)
EVENTS_OF_A_STEP = KERNELS * 51 + 60


def write_profile(folder: Path, events: int, *, rank: int = 0) -> Path:
    """A result folder with about so many events under ``folder``."""
    result = folder / f"host_{rank}_20260101000000000_ascend_pt"
    output = result / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    steps = max(1, round(events / EVENTS_OF_A_STEP))
    with (output / "trace_view.json").open("w") as file:
        file.write("[")
        file.write(", ".join(json.dumps(one) for one in _names()))
        for step in range(steps):
            for one in _trace(step):
                file.write(", ")
                file.write(json.dumps(one))
        file.write("]")
    with (output / "kernel_details.csv").open("w") as file:
        file.write(COLUMNS + "\n")
        for step in range(steps):
            file.writelines(_rows(step))
    with (output / "step_trace_time.csv").open("w") as file:
        file.write(
            "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
            "Communication(Not Overlapped and Exclude Receive),Preparing\n"
        )
        for step in range(steps):
            file.write(f"0,{step},{KERNELS * 500.0},5000.0,0.0,5000.0,20000.0,{STEP},0.0,5000.0,300.0\n")
    info = {
        "config": {
            "common_config": {"activities": ["CPU", "NPU"], "record_shapes": True, "with_stack": True},
            "experimental_config": {"_profiler_level": "Level1", "_aic_metrics": "PipeUtilization"},
        },
        "rank_id": rank,
        "torch_npu_version": "2.7.1",
        "cann_version": "8.2.RC1",
    }
    (result / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    (result / "profiler_metadata.json").write_text(json.dumps({"ENV_VARIABLES": {}}))
    return result


def _names() -> Iterator[dict[str, object]]:
    for pid, name in (
        (PYTHON, "Python"), (CANN, "CANN"), (DEVICE, "Ascend Hardware"), (HCCL, "HCCL"),
        (OVERLAP, "Overlap Analysis"), (COUNTERS, "Acc PMU"),
    ):  # fmt: skip
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    for pid, tid, name in (
        (HCCL, 0, "Group 0 Communication"), (HCCL, 1, "Plane 0"), (OVERLAP, 0, "Computing"),
        (OVERLAP, 1, "Communication"), (OVERLAP, 2, "Communication(Not Overlapped)"), (OVERLAP, 3, "Free"),
    ):  # fmt: skip
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def _trace(step: int) -> Iterator[dict[str, object]]:
    at = START + step * STEP
    yield _span(f"ProfilerStep#{step}", PYTHON, LOOP, at, STEP, "cpu_op")
    yield _span("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", PYTHON, LOOP, at, 900, "cpu_op")
    yield _span("Optimizer.step#AdamW.step", PYTHON, LOOP, at + 105_000, 4000, "cpu_op")
    for number in range(KERNELS):
        yield from _kernel(step, number, at + 1000 + number * 550)
    yield from _all_reduce(at + 106_000)


def _kernel(step: int, number: int, at: float) -> Iterator[dict[str, object]]:
    """What one kernel leaves in a trace: 50 events."""
    which = number % len(OPERATORS)
    name, thread = OPERATORS[which], ENGINE if number > KERNELS // 3 else LOOP
    correlation = step * KERNELS + number
    is_forward = thread == LOOP
    shapes = {
        "Sequence number": number if is_forward else KERNELS - number,
        "Fwd thread id": 0 if is_forward else 1,
        "Input Dims": "32,224;\r\n224,64;\r\n64",
        "Input type": "float;\r\nfloat;\r\nfloat",
        "Call stack": STACK,
    }
    for depth in range(4):
        yield _span(name, PYTHON, thread, at + depth, 60 - 2 * depth, "cpu_op", shapes)
    for depth in range(7):
        names = {"Python id": correlation * 7 + depth, "Python parent id": correlation * 7 + depth - 1}
        where = f"project/layers.py({100 + depth}): forward"
        yield _span(where, PYTHON, LOOP, at - 10 + depth, 80 - depth, "python_function", names)
    yield _span("Enqueue", PYTHON, thread, at + 20, 8, "enqueue", {"correlation_id": correlation})
    yield _span(f"Dequeue@{KINDS[which]}", PYTHON, QUEUE, at + 30, 20, "dequeue", {"correlation_id": correlation})
    device = at + 90
    for phase, ts, lane in (("s", at + 20, thread), ("f", at + 30, QUEUE)):
        yield _flow(phase, "async_task_queue", "enqueue_to_dequeue", correlation, PYTHON, lane, ts)
    for one in ("aclnnGetWorkspace", "AscendCL@aclnnKernel", "Node@launch", "Runtime@KernelLaunch"):
        yield _span(
            one, CANN, QUEUE, at + 32, 12, None, {"Thread Id": QUEUE, "level": "acl", "connection_id": correlation}
        )
    for task in ("EVENT_RECORD", "EVENT_WAIT", KINDS[which]):
        core = "AI_CORE" if task == KINDS[which] else task
        length = 400.0 + number if task == KINDS[which] else 0.02
        names = {"Task Type": core, "Physic Stream Id": 2, "Task Id": number, "connection_id": correlation}
        yield _span(f"{task}_{number}", DEVICE, 2, device, length, None, names)
    yield _flow("s", "HostToDevice", f"HostToDevice{correlation}", str(correlation), CANN, QUEUE, at + 32)
    yield _flow("f", "HostToDevice", f"HostToDevice{correlation}", str(correlation), DEVICE, 2, device)
    yield _flow("s", "async_npu", "torch_to_npu", round(device * 1000), PYTHON, thread, at + 1)
    yield _flow("f", "async_npu", "torch_to_npu", round(device * 1000), DEVICE, 2, device)
    yield _span("Computing", OVERLAP, 0, device, 400.0 + number, None)
    yield _span("Free", OVERLAP, 3, device + 400 + number, max(150.0 - number, 0.5), None)
    for counter in range(23):
        yield {"ph": "C", "name": "read_bandwidth", "ts": f"{at + counter:.3f}", "pid": COUNTERS, "tid": 0,
               "args": {"value": counter, "acc_id": number % 8}}  # fmt: skip


def _all_reduce(at: float) -> Iterator[dict[str, object]]:
    yield _span(
        "hcom_allReduce__586_0_1", HCCL, 0, at, 5000, None, {"data_type": "FP32", "alg_type": "RING", "count": 1000}
    )
    for task in range(25):
        names = {"transport type": "SDMA", "link type": "HCCS", "size(Byte)": 4_194_304, "src rank": 0, "dst rank": 1,
                 "bandwidth(GB/s)": 18.0, "stream id": 4, "task id": task, "notify_id": "0"}  # fmt: skip
        yield _span("Notify_Wait", HCCL, 1, at + task * 200, 100, None, {**names, "size(Byte)": 0})
        yield _span("Memcpy", HCCL, 1, at + task * 200 + 100, 100, None, names)
    yield _span("Communication", OVERLAP, 1, at, 5000, None)
    yield _span("Communication(Not Overlapped)", OVERLAP, 2, at, 5000, None)


def _rows(step: int) -> Iterator[str]:
    at = START + step * STEP
    tail = ",".join(["1.0"] * 25)
    for number in range(KERNELS):
        kind = KINDS[number % len(KINDS)]
        device = at + 1000 + number * 550 + 90
        yield (
            f"{step},0,4294967295,{number},2,{kind}_{number},{kind},dynamic,AI_CORE,{device:.3f}\t,{400.0 + number},"
            f'{150.0 - number if number < 150 else 0.0},24,0,NO,"""32,224;224,64;64""",FLOAT;FLOAT;FLOAT,ND;ND;ND,'
            f'"""32,64""",FLOAT,ND,N/A,{tail}\n'
        )
    names = f"{step},0,4294967295,0,4,hcom_allReduce__586_0_1,hcom_allReduce_,N/A,HCCL"
    nothing = ",".join(["N/A"] * 32)
    yield f"{names},{at + 106_000:.3f}\t,5000.0,0,0,0,NO,{nothing}\n"


def _span(
    name: str, pid: int, tid: int, ts: float, dur: float, cat: str | None, arguments: dict[str, object] | None = None
) -> dict[str, object]:
    entry: dict[str, object] = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": f"{ts:.3f}", "dur": dur}
    return {**entry, "args": arguments or {}} if cat is None else {**entry, "cat": cat, "args": arguments or {}}


def _flow(phase: str, cat: str, name: str, number: object, pid: int, tid: int, ts: float) -> dict[str, object]:
    return {"ph": phase, "bp": "e", "name": name, "id": number, "pid": pid, "tid": tid, "ts": f"{ts:.3f}", "cat": cat}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args()
    print(write_profile(arguments.folder, arguments.events))


if __name__ == "__main__":
    main()
