"""Formulas for operators that the CPU has no kernel of, against what the simulated NPU computes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from operator_samples import doubled, with_result  # noqa: E402

from npuport.cli.precision_check_ops import check_folder  # noqa: E402
from npuport.precision.checking.calls import check_call  # noqa: E402
from npuport.precision.operators.calls import Call, Step, TensorRef, read_step, write_step  # noqa: E402
from npuport.precision.references.formulas import known_formulas  # noqa: E402

HERE = Path(__file__).parent
DTYPES = ("float32", "bfloat16")

pytestmark = pytest.mark.sim


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the recorded steps, one for each dtype."""
    from npuport import sim

    try:
        sim.environment()
    except sim.SimulationUnavailable as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("npu")
    command = [sys.executable, "-m", "npuport", "run", "--sim", "--", sys.executable, "npu_samples.py", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def formula_calls(step: Step) -> Iterator[Call]:
    return (call for call in step.calls if call.operator in known_formulas())


@pytest.mark.parametrize("number", range(2), ids=DTYPES)
def test_healthy_calls_pass_and_doubled_results_do_not(samples: Path, number: int) -> None:
    step = read_step(samples / f"step{number}" / "rank0.pt")
    judged = 0
    for call in formula_calls(step):
        check = check_call(call, step)
        assert check.status != "fail", (call.operator, [str(one.text) for one in check.results])
        if check.status == "pass":
            judged += 1
            for position, other in doubled(call, step):
                assert other.status == "fail", (call.operator, position)
    assert judged > 150


def test_every_formula_is_checked(samples: Path) -> None:
    step = read_step(samples / "step0" / "rank0.pt")
    passed = {call.operator for call in formula_calls(step) if check_call(call, step).status == "pass"}
    assert set(known_formulas()) - passed == set()


def test_arguments_that_a_formula_does_not_know_are_not_judged(samples: Path) -> None:
    step = read_step(samples / "step0" / "rank0.pt")
    call = next(one for one in formula_calls(step) if one.operator == "npu.npu_fusion_attention.default")
    dropping = replace(call, keywords={**call.keywords, "keep_prob": 0.5})
    check = check_call(dropping, step)
    assert (check.status, str(check.reason)) == ("not judged", "no reference formula for keep_prob=0.5")
    unknown = replace(call, operator="npu.npu_yolo_boxes_encode.default")
    assert str(check_call(unknown, step).reason) == "no kernel on the CPU, and no reference formula"


def test_what_is_not_judged_is_told_by_name(samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = read_step(samples / "step0" / "rank0.pt")
    call = next(one for one in step.calls if one.operator == "npu.npu_swiglu.default")
    odd = [replace(call, index=n, operator=f"npu.npu_unheard_{n % 2}.default") for n in range(3)]
    write_step(tmp_path, replace(step, calls=[*odd, replace(call, index=3)]))
    assert check_folder(tmp_path, "*", "", None, None, as_json=False) == 0
    told = capsys.readouterr().out
    assert "1 right, 0 wrong, 3 not judged" in told
    assert "3  no kernel on the CPU, and no reference formula: npu.npu_unheard_0 (2), npu.npu_unheard_1" in told


def test_a_wrong_call_has_a_script_that_runs_without_the_operator(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = read_step(samples / "step0" / "rank0.pt")
    for operator in ("npu.npu_swiglu.default", "npu.npu_silu_.default"):
        call = next(one for one in step.calls if one.operator == operator)
        wrong = with_result(call, step, 0, 2 * step.tensor(call.outputs[0]))
        write_step(tmp_path / operator, replace(wrong[1], calls=[wrong[0]]))
        assert check_folder(tmp_path / operator, "*", "", None, tmp_path / "bug", as_json=False) == 1
    assert capsys.readouterr().out.count("2 x what it should be") == 2
    for script in (tmp_path / "bug").glob("*.py"):
        done = subprocess.run(
            [sys.executable, str(script), "--device", ""], capture_output=True, text=True, check=False
        )
        assert (done.returncode, "FAILS" in done.stdout) == (1, True), done.stderr


def test_a_result_written_into_an_argument_is_recorded_after_the_call(samples: Path) -> None:
    """npu_apply_adam.out does not say in its schema that it writes, nor does npu_apply_rotary_pos_emb."""
    step = read_step(samples / "step0" / "rank0.pt")
    for operator in ("npu.npu_apply_adam.out", "npu.npu_apply_rotary_pos_emb.default"):
        call = next(one for one in step.calls if one.operator == operator)
        before: list[TensorRef] = call.keywords["out"] if "out" in call.keywords else list(call.arguments[:2])
        for old, new in zip(before, call.outputs, strict=True):
            assert not torch.equal(step.tensor(old), step.tensor(new)), operator
