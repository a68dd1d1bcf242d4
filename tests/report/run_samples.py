"""The documents of small runs, as `npuport run --report FILE.json` writes them, with --sim and without."""

from __future__ import annotations

from typing import Any

GIB = 1 << 30


def place(line: int, source: str = "", library: str | None = None) -> dict[str, Any]:
    where = {"path": "train.py", "line": line, "function": "main", "library": library, "source": source}
    return {**where, "library_source": None}


def event(line: int, count: int, per_step: float, **more: Any) -> dict[str, Any]:
    return {
        "place": place(line, **more.pop("at", {})),
        "count": count,
        "bytes": 64,
        "per_step": per_step,
        "ranks": [],
        **more,
    }


def operator(name: str, status: str, calls: int = 3) -> dict[str, Any]:
    tensor = {"name": "self", "dtype": "float32", "shape": [4, 8], "host": False}
    return {
        "name": name, "status": status, "reason": "has an NPU kernel", "source": "dispatcher of torch_npu",
        "version": "2.13.0", "certainty": "measured", "calls": calls, "dtypes": ["float32"], "distinct_shapes": 1,
        "shapes": [{"inputs": [tensor], "calls": calls, "first_step": 0, "place": place(7)}],
    }  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    """Ten steps; ``changes`` replace parts, and those of "run" are merged into it."""
    run = {
        "command": ["python", "train.py", "--lr", "1"], "chip": "Ascend910B3", "devices": 1, "memory_gib": 64,
        "torch": "2.13.0", "torch_npu": "2.13.0", "started": "2026-11-30T01:00:00+00:00", "seconds": 2.5,
        "exit_code": 0, "complete": True, "steps": 10,
    }  # fmt: skip
    process = {
        "rank": None, "pid": 7, "argv": ["train.py"], "steps": 10, "seconds": 2.5, "operator_calls": 9,
        "ended": True, "error": None,
    }  # fmt: skip
    varying = {"input": "mat1", "dimension": 0, "smallest": 16, "largest": 96, "distinct": 7}
    changing = {
        "operator": "aten::addmm", "shapes": 7, "new_after_warm_up": 5, "last_new_step": 6, "varying": [varying],
    }  # fmt: skip
    memory = {
        "rank": None, "device": 0, "allocated": 300 << 20, "reserved": 312 << 20, "limit": 64 * GIB, "step": 1,
        "place": place(9), "looked_at": 299 << 20,
        "holders": [{"place": place(9), "bytes": 200 << 20, "tensors": 3}],
    }  # fmt: skip
    base: dict[str, Any] = {
        "schema": "npuport-run/1",
        "npuport": "0.0",
        "run": run | changes.pop("run", {}),
        "error": None,
        "processes": [process],
        "operators": [
            operator("aten::lgamma.out", "cpu"),
            operator("aten::mm", "native"),
            operator("aten::t", "composed"),
        ],
        "refusals": [],
        "fallbacks": [event(11, 10, 1.0, operator="aten::lgamma.out")],
        "synchronizations": [
            event(12, 20, 2.0, at={"source": "print(loss)"}, operator="aten::_local_scalar_dense", cause="value"),
            event(13, 10, 1.0, operator="aten::nonzero", cause="shape"),
        ],
        "copies": [event(5, 10, 1.0, direction="host to device", pinned=False, non_blocking=False)],
        "shapes": {
            "warm_up": 2,
            "looked_for": True,
            "last_new_step": 6,
            "changing": [{"place": place(8), "new_after_warm_up": 5, "operators": [changing]}],
        },
        "collectives": [event(10, 10, 1.0, operator="c10d::allreduce_", dtype="float32", group=2)],
        "memory": [memory],
        "chips": [
            {"name": "Ascend910B3", "memory_gib": 64, "fits": True, "share": 0.0048, "lacks_bfloat16": False},
            {"name": "Ascend910A", "memory_gib": 32, "fits": True, "share": 0.0095, "lacks_bfloat16": True},
        ],
    }
    return base | changes


def migration(**changes: Any) -> dict[str, Any]:
    """What became of CUDA code in a run of two processes; ``changes`` replace parts."""

    def site(line: int, effect: str, before: str, after: str, code: str = "") -> dict[str, Any]:
        return {
            "path": "train.py", "line": line, "before": before, "after": after, "effect": effect, "code": code,
            "processes": 2,
        }  # fmt: skip

    base: dict[str, Any] = {
        "processes": [
            {"pid": 7, "command": ["python", "train.py"], "modules": 1},
            {"pid": 8, "command": ["python", "train.py"], "modules": 1},
        ],
        "modules": [
            {"path": "odd.py", "sites": 0, "problem": "the converted file would not parse (NP101)"},
            {"path": "train.py", "sites": 4, "problem": ""},
        ],
        "sites": [
            site(3, "same", 'torch.zeros(2, device="cuda")', 'torch.zeros(2, device="npu")', "NP101"),
            site(4, "at run time", "x.to(args.device)", "a CUDA device that comes here becomes the NPU"),
            site(5, "no effect", "torch.backends.cudnn.benchmark = True", "cuDNN's flags", "NP402"),
            site(6, "left", "model.cuda()", "a class of this project has a cuda() of its own", "NP104"),
            site(9, "refused", "torch.cuda.temperature()", "it has no counterpart on an NPU", "NP203"),
        ],
        "libraries": [
            {"path": "/lib/peft/a.py", "line": 4, "call": "Tensor.cuda", "after": "Tensor.npu", "processes": 1}
        ],
        "stand_ins": ["flash_attn"],
        "variables": ["CUDA_VISIBLE_DEVICES=0 is passed on as ASCEND_RT_VISIBLE_DEVICES=0"],
    }
    return base | changes


def migration_document(**changes: Any) -> dict[str, Any]:
    """The report of a run on a device; ``changes`` of "run" are merged into it, others replace parts."""
    run = {
        "command": ["train.py", "--lr", "1"], "npu": True, "torch": "2.13.0", "torch_npu": None,
        "started": "2026-11-30T01:00:00+00:00", "seconds": 2.5, "exit_code": 0,
    }  # fmt: skip
    base = {
        "schema": "npuport-migration/1",
        "npuport": "0.0",
        "run": run | changes.pop("run", {}),
        "migration": migration(),
    }
    return base | changes
