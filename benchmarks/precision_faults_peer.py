"""The faulty pairs of tests/precision/faults.py, recorded and compared by mindstudio-probe: run by
precision_faults.py in an environment that has it.

The noise and the fault are put in below both tools, at the dispatcher. What mindstudio-probe computes for itself stays
exact. A verdict is right if the first API that it flags is one whose call contains the faulty operator call, in its
forward or its backward pass. Prints one JSON object a line.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "precision"))

import torch
from fault_models import CASES
from faults import FAULTS, NOISES, Device, Fault, is_right, prepared
from held_out import HELD_OUT_CASES, HELD_OUT_FAULTS
from msprobe.core.compare.find_first.analyzer import DiffAnalyzer
from msprobe.pytorch import PrecisionDebugger
from msprobe.pytorch.compare.pt_compare import pt_compare
from msprobe.pytorch.dump.api_dump.api_register import ApiTemplate
from msprobe.pytorch.dump.api_dump.hook_module import HOOKModule

CLEAN_SEEDS = (2, 3)


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
            self._of_sequence[torch.autograd._get_sequence_nr() - 1] = (apis, module)
        before = self.seen
        result = super().__torch_dispatch__(func, types, args, kwargs)
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


def dumped(folder: Path, task: str, model_name: str, noise: float, seed: int, fault: Fault | None) -> set[str]:
    """Record a step; the APIs in which the fault is."""
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
    PrecisionDebugger._instance = None
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
    return device.faulty


def first_flagged(reference: Path, candidate: Path, out: Path) -> str:
    """The name of the first row that is an error or a warning."""
    paths = {"npu_path": f"{candidate}/step0/rank0/dump.json", "bench_path": f"{reference}/step0/rank0/dump.json"}
    pt_compare({**paths, "is_print_compare_log": False}, str(out))
    with next(out.glob("*.csv")).open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            if row["Result"] in ("error", "warning"):
                return row["NPU Name"]
    return ""


def first_difference(reference: Path, candidate: Path, out: Path) -> str:
    """What `compare -da` names."""
    DiffAnalyzer(f"{candidate}/step0", f"{reference}/step0", str(out)).analyze()
    for found in out.glob("diff_analyze_*.json"):
        for entries in json.loads(found.read_text(encoding="utf-8")).values():
            return str(entries[0]["op_name"]) if entries else ""
    return ""


MODES = {
    "tensor": ("tensor", first_flagged),
    "statistics": ("statistics", first_flagged),
    "da": ("statistics", first_difference),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", action="append", choices=[*NOISES, "none"])
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--model")
    options = parser.parse_args()
    torch.set_num_threads(1)
    faults, cases = (HELD_OUT_FAULTS, HELD_OUT_CASES) if options.held_out else (FAULTS, CASES)
    for noise in options.noise or NOISES:
        for mode in options.mode or MODES:
            if options.model is not None:
                for line in verdicts(noise, mode, faults, [options.model]):
                    print(json.dumps({"noise": noise, "mode": mode, **line}), flush=True)
                continue
            for model in cases:  # a process for each: every start of the tool wraps all functions once more
                command = [sys.executable, __file__, "--noise", noise, "--mode", mode, "--model", model]
                command += ["--held-out"] if options.held_out else []
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
                )
                lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
                print("\n".join(lines), flush=True)


def verdicts(noise: str, mode: str, faults: tuple[Fault, ...], models: list[str]) -> Iterator[dict[str, Any]]:
    task, flagged = MODES[mode]
    size = NOISES.get(noise, 0.0)
    with tempfile.TemporaryDirectory(prefix="peer") as temporary:
        top = Path(temporary)
        for model in models:
            reference = top / f"reference_{model}"
            with quiet():
                dumped(reference, task, model, size, 1, None)
            mine = [fault for fault in faults if fault.model == model]
            for number, (fault, seed) in enumerate([*((one, 2) for one in mine), *((None, s) for s in CLEAN_SEEDS)]):
                candidate, out = top / f"candidate{number}", top / f"out{number}"
                try:
                    with quiet():
                        faulty = dumped(candidate, task, model, size, seed, fault)
                        name = flagged(reference, candidate, out)
                    failure = ""
                except Exception as error:
                    faulty, name, failure = set(), "", f"{type(error).__name__}: {error}"
                api = name.split(".forward")[0].split(".backward")[0]
                shutil.rmtree(candidate, ignore_errors=True)
                shutil.rmtree(out, ignore_errors=True)
                yield {
                    "model": model,
                    "fault": fault.name if fault is not None else None,
                    "first": name,
                    "is_right": api in faulty,
                    "at": sorted(faulty)[:4],
                    "failure": failure,
                }
            shutil.rmtree(reference, ignore_errors=True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


if __name__ == "__main__":
    main()
