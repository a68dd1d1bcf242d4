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


# Lines as these programs print them, and what is in them.
REAL = {
    "Megatron-LM": (
        " [2024-05-01 10:00:21] iteration        1/   10000 | consumed samples:           64 | elapsed time per "
        "iteration (ms): 20123.4 | learning rate: 1.500000E-07 | global batch size:    "
        "64 | lm loss: 1.094245E+01 | load_balancing_loss: 1.002E+00 | loss scale: 65536.0 | grad norm: 5.231 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        " validation loss at iteration 1 | lm loss value: 1.080000E+01 | lm loss PPL: 4.9E+04 | \n",
        {"loss": {1: 10.94245}, "grad_norm": {1: 5.231}, "lr": {1: 1.5e-07}, "loss_scale": {1: 65536.0}},
    ),
    "torchtitan, in colours": (
        "\x1b[0m[titan] 2025-06-01 10:00:00,123 - root - INFO - \x1b[31mstep:  3  \x1b[32mloss:  8.1309  "
        "\x1b[38;2;180;60;0mgrad_norm:  1.2345  \x1b[38;2;54;234;195mmemory:  1.02GiB(1.07%)\x1b[39m\n",
        {"loss": {3: 8.1309}, "grad_norm": {3: 1.2345}},
    ),
    "transformers, with its bar and its summary": (
        "  0%|          | 0/30 [00:00<?, ?it/s]\r 33%|###       | 10/30 [00:05<00:10,  2.0it/s]     \r"
        "{'loss': 2.5123, 'grad_norm': 3.25, 'learning_rate': 4.9e-05, 'epoch': 0.33}\n"
        "{'eval_loss': 2.4, 'eval_runtime': 1.2, 'epoch': 0.33}\n"
        "{'loss': 2.1, 'grad_norm': 3.0, 'learning_rate': 4e-05, 'epoch': 0.66}\n"
        "{'train_runtime': 15.1, 'train_steps_per_second': 2.0, 'train_loss': 2.3, 'epoch': 1.0}\n",
        {
            "loss": {0: 2.5123, 1: 2.1},
            "grad_norm": {0: 3.25, 1: 3.0},
            "lr": {0: 4.9e-05, 1: 4e-05},
            "eval_loss": {0: 2.4},
        },
    ),
    "DeepSpeed": (
        "[2024-05-01 10:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[9.65e-06]\n"
        "steps: 10 loss: 2.3000 iter time (s): 1.234 samples/sec: 12.9\n",
        {"loss": {10: 2.3}},
    ),
    "NeMo": (
        "Epoch 0: :   0%|          | 1/1000 [00:11<3:00:00, v_num=0, reduced_train_loss=10.50, global_step=0.000, "
        "consumed_samples=64.0, grad_norm=5.2]\rEpoch 0: :   0%|          | 2/1000 [00:12<3:00:00, v_num=0, "
        "reduced_train_loss=10.40, global_step=1.000, consumed_samples=128.0, grad_norm=5.1]\n",
        {"loss": {0: 10.5, 1: 10.4}, "grad_norm": {0: 5.2, 1: 5.1}},
    ),
    "LLaMA-Factory": (
        '{"current_steps": 10, "total_steps": 100, "loss": 2.5, "lr": 4.9e-05, "epoch": 0.1, "percentage": 10.0}\n'
        '{"current_steps": 20, "total_steps": 100, "loss": 2.1, "lr": 4.8e-05, "elapsed_time": "0:00:10"}\n',
        {"loss": {10: 2.5, 20: 2.1}, "lr": {10: 4.9e-05, 20: 4.8e-05}},
    ),
    "W&B, one chart": (
        '"Step","lively-sun-3 - train/loss","lively-sun-3 - train/loss__MIN","lively-sun-3 - train/loss__MAX"\n'
        '"1","2.5","2.5","2.5"\n"2","2.1","2.1","2.1"\n',
        {"loss": {1: 2.5, 2: 2.1}},
    ),
    "W&B, over its own step": (
        '"train/global_step","a - _step","a - _step__MIN","a - train/grad_norm","a - train/grad_norm__MIN"\n'
        '"10","1","1","2.5","2.5"\n"20","2","2","2.1","2.1"\n',
        {"grad_norm": {10: 2.5, 20: 2.1}},
    ),
    "Lightning": (
        "epoch,lr-AdamW,step,train_loss,val_loss\n,0.001,9,,\n0,,9,2.5,\n0,,9,,2.7\n0,,19,2.1,\n",
        {"loss": {9: 2.5, 19: 2.1}, "eval_loss": {9: 2.7}},
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_lines_as_frameworks_print_them(name: str, tmp_path: Path) -> None:
    text, expected = REAL[name]
    (tmp_path / "log").write_text(text, encoding="utf-8", newline="")
    assert {metric: dict(curve.values) for metric, curve in read_run(tmp_path / "log").curves.items()} == expected


def test_a_chart_of_several_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chart.csv").write_text(
        '"Step","gpu - train/loss","npu - train/loss"\n"1","2.5","9.5"\n', encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"several runs \(gpu, npu\)"):
        read_run(tmp_path / "chart.csv")


def _healthy(step: int) -> float:
    return base(step) * noise(step, 1e-3)


def _norm(step: int) -> float:
    return (1 + base(step) / 10) * noise(step, 0.02)


# Of each pair: loss, gradient norm, steps; the criteria that fail, and whether the pair passes as a whole.
LOSSES = {"first-loss", "mean-loss", "mean-loss-from-step-21"}
MEANS = {"mean-loss", "mean-loss-from-step-21"}
ALL = LOSSES | {"mean-grad-norm"}
PAIRS = {
    "healthy": (_healthy, _norm, STEPS, set(), True),
    "bfloat16": (lambda s: base(s) * noise(s, 3e-3), lambda s: _norm(s) * noise(s, 0.07, 2), STEPS, set(), True),
    "drifting": (lambda s: _healthy(s) * (1 + max(0, s - 300) * 1e-4), _norm, STEPS, MEANS, False),
    "spiking": (lambda s: _healthy(s) * (1.8 if s == 700 else 1), _norm, STEPS, set(), False),
    "other weights at first": (lambda s: _healthy(s) * (1.05 if s == 1 else 1), _norm, STEPS, {"first-loss"}, False),
    "shifted": (lambda s: base(s + 3), lambda s: 1 + base(s + 3) / 10, STEPS, LOSSES, False),
    "NaN": (lambda s: math.nan if s > 500 else _healthy(s), _norm, STEPS, set(), False),
    "other sampling": (_healthy, _norm, range(1, 1201, 5), set(), True),
    "offset": (lambda s: _healthy(s) * 1.03, _norm, STEPS, LOSSES, False),
    "doubled gradients": (_healthy, lambda s: 2 * _norm(s), STEPS, {"mean-grad-norm"}, False),
    "another training": (lambda s: _healthy(s) * 1.5, lambda s: 3 * _norm(s), STEPS, ALL, False),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_each_pair_is_judged_right_under_each_criterion(name: str) -> None:
    loss, norm, steps, expected, passes = PAIRS[name]
    judgement = judge(REFERENCE, run(loss, norm, steps))
    assert {one.criterion.name for one in judgement.measured} == ALL
    assert {one.criterion.name for one in judgement.measured if not one.holds} == expected
    assert judgement.passes == passes


@pytest.mark.parametrize("text", ["", "hello\n", "import torch\nloss = f(x)\n"])
def test_a_log_without_curves_is_one_clear_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="holds no curve"):
        read_run(tmp_path / "a.log")


def test_curves_that_never_overlap_give_no_pair() -> None:
    assert pair_of(Curve("loss", {1: 1.0}), Curve("loss", {5: 1.0, 9: 2.0})) is None
