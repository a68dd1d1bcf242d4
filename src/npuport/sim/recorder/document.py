"""The report of a run: the records of its processes as one document (report/schemas/npuport-run-1.json)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from npuport import __version__
from npuport.facts.chips import all_chips
from npuport.sim.recorder import places, shapes
from npuport.sim.recorder.places import Places
from npuport.sim.recorder.statuses import ORDER, refusal, status_of

SCHEMA = "npuport-run/1"
GIB = 1 << 30

_DTYPES = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16",
    "Float": "float32", "Double": "float64", "BFloat16": "bfloat16", "Bool": "bool", "ComplexHalf": "complex32",
    "ComplexFloat": "complex64", "ComplexDouble": "complex128", "Float8_e5m2": "float8_e5m2",
    "Float8_e4m3fn": "float8_e4m3fn", "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64",
}  # fmt: skip

_LISTED_SHAPES = 20  # of one operator, most frequent first; the document says how many there were
_LISTED_HOLDERS = 25  # lines that hold memory at the peak

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """What the launcher knows of a run. ``exit_code`` is None where no command was started."""

    command: Sequence[str]
    chip: str
    devices: int
    memory_gib: int
    torch: str
    torch_npu: str
    exit_code: int | None


def build(run: Run, records: Sequence[Record], migration: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The document. ``records`` are those that the processes left, in any order.

    ``migration`` is what became of CUDA code, where some was converted for the run.
    """
    ordered = sorted(records, key=lambda one: (one["rank"] is None, one["rank"] or 0, one["started"], one["pid"]))
    failing = sorted((one for one in ordered if one["error"]), key=lambda one: one["until"])
    where = [Places(one["sites"], one["directory"]) for one in ordered]
    pairs = list(zip(ordered, where, strict=True))
    steps = max((one["steps"] for one in ordered), default=0)
    events = _events(pairs)
    operators = _operators(pairs, run)
    memory = _memory(pairs, run)
    return {
        "schema": SCHEMA,
        "npuport": __version__,
        "run": {
            "command": list(run.command),
            "chip": run.chip,
            "devices": run.devices,
            "memory_gib": run.memory_gib,
            "torch": run.torch,
            "torch_npu": run.torch_npu,
            "started": _timestamp(min((one["started"] for one in ordered), default=None)),
            "seconds": round(max((one["seconds"] for one in ordered), default=0.0), 3),
            "exit_code": run.exit_code,
            "complete": not run.exit_code and bool(ordered) and all(one["ended"] for one in ordered),
            "steps": steps,
        },
        "error": _error(failing[0]) if failing else None,
        "processes": [_process(record) for record in ordered],
        "operators": operators,
        "refusals": _refusals(pairs, run),
        "fallbacks": events("fallback", _fallback),
        "synchronizations": sorted(
            [
                *events("synchronization", _synchronization),
                *events("copy", _copy_that_waits),
                *events("wait", lambda function, _detail: {"operator": function, "cause": "wait"}),
            ],
            key=_most_often,
        ),
        "copies": events("copy", _copy),
        "shapes": _shapes(pairs, steps),
        "collectives": events("collective", _collective),
        "memory": memory,
        "chips": _chips(memory, operators),
        "migration": migration,
    }


def _timestamp(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _process(record: Record) -> dict[str, Any]:
    return {
        "rank": record["rank"],
        "pid": record["pid"],
        "argv": record["argv"],
        "steps": record["steps"],
        "seconds": round(record["seconds"], 3),
        "operator_calls": sum(_calls(one) for one in record["operators"]),
        "ended": record["ended"] is not None,
        "error": _error(record),
    }


def _error(record: Record) -> dict[str, Any] | None:
    """The exception that ended a process."""
    error = record["error"]
    return error and {
        "rank": record["rank"],
        "type": error["type"],
        "message": error["message"],
        "place": error["site"] and places.place(error["site"], record["directory"]),
    }


def _calls(operator: Mapping[str, Any]) -> int:
    calls: int = operator["unlisted_calls"] + sum(one["calls"] for one in operator["shapes"])
    return calls


# operators


def _operators(pairs: Sequence[tuple[Record, Places]], run: Run) -> list[dict[str, Any]]:
    merged: dict[str, list[tuple[Mapping[str, Any], Places]]] = defaultdict(list)
    met: dict[str, dict[str, str]] = defaultdict(dict)
    for record, where in pairs:
        for operator in record["operators"]:
            merged[operator["name"]].append((operator, where))
        for name, dtype, certainty, *_place_and_count in record["refusals"]:
            met[name][dtype] = certainty
    found = [_operator(name, seen, met[name], run) for name, seen in merged.items()]
    return sorted(found, key=lambda one: (ORDER.index(one["status"]), -one["calls"], one["name"]))


def _operator(
    name: str, seen: Sequence[tuple[Mapping[str, Any], Places]], met: Mapping[str, str], run: Run
) -> dict[str, Any]:
    by_inputs: dict[str, dict[str, Any]] = {}
    for operator, where in seen:
        for one in operator["shapes"]:
            inputs = [_input(*tensor) for tensor in one["inputs"]]
            entry = by_inputs.setdefault(
                str(inputs),
                {"inputs": inputs, "calls": 0, "first_step": one["first_step"], "place": where[one["site"]]},
            )
            entry["calls"] += one["calls"]
            entry["first_step"] = min(entry["first_step"], one["first_step"])
    ordered = sorted(by_inputs.values(), key=lambda one: (-one["calls"], one["first_step"], str(one["inputs"])))
    dtypes = {tensor["dtype"] for one in ordered for tensor in one["inputs"] if tensor["dtype"] and not tensor["host"]}
    status = status_of(name, dtypes, run.chip, run.torch_npu, met)
    return {
        "name": name,
        "status": status.status,
        "reason": status.reason,
        "source": status.source,
        "version": status.version,
        "certainty": status.certainty,
        "calls": sum(_calls(operator) for operator, _ in seen),
        "dtypes": sorted(dtypes),
        "distinct_shapes": len(by_inputs) + sum(operator["unlisted_shapes"] for operator, _ in seen),
        "shapes": ordered[:_LISTED_SHAPES],
    }


def _input(name: str, dtype: str, shape: Sequence[int], device: str = "npu") -> dict[str, Any]:
    return {"name": name, "dtype": _DTYPES.get(dtype, dtype), "shape": list(shape), "host": device == "cpu"}


def _refusals(pairs: Sequence[tuple[Record, Places]], run: Run) -> list[dict[str, Any]]:
    """Operators that met a dtype which the chip does not take, by line."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record, where in pairs:
        for name, dtype, certainty, site, count in record["refusals"]:
            place = where[site]
            known = refusal(name, dtype, certainty, run.chip)
            entry = merged.setdefault(
                (name, dtype, *places.key(place)),
                {"operator": name, "dtype": dtype, "certainty": certainty, "reason": known.reason, "place": place,
                 "count": 0},
            )  # fmt: skip
            entry["count"] += count
    return sorted(merged.values(), key=lambda one: (one["certainty"], -one["count"], one["operator"]))


# events

Describe = Callable[[str, str], "dict[str, Any] | None"]  # of operator and detail; None: the event does not count here


def _events(pairs: Sequence[tuple[Record, Places]]) -> Callable[[str, Describe], list[dict[str, Any]]]:
    """A function of (kind, description) that gives the events of a kind, those of several ranks as one."""

    def of_kind(kind: str, describe: Describe) -> list[dict[str, Any]]:
        merged: dict[tuple[Any, ...], dict[str, Any]] = {}
        for record, where in pairs:
            for one, operator, detail, site, count, size, *in_steps in record["events"]:
                described = describe(operator, detail) if one == kind else None
                if described is None:
                    continue
                place = where[site]
                entry = merged.setdefault(
                    (operator, detail, *places.key(place)),
                    {**described, "place": place, "count": 0, "bytes": 0, "per_step": 0.0, "ranks": set()},
                )
                entry["count"] += count
                entry["bytes"] += size
                entry["per_step"] += _per_step(record["steps"], count, *in_steps) or 0.0
                entry["ranks"].add(record["rank"])
        return sorted((_finished(entry) for entry in merged.values()), key=_most_often)

    return of_kind


def _per_step(steps: int, count: int, in_first_step: int, last_step: int, in_last_step: int) -> float | None:
    """How often an event came in a step after the first one; None with fewer than two steps.

    What comes after the last step (an evaluation, saving) is no step's, and neither is what comes in the first one,
    which holds all that came before.
    """
    if steps < 2:
        return None
    return (count - in_first_step - (in_last_step if last_step == steps else 0)) / (steps - 1)


def _finished(entry: dict[str, Any]) -> dict[str, Any]:
    """``per_step`` is that of one process: ranks do the same work side by side."""
    ranks = sorted(rank for rank in entry["ranks"] if rank is not None)
    return {**entry, "per_step": round(entry["per_step"] / len(entry["ranks"]), 2), "ranks": ranks}


def _most_often(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return (-one["per_step"], -one["count"], places.key(one["place"]))


def _fallback(operator: str, _detail: str) -> dict[str, Any]:
    return {"operator": operator}


def _synchronization(operator: str, detail: str) -> dict[str, Any]:
    return {"operator": operator, "cause": detail}


def _copy_that_waits(operator: str, detail: str) -> dict[str, Any] | None:
    direction, *flags = detail.split(",")
    if direction != "device to host" or "non_blocking" in flags:
        return None
    return {"operator": operator, "cause": "copy"}


def _copy(_operator: str, detail: str) -> dict[str, Any]:
    direction, *flags = detail.split(",")
    return {"direction": direction, "pinned": "pinned" in flags, "non_blocking": "non_blocking" in flags}


def _collective(operator: str, detail: str) -> dict[str, Any]:
    dtype, _, group = detail.partition(",")
    return {"operator": operator, "dtype": _DTYPES.get(dtype, dtype), "group": int(group or 0)}


# shapes and memory


def _shapes(pairs: Sequence[tuple[Record, Places]], steps: int) -> dict[str, Any]:
    """The changes of the process in which shapes change most; ranks do the same work."""
    found = [shapes.changes(record["operators"], where, record["steps"]) for record, where in pairs]
    return {
        "warm_up": shapes.WARM_UP,
        "looked_for": steps > shapes.WARM_UP + 1,
        "last_new_step": max(
            (shapes.last_new_step(record["operators"], record["steps"]) for record, _ in pairs), default=0
        ),
        "changing": max(found, key=len, default=[]),
    }


def _memory(pairs: Sequence[tuple[Record, Places]], run: Run) -> list[dict[str, Any]]:
    """One entry for each device that a process used."""
    found = []
    for record, where in pairs:
        peaks = {one["device"]: one for one in record["memory"]}
        allocator = {device: (allocated, reserved) for device, allocated, reserved in record["allocator"]}
        for device in sorted({*peaks, *allocator}):
            peak = peaks.get(device)
            allocated, reserved = allocator.get(device, (0, 0))
            holders = _holders(peak["alive"], where) if peak else []
            found.append(
                {
                    "rank": record["rank"],
                    "device": device,
                    "allocated": max(allocated, peak["bytes"] if peak else 0),
                    "reserved": reserved,
                    "limit": run.memory_gib * GIB,
                    "step": peak["step"] if peak else None,
                    "place": where[peak["site"]] if peak else None,
                    "looked_at": peak["looked_at"] if peak else 0,
                    "holders": holders[:_LISTED_HOLDERS],
                }
            )
    return found


def _holders(alive: Iterable[Sequence[int]], where: Places) -> list[dict[str, Any]]:
    found = [{"place": where[site], "bytes": size, "tensors": tensors} for site, size, tensors in alive]
    return sorted(found, key=lambda one: (-one["bytes"], places.key(one["place"])))


def _chips(memory: Sequence[Mapping[str, Any]], operators: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each chip of known memory whether what the allocator took from a device fits, and whether it knows bf16."""
    needed = max((one["reserved"] or one["allocated"] for one in memory), default=0)
    uses_bf16 = any("bfloat16" in one["dtypes"] for one in operators)
    return [
        {
            "name": one.name,
            "memory_gib": one.memory_gib,
            "fits": needed <= one.memory_gib * GIB,
            "share": round(needed / (one.memory_gib * GIB), 4),
            "lacks_bfloat16": uses_bf16 and not one.bf16,
        }
        for one in all_chips()
        if one.memory_gib
    ]
