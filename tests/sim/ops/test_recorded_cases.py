"""Recording changes nothing: cases of this directory give the same bits and gradients while they are recorded."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CASES = (
    "cases_composite",
    "cases_experts",
    "cases_layers",
    "cases_layout",
    "cases_norms",
    "cases_quantization",
    "cases_rest",
    "cases_vision:case_intersection_over_union_variants",
    "cases_models:case_speech_model_with_packed_lstm_and_ctc",
)


@pytest.mark.sim
def test_cases_have_the_same_results_recorded(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = simulated([HERE / "run_recorded.py", *CASES])
    lines = [line for line in done.stdout.splitlines() if line.startswith("OUTCOME ")]
    assert lines, done.stderr[-3000:]
    outcome = json.loads(lines[-1].removeprefix("OUTCOME "))
    assert len(outcome) > len(CASES)
    failed = {name: error for name, error in outcome.items() if error is not None}
    assert not failed, "\n".join(f"{name}: {error}" for name, error in failed.items())
