"""Faults put into training steps: does `npuport precision compare` name them first, and does mindstudio-probe?

The faults and models of tests/precision: 40 in four models that thresholds were set with, 24 in three held-out ones.
The same faulty calls, the same noise, below both tools; two clean pairs of each model must stay without suspect.

    python benchmarks/precision_faults.py [--peer PYTHON] [--noise 1e-6] [--held-out]

``PYTHON`` is that of an environment with mindstudio-probe and torch (and transformers, for the held-out Llama).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "precision"))

import torch
from fault_models import CASES
from faults import FAULTS, NOISES, Fault, is_right, step_of
from held_out import HELD_OUT_CASES, HELD_OUT_FAULTS

from npuport.precision.operators.calls import Step
from npuport.precision.operators.summing import statistics_of
from npuport.precision.operators.suspects import compare

CLEAN_SEEDS = (2, 3)
PEER = Path(__file__).with_name("precision_faults_peer.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="the python of an environment with mindstudio-probe")
    parser.add_argument("--noise", action="append", choices=NOISES)
    parser.add_argument("--held-out", action="store_true", help="the models that no threshold was set with")
    options = parser.parse_args()
    torch.set_num_threads(1)
    noises = options.noise or list(NOISES)
    faults, models = (HELD_OUT_FAULTS, list(HELD_OUT_CASES)) if options.held_out else (FAULTS, list(CASES))
    models = [model for model in models if can_be_built(model)]
    faults = tuple(fault for fault in faults if fault.model in models)
    print(f"{len(faults)} faults in {', '.join(models)}", flush=True)
    for noise in noises:
        for what, form in (("tensors", lambda step: step), ("statistics", of_statistics)):
            show(f"npuport, {what}", noise, list(verdicts(NOISES[noise], faults, models, form)))
        if options.peer:
            for mode in ("tensor", "statistics", "da"):
                found = [one for one in of_peer(options.peer, noise, mode, options.held_out) if one[0] in models]
                show(f"msprobe, {mode}", noise, found)


Verdict = tuple[str, str | None, str, bool]  # model, fault or None, what was named first, whether that is right


def show(tool: str, noise: str, found: list[Verdict]) -> None:
    faulty, clean = ([one for one in found if (one[1] is None) == is_clean] for is_clean in (False, True))
    right, alarms = sum(one[3] for one in faulty), sum(bool(one[2]) for one in clean)
    said = f"first is right {right} of {len(faulty)}, alarms {alarms} of {len(clean)} clean pairs"
    print(f"noise {noise:5} {tool:20} {said}")
    for model, fault, first, is_it in faulty:
        if not is_it:
            print(f"    missed: {model}, {fault}: {first or 'nothing'}")
    sys.stdout.flush()


def verdicts(
    noise: float, faults: tuple[Fault, ...], models: list[str], form: Callable[[Step], Step]
) -> Iterator[Verdict]:
    for model in models:
        reference = form(step_of(model, noise, 1))
        of_model: list[Fault | None] = [fault for fault in faults if fault.model == model]
        for fault, seed in [*((one, 2) for one in of_model), *((None, seed) for seed in CLEAN_SEEDS)]:
            suspects = compare(reference, form(step_of(model, noise, seed, fault))).suspects
            call = suspects[0].call if suspects else None
            is_it = call is not None and fault is not None and is_right(fault, call.operator, call.module)
            yield model, fault.name if fault else None, f"{call.operator} ({call.module})" if call else "", is_it


def of_statistics(step: Step) -> Step:
    """A step as if only its statistics had been recorded, without checksums."""
    refs = {ref for call in step.calls for ref in (*call.inputs, *call.outputs)}
    return replace(step, storages={}, statistics={ref: statistics_of(step.tensor(ref)) for ref in refs})


def of_peer(python: str, noise: str, mode: str, held_out: bool) -> Iterator[Verdict]:
    command = [python, str(PEER), "--noise", noise, "--mode", mode, *(["--held-out"] if held_out else [])]
    paths = os.pathsep.join([str(Path(__file__).parent.parent / "src"), os.environ.get("PYTHONPATH", "")])
    inside = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=inside, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            yield one["model"], one["fault"], one["failure"] or one["first"], one["is_right"]


def can_be_built(model: str) -> bool:
    """Whether what a model needs is there: transformers does not import beside torch_npu without CANN."""
    try:
        {**CASES, **HELD_OUT_CASES}[model].model()
    except ImportError:
        print(f"left out: {model}")
        return False
    return True


if __name__ == "__main__":
    main()
