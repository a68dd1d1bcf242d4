"""Curves of pairs of runs whose difference is known."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.errors import UserError
from npuport.precision.curves.curve import Curve, Run, pair_of
from npuport.precision.curves.judging import judge
from npuport.precision.curves.reading import read_run

STEPS = range(1, 1201)


def base(step: int, seed: int = 0) -> float:
    """A loss as of training: it falls, and each batch is harder or easier than the last."""
    return 2.0 + 8.0 / (1 + step / 60) + 0.08 * random.Random(1000 * seed + step).gauss(0, 1)


def noise(step: int, size: float, seed: int = 7) -> float:
    return 1 + size * random.Random(f"{seed}-{step}").gauss(0, 1)


def run(loss: Callable[[int], float], norm: Callable[[int], float] | None = None, steps: range = STEPS) -> Run:
    curves = {"loss": Curve("loss", {step: loss(step) for step in steps})}
    if norm is not None:
        curves["grad_norm"] = Curve("grad_norm", {step: norm(step) for step in steps})
    return Run("x", curves, "text")


REFERENCE = run(base, lambda step: 1 + base(step) / 10)


def names(candidate: Run, again: Run | None = None) -> tuple[bool, set[str]]:
    judgement = judge(REFERENCE, candidate, again)
    return judgement.passes, {one.name for one in judgement.observations}


def failing(candidate: Run) -> set[str]:
    return {one.criterion.name for one in judge(REFERENCE, candidate).measured if not one.holds}


def test_a_healthy_pair_passes_without_a_word() -> None:
    healthy = run(lambda step: base(step) * noise(step, 1e-3), lambda step: (1 + base(step) / 10) * noise(step, 0.02))
    assert names(healthy) == (True, set())
    assert failing(healthy) == set()


def test_bfloat16_s_noise_passes() -> None:
    assert names(run(lambda step: base(step) * noise(step, 4e-3))) == (True, set())


def test_a_slow_drift_fails_and_its_beginning_is_named() -> None:
    drifting = run(lambda step: base(step) * noise(step, 1e-3) * (1 + max(0, step - 400) * 1e-4))
    passes, seen = names(drifting)
    assert not passes
    assert {"drifts", "parts"} <= seen
    assert failing(drifting) == {"mean-loss", "mean-loss-from-step-21"}
    step = next(one.step for one in judge(REFERENCE, drifting).observations if one.name == "parts")
    assert step is not None
    assert 400 <= step <= 500


def test_a_spike_fails_though_the_means_hold() -> None:
    spiking = run(lambda step: base(step) * noise(step, 1e-3) * (1.8 if step in (700, 701) else 1))
    assert names(spiking) == (False, {"spike"})
    assert failing(spiking) == set()
    assert [one.step for one in judge(REFERENCE, spiking).observations] == [700]


def test_a_spike_of_both_is_the_data_s() -> None:
    both = run(lambda step: base(step) * (1.8 if step == 700 else 1))
    judgement = judge(both, run(lambda step: base(step) * noise(step, 1e-3) * (1.8 if step == 700 else 1)))
    assert judgement.passes
    assert not judgement.observations


def test_a_shift_by_one_step_is_recognised() -> None:
    shifted = run(lambda step: base(step + 1) * noise(step, 1e-4))
    assert "shifted" in names(shifted)[1]
    text = next(one.text for one in judge(REFERENCE, shifted).observations if one.name == "shifted")
    assert "moved by 1 " in str(text)


def test_nan_fails_at_its_step() -> None:
    broken = run(lambda step: base(step) if step < 300 else math.nan)
    judgement = judge(REFERENCE, broken)
    assert not judgement.passes
    assert next((one.name, one.step) for one in judgement.observations) == ("not-finite", 300)


def test_nan_of_the_reference_is_no_fault_of_the_candidate() -> None:
    both = run(lambda step: base(step) if step < 1100 else math.nan)
    assert judge(both, both).passes


def test_other_steps_are_compared_all_the_same() -> None:
    odd = run(lambda step: base(step) * noise(step, 1e-3), steps=range(1, 1201, 2))
    assert names(odd)[0]
    smooth = Run("x", {"loss": Curve("loss", {step: 3 - step / 1000 for step in range(10, 1200, 10)})}, "text")
    between = Run("x", {"loss": Curve("loss", {step: 3 - step / 1000 for step in range(5, 1205, 10)})}, "text")
    judgement = judge(smooth, between)
    assert judgement.passes
    assert [one.name for one in judgement.observations] == ["interpolated"]


def test_a_constant_offset_fails_and_its_side_is_named() -> None:
    offset = run(lambda step: base(step) * noise(step, 1e-3) * 1.03)
    passes, seen = names(offset)
    assert not passes
    assert "biased" in seen
    assert {"first-loss", "mean-loss"} <= failing(offset)


def test_a_gradient_norm_that_is_off_fails_alone() -> None:
    off = run(base, lambda step: (1 + base(step) / 10) * 1.2)
    assert names(off) == (False, set())
    assert failing(off) == {"mean-grad-norm"}


def test_a_run_that_ended_early_fails() -> None:
    assert names(run(base, steps=range(1, 901))) == (False, {"ends-early", "few-steps"})


def test_what_the_reference_shows_against_itself_is_no_fault() -> None:
    candidate = run(lambda step: base(step) * noise(step, 0.02, seed=1))
    again = run(lambda step: base(step) * noise(step, 0.02, seed=2))
    assert not names(candidate)[0]
    assert names(candidate, again)[0]
    assert not names(run(lambda step: base(step) * noise(step, 0.06, seed=1)), again)[0]


def test_nothing_in_common_is_no_agreement() -> None:
    assert names(Run("x", {}, "text")) == (False, {"nothing-in-common"})


LOGS = {
    "nanogpt.log": "step 0: train loss 4.2874, val loss 4.2823\niter 0: loss 4.25\niter 10: loss 3.50, time 9ms\n",
    "hf.log": "{'loss': 4.25, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.1, 'step': 0}\n"
    "{'loss': 3.5, 'grad_norm': nan, 'learning_rate': 4e-05, 'epoch': 0.2, 'step': 10}\n",
    "megatron.log": " iteration        0/     100 | lm loss: 4.25E+00 | loss scale: 1.0 | grad norm: 1.5 |\n"
    " iteration       10/     100 | lm loss: 3.5E+00 | loss scale: 1.0 | grad norm: 1.1 |\n",
    "trainer_log.jsonl": '{"current_steps": 0, "loss": 4.25, "lr": 1e-4}\n{"current_steps": 10, "loss": 3.5}\n{"curr',
    "trainer_state.json": json.dumps({"log_history": [{"step": 0, "loss": 4.25}, {"step": 10, "loss": 3.5}]}),
    "wandb.csv": '"Step","run - train/loss","run - train/loss__MIN"\n"0","4.25","1"\n"10","3.5","1"\n',
    "metrics.csv": "epoch,step,train_loss\n0,0,4.25\n0,10,3.5\n",
    "ranks.log": "[rank0]: step 0 loss 4.25\n[rank1]: step 0 loss 7.0\n[rank0]: step 10 loss 3.5\n",
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_logs_of_many_forms(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(LOGS[name], encoding="utf-8")
    loss = read_run(tmp_path / name).curves["loss"]
    assert loss.values[10] == 3.5
    assert loss.values[0] in (4.25, 4.2874)


def test_quantities_beside_the_loss(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(LOGS["megatron.log"], encoding="utf-8")
    curves = read_run(tmp_path / "a").curves
    assert (curves["grad_norm"].values[10], curves["loss_scale"].values[0]) == (1.1, 1.0)
    (tmp_path / "b").write_text("step 5 val loss 1.5 aux_loss 3.0\n", encoding="utf-8")
    assert set(read_run(tmp_path / "b").curves) == {"eval_loss"}


@pytest.mark.parametrize("text", ["", "hello\n", "import torch\nloss = f(x)\n"])
def test_a_log_without_curves_is_one_clear_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="holds no curve"):
        read_run(tmp_path / "a.log")


def test_curves_that_never_overlap_give_no_pair() -> None:
    assert pair_of(Curve("loss", {1: 1.0}), Curve("loss", {5: 1.0, 9: 2.0})) is None
