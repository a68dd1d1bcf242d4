"""Pairs of steps of tests/precision/faults.py, recorded and compared by mindstudio-probe: run by precision_faults.py in
an environment that has it. Reads a pair a line (JSON), writes the verdicts on it in a line.

The noise and the fault are put in below the tool, at the dispatcher; it does not see them, and what it computes for
itself stays exact. A verdict is right if the first API that it flags is one whose call contains the faulty operator
call, in its forward or its backward pass. Each dump is taken in a fork of this process: every start of the tool wraps
all functions once more.
"""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "precision"))

import torch
from faults import FAULTS, NOISES, Device, Fault, digest_of, is_right, prepared
from held_out import HELD_OUT_FAULTS
from msprobe.core.compare.find_first.analyzer import DiffAnalyzer
from msprobe.core.dump.hook_manager import BaseHookManager
from msprobe.pytorch import PrecisionDebugger
from msprobe.pytorch.compare.pt_compare import pt_compare
from msprobe.pytorch.dump.api_dump.api_register import ApiTemplate
from msprobe.pytorch.dump.api_dump.hook_module import HOOKModule


class WatchedDevice(Device):
    """A device that knows in which API of mindstudio-probe the faulty call lies, and lets the tool's own calls be."""

    def __init__(self, noise: float, seed: int, fault: Fault | None, model: torch.nn.Module) -> None:
        super().__init__(noise, seed, fault)
        self.faulty: set[str] = set()
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._modules: list[str] = []
        self._of_sequence: dict[int, tuple[set[str], str]] = {}
        for module in model.modules():
            module.register_forward_pre_hook(self._enters)
            module.register_forward_hook(self._leaves)

    def _enters(self, module: torch.nn.Module, _: Any) -> None:
        self._modules.append(self._paths[id(module)])

    def _leaves(self, *_: Any) -> None:
        self._modules.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        apis = _apis()
        if apis is None:
            return func(*args, **(kwargs or {}))
        node = torch._C._current_autograd_node()
        if node is not None:
            apis, module = self._of_sequence.get(node._sequence_nr(), (set(), ""))
        else:
            module = self._modules[-1] if self._modules else ""
            # Calls that make no node find the number of the node before them.
            self._of_sequence.setdefault(torch.autograd._get_sequence_nr() - 1, (apis, module))
        before, thread = self.seen, threading.get_ident()
        is_off, BaseHookManager.inner_switch[thread] = BaseHookManager.inner_switch[thread], True
        result = super().__torch_dispatch__(func, types, args, kwargs)
        BaseHookManager.inner_switch[thread] = is_off
        fault = self.fault
        if fault is not None:
            is_at_fault = self.seen > before and before == fault.which if fault.change is not None else True
            if is_at_fault and is_right(fault, str(func), module):
                self.faulty |= apis
        return result


def _apis() -> set[str] | None:
    """The APIs that are being called; None in what the tool computes for itself."""
    frame = sys._getframe(2)
    found: set[str] = set()
    while frame is not None:
        if "/msprobe/" in frame.f_code.co_filename:
            one = frame.f_locals.get("self")
            if frame.f_code.co_name == "forward" and isinstance(one, ApiTemplate):
                found.add(f"{one.prefix_api_name}{HOOKModule.get_module_count(one.prefix_api_name)}")
            elif not found and frame.f_code.co_name not in _PASSED:
                return None
        frame = frame.f_back
    return found


_PASSED = {"__call__", "_call_func", "tensor_module_forward", "npu_module_forward", "wrapper", "inner", "api_function"}


def dumped(
    folder: Path, task: str, model_name: str, noise: float, seed: int, fault: Fault | None
) -> tuple[set[str], str]:
    """Record a step; the APIs in which the fault is, and the digest of what the step computed."""
    config = folder.with_suffix(".json")
    entry = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
    config.write_text(
        json.dumps({
            "task": task, "dump_path": str(folder), "rank": [], "step": [], "level": "L1", "risk_level": "ALL",
            task: entry,
        }),
        encoding="utf-8",
    )  # fmt: skip
    model, batch, optimizer = prepared(model_name, fault)
    debugger = PrecisionDebugger(config_path=str(config))
    device = WatchedDevice(noise, seed, fault, model)
    debugger.start(model)
    with device:
        model(batch).backward()
        optimizer.step()
    debugger.stop()
    debugger.step()
    for process in folder.glob("step*/proc*"):
        process.rename(process.with_name("rank0"))
    return device.faulty, digest_of(model)


def first_rows(reference: Path, candidate: Path, out: Path) -> dict[str, str]:
    """The names of the first row that is an error or a warning, and of the first that is an error."""
    paths = {"npu_path": f"{candidate}/step0/rank0/dump.json", "bench_path": f"{reference}/step0/rank0/dump.json"}
    pt_compare({**paths, "is_print_compare_log": False}, str(out))
    with next(out.glob("*.csv")).open(encoding="utf-8-sig", newline="") as file:
        rows = [(row["Result"], row["NPU Name"]) for row in csv.DictReader(file)]
    return {
        way: next((name for result, name in rows if result in wanted), "")
        for way, wanted in (("", ("error", "warning")), (", errors", ("error",)))
    }


def first_difference(reference: Path, candidate: Path, out: Path) -> dict[str, str]:
    """What `compare -da` names."""
    DiffAnalyzer(f"{candidate}/step0", f"{reference}/step0", str(out)).analyze()
    for found in out.glob("diff_analyze_*.json"):
        for entries in json.loads(found.read_text(encoding="utf-8")).values():
            return {"": str(entries[0]["op_name"]) if entries else ""}
    return {"": ""}


@dataclass(frozen=True)
class Way:
    """A way to compare what a task of the tool records; ``name`` is that of its first verdict."""

    task: str
    name: str
    names_first: Callable[[Path, Path, Path], dict[str, str]]
    others: tuple[str, ...] = ()  # of its further verdicts, behind the name


WAYS = (
    Way("tensor", "tensors", first_rows, (", errors",)),
    Way("statistics", "statistics", first_rows, (", errors",)),
    Way("statistics", "-da", first_difference),
)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # the tool says much
    os.dup2(nowhere, 2)
    torch.set_num_threads(1)
    print(json.dumps({"version": version("mindstudio-probe")}), file=answers, flush=True)
    faults = {(one.model, one.name): one for one in (*FAULTS, *HELD_OUT_FAULTS)}
    with tempfile.TemporaryDirectory(prefix="peer") as temporary:
        for number, line in enumerate(sys.stdin):
            pair = json.loads(line)
            fault = faults.get((pair["model"], pair["fault"]))
            print(json.dumps(judged(Path(temporary), number, pair, fault)), file=answers, flush=True)


def judged(top: Path, number: int, pair: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
    """The verdicts on a pair by way and kind of row, and the digest of what its second step computed."""
    model, noise = pair["model"], NOISES[pair["noise"]]
    verdicts: dict[str, Any] = {}
    digests: set[str] = set()
    for task, ways in groupby(WAYS, key=lambda way: way.task):
        reference, candidate = top / f"{task}_{model}_{pair['noise']}", top / f"candidate{number}_{task}"
        if not reference.exists():
            for old in top.glob(f"{task}_*/"):
                shutil.rmtree(old)
            in_a_fork(dumped, reference, task, model, noise, pair["reference_seed"], None)
        faulty, digest = in_a_fork(dumped, candidate, task, model, noise, pair["seed"], fault)
        digests.add(digest)
        for way in ways:
            out, failure = top / f"out{number}_{way.name}", ""
            try:
                firsts = in_a_fork(way.names_first, reference, candidate, out)
            except RuntimeError as error:
                firsts, failure = dict.fromkeys(("", *way.others), ""), str(error)
            for kind, name in firsts.items():
                verdicts[way.name + kind] = {
                    "first": name,
                    "is_right": name.split(".forward")[0].split(".backward")[0] in faulty,
                    "failure": failure,
                    "is_seen": fault is None or bool(faulty),
                }
            shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(candidate)
    return {"verdicts": verdicts, "digest": " ".join(sorted(digests))}


def in_a_fork(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives in a fork of this process; RuntimeError with what it raised there."""
    here, there = multiprocessing.Pipe(duplex=False)

    def told() -> None:
        try:
            there.send((function(*arguments), ""))
        except Exception as error:
            there.send((None, f"{type(error).__name__}: {error}"))

    process = multiprocessing.get_context("fork").Process(target=told)
    process.start()
    there.close()
    try:
        result, failure = here.recv()
    except EOFError:
        result, failure = None, "the process ended"
    process.join()
    if failure:
        raise RuntimeError(failure)
    return result


if __name__ == "__main__":
    main()
