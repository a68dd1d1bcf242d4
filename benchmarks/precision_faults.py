"""Faults put into training steps: does `npuport precision compare` name them first, and does mindstudio-probe?

The faults and models of tests/precision: 40 in four models that thresholds were set with, 24 in three held-out ones.
Each pair of steps is recorded and compared by both tools in one run, with the same faulty calls and the same noise
below them; that the two computed the same to the bit is checked. Two clean pairs of each model must stay without
suspect. Pairs are written to a file as they are done: a run that was ended goes on where it was.

    python benchmarks/precision_faults.py --results FILE [--peer PYTHON] [--noise 1e-6] [--held-out]

``PYTHON`` is that of an environment with mindstudio-probe and the same torch (and transformers, for the held-out
Llama). The last lines are the table of docs/precision.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "precision"))

import torch
from fault_models import CASES
from faults import FAULTS, NOISES, Fault, is_right, step_and_digest
from held_out import HELD_OUT_CASES, HELD_OUT_FAULTS

from npuport.precision.operators.calls import Step
from npuport.precision.operators.summing import statistics_of
from npuport.precision.operators.suspects import compare

REFERENCE_SEED, SEED, CLEAN_SEEDS = 1, 2, (2, 3)
WORKER = Path(__file__).with_name("precision_faults_peer.py")


@dataclass(frozen=True)
class Pair:
    """A healthy step and one with other noise, and with a fault or none."""

    noise: str
    model: str
    fault: str | None
    seed: int


@dataclass(frozen=True)
class Verdict:
    """What a tool names first in a pair (nothing: ""), and whether that is where the fault is. ``failure``: the tool
    gave an error instead. ``is_seen``: the tool records a call that the fault is in."""

    first: str
    is_right: bool
    failure: str = ""
    is_seen: bool = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="JSON lines; pairs in it are not measured again")
    parser.add_argument("--peer", help="the python of an environment with mindstudio-probe")
    parser.add_argument("--noise", action="append", choices=NOISES)
    parser.add_argument("--held-out", action="store_true", help="the models that no threshold was set with")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = pairs(options.noise or list(NOISES), options.held_out)
    known = read(options.results)
    peer = Peer(options.peer) if options.peer else None
    for number, pair in enumerate(wanted):
        before = known.get(pair, {})
        found = {**(before or ours(pair)), **(theirs(pair, peer) if peer and not is_scored_by_peer(before) else {})}
        if found != before:
            known[pair] = found
            write(options.results, pair, found)
            print(f"{number + 1} of {len(wanted)}: {pair}", file=sys.stderr, flush=True)
    show({pair: known[pair] for pair in wanted})
    if peer is not None:
        print(f"mindstudio-probe {peer.close()}; torch {torch.__version__}")
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print("processor time of this run: npuport {:.0f} s, mindstudio-probe {:.0f} s".format(
        *(one.ru_utime + one.ru_stime for one in usage)))  # fmt: skip


def pairs(noises: Sequence[str], held_out: bool) -> list[Pair]:
    faults, cases = (HELD_OUT_FAULTS, HELD_OUT_CASES) if held_out else (FAULTS, CASES)
    return [
        Pair(noise, model, fault, seed)
        for noise in noises
        for model in filter(can_be_built, cases)
        for fault, seed in (
            *((one.name, SEED) for one in faults if one.model == model),
            *((None, seed) for seed in CLEAN_SEEDS),
        )
    ]


def can_be_built(model: str) -> bool:
    """Whether what a model needs is there: transformers does not import beside torch_npu without CANN."""
    try:
        {**CASES, **HELD_OUT_CASES}[model].model()
    except ImportError:
        print(f"left out: {model}")
        return False
    return True


def fault_of(pair: Pair) -> Fault | None:
    both = (one for one in (*FAULTS, *HELD_OUT_FAULTS) if (one.model, one.name) == (pair.model, pair.fault))
    return next(both, None)


def ours(pair: Pair) -> dict[str, Verdict | str]:
    """The verdicts of npuport, by how it was used, and the digest of what the step computed."""
    fault = fault_of(pair)
    reference = reference_of(pair.noise, pair.model)
    candidate, digest = step_and_digest(pair.model, NOISES[pair.noise], pair.seed, fault)
    found: dict[str, Verdict | str] = {"digest": digest}
    for name, form in (("npuport, tensors", lambda step: step), ("npuport, statistics", of_statistics)):
        suspects = compare(form(reference), form(candidate)).suspects
        call = suspects[0].call if suspects else None
        is_it = call is not None and fault is not None and is_right(fault, call.operator, call.module)
        found[name] = Verdict(f"{call.operator} ({call.module})" if call else "", is_it)
    return found


@lru_cache(maxsize=1)
def reference_of(noise: str, model: str) -> Step:
    return step_and_digest(model, NOISES[noise], REFERENCE_SEED)[0]


def of_statistics(step: Step) -> Step:
    """A step as if only its statistics had been recorded, without checksums."""
    refs = {ref for call in step.calls for ref in (*call.inputs, *call.outputs)}
    return replace(step, storages={}, statistics={ref: statistics_of(step.tensor(ref)) for ref in refs})


class Peer:
    """mindstudio-probe, in a process of its own that stays: a line in, a line out."""

    def __init__(self, python: str) -> None:
        paths = os.pathsep.join([str(Path(__file__).parent.parent / "src"), os.environ.get("PYTHONPATH", "")])
        inside = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [python, str(WORKER)], env=inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._version = str(self._answer()["version"])

    def ask(self, pair: Pair) -> dict[str, Any]:
        assert self._process.stdin is not None
        print(json.dumps({**asdict(pair), "reference_seed": REFERENCE_SEED}), file=self._process.stdin, flush=True)
        return self._answer()

    def close(self) -> str:
        """End the process; its version of mindstudio-probe."""
        self._process.communicate()
        return self._version

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{WORKER.name} ended with {self._process.wait()}")
        return dict(json.loads(line))


def theirs(pair: Pair, peer: Peer) -> dict[str, Verdict | str]:
    answer = peer.ask(pair)
    found: dict[str, Verdict | str] = {f"msprobe, {mode}": Verdict(**one) for mode, one in answer["verdicts"].items()}
    return {**found, "digest of msprobe": answer["digest"]}


def is_scored_by_peer(found: Mapping[str, Verdict | str]) -> bool:
    return "digest of msprobe" in found


def read(path: Path) -> dict[Pair, dict[str, Verdict | str]]:
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}"))
    return {
        Pair(**line["pair"]): {
            name: Verdict(**one) if isinstance(one, dict) else one for name, one in line["found"].items()
        }
        for line in lines
    }


def write(path: Path, pair: Pair, found: Mapping[str, Verdict | str]) -> None:
    plain = {name: asdict(one) if isinstance(one, Verdict) else one for name, one in found.items()}
    with path.open("a", encoding="utf-8") as file:
        print(json.dumps({"pair": asdict(pair), "found": plain}), file=file)


def show(known: Mapping[Pair, Mapping[str, Verdict | str]]) -> None:
    """What was missed, and the table."""
    tools = list(
        dict.fromkeys(name for found in known.values() for name, one in found.items() if isinstance(one, Verdict))
    )
    scored = {pair: found for pair, found in known.items() if is_scored_by_peer(found)}
    unlike = [pair for pair, found in scored.items() if found["digest"] != found["digest of msprobe"]]
    for tool in tools:
        for pair, one in verdicts(known, tool):
            if one.failure or (bool(one.first) if pair.fault is None else not one.is_right):
                hidden = "" if one.is_seen else "; the fault is in no call that the tool records"
                print(f"{tool}: {pair}: {one.failure or one.first or 'nothing'}{hidden}")
    print("\n".join(table(known, tools)))
    if scored:
        print(f"both had the same step to the bit in {len(scored) - len(unlike)} of {len(scored)} pairs", *unlike)


def table(known: Mapping[Pair, Mapping[str, Verdict | str]], tools: Sequence[str]) -> Iterator[str]:
    yield f"| noise of every result | | {' | '.join(tools)} |"
    yield "| --- " * (len(tools) + 2) + "|"
    for noise in dict.fromkeys(pair.noise for pair in known):
        of_noise = {pair: found for pair, found in known.items() if pair.noise == noise}
        by_tool = [list(verdicts(of_noise, tool)) for tool in tools]
        faulty, clean = sum(one.fault is not None for one in of_noise), sum(one.fault is None for one in of_noise)
        right = [str(sum(one.is_right for _, one in found)) for found in by_tool]
        alarms = [str(sum(bool(one.first) for pair, one in found if pair.fault is None)) for found in by_tool]
        yield f"| {noise} | first is right, of {faulty} faults | {' | '.join(right)} |"
        yield f"| | alarms, of {clean} clean pairs | {' | '.join(alarms)} |"
    failed = [sum(bool(one.failure) for _, one in verdicts(known, tool)) for tool in tools]
    if any(failed):
        yield f"| all | the tool failed, of {len(known)} pairs | {' | '.join(map(str, failed))} |"


def verdicts(known: Mapping[Pair, Mapping[str, Verdict | str]], tool: str) -> Iterator[tuple[Pair, Verdict]]:
    for pair, found in known.items():
        one = found.get(tool)
        if isinstance(one, Verdict):
            yield pair, one


if __name__ == "__main__":
    main()
