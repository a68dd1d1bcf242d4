"""Claims go to a child process on the simulated NPU; verdicts come back. Nothing here imports torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from npuport import sim
from npuport.findings import Claim, Outcome, Verdict
from npuport.proof.kept import VerdictCache, verdict_of

SECONDS = 20.0
"""For the start of torch and torch_npu, with a margin for a busy machine; each claim adds its own."""
SECONDS_EACH = 10.0

_HOME = os.fspath(Path(__file__).parents[2])


def prove(
    claims: Sequence[Claim],
    chip: str = "Ascend910B3",
    *,
    seconds: float | None = None,
    cache: VerdictCache | None = None,
) -> list[Verdict]:
    """A verdict for each claim. ``seconds`` limit the whole run; claims that it did not reach could not run.

    Where torch, torch_npu or a compiler is missing, none can, and the verdicts say which. A claim whose verdict is in
    the ``cache`` is not run again.
    """
    kept = {claim: cache.read(claim, chip) for claim in claims} if cache is not None else {}
    verdicts = {claim: verdict for claim, verdict in kept.items() if verdict is not None}
    new = [claim for claim in claims if claim not in verdicts]
    for claim, verdict in zip(new, _run_all(new, chip, seconds) if new else (), strict=True):
        verdicts[claim] = verdict
        if cache is not None:
            cache.write(claim, chip, verdict)
    return [verdicts[claim] for claim in claims]


def _run_all(claims: Sequence[Claim], chip: str, seconds: float | None) -> list[Verdict]:
    deadline = time.monotonic() + (SECONDS + SECONDS_EACH * len(claims) if seconds is None else seconds)
    try:
        variables = {**os.environ, **sim.environment(sim.SimOptions(chip=chip)), "OMP_NUM_THREADS": "1"}
        variables["PYTHONPATH"] += os.pathsep + _HOME  # the child works elsewhere, where a relative path leads nowhere
    except sim.SimulationUnavailable as error:
        return [Verdict(Outcome.UNTRIED, error.problem.rstrip("."))] * len(claims)
    verdicts: list[Verdict] = []
    while len(verdicts) < len(claims):
        found, why = _in_child(claims[len(verdicts) :], variables, deadline - time.monotonic())
        verdicts += found
        if len(verdicts) < len(claims):  # the child died of the next claim; those after it get another child
            verdicts.append(Verdict(Outcome.UNTRIED, why))
    return verdicts


def _in_child(claims: Sequence[Claim], variables: dict[str, str], seconds: float) -> tuple[list[Verdict], str]:
    """The verdicts of one child, in order, and why it ended if some are missing."""
    if seconds <= 0:
        return [], "there was no time left for the proof"
    with tempfile.TemporaryDirectory(prefix="npuport-proof-", ignore_cleanup_errors=True) as directory:
        asked, told = Path(directory, "claims.json"), Path(directory, "verdicts.jsonl")
        asked.write_text(json.dumps([asdict(claim) for claim in claims]), encoding="utf-8")
        command = [sys.executable, "-m", "npuport.proof.worker", os.fspath(asked), os.fspath(told)]
        # Outside the user's folder, whose modules might be called like one of ours.
        why = _run(command, {**variables, "NPUPORT_SIM_RUN": directory, "NPUPORT_AUTO": "0"}, directory, seconds)
        lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    return [verdict_of(json.loads(line)) for line in lines], why


def _run(command: Sequence[str], variables: dict[str, str], directory: str, seconds: float) -> str:
    """Run the child to its end or for ``seconds``; how it ended."""
    try:
        done = subprocess.run(
            command, env=variables, cwd=directory, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the proof took longer than {seconds:.1f} s"
    said = done.stderr.strip().splitlines()[-1:] or [""]
    return f"the process of the proof ended with {done.returncode}: {said[0]}"
