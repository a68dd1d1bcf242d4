"""The state of trainings: quiet on healthy ones, and each planted trouble named with its layer."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from faults import Device, Fault, scaled  # noqa: E402
from precision_json import document_of  # noqa: E402
from torch import nn  # noqa: E402
from trainings import HEALTHY, TROUBLES, Training, adam, in_gradient, sgd  # noqa: E402

from npuport.errors import UserError  # noqa: E402
from npuport.precision.following import Follower, follow  # noqa: E402
from npuport.precision.training_state import boards  # noqa: E402
from npuport.precision.training_state.alerts import alerts_of, loss_spikes  # noqa: E402
from npuport.precision.training_state.comparing import StateComparison, compare_states  # noqa: E402
from npuport.precision.training_state.drift import drift_of  # noqa: E402
from npuport.precision.training_state.history import (  # noqa: E402
    METRICS,
    SKETCH,
    History,
    Series,
    StateStep,
    read_histories,
)
from npuport.precision.training_state.recording import monitoring  # noqa: E402


@pytest.fixture(autouse=True)
def _no_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Event files have a test of their own."""
    monkeypatch.setattr(boards.Board, "of", lambda _folder: None)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_raises_no_alert(name: str, tmp_path: Path) -> None:
    series = HEALTHY[name].run(tmp_path).series[0]
    assert len(series.steps) > 100
    assert alerts_of(series) == []


@pytest.mark.parametrize("name", TROUBLES)
def test_a_planted_trouble_is_the_first_alert_with_its_layer(name: str, tmp_path: Path) -> None:
    planted = TROUBLES[name]
    first = alerts_of(planted.training.run(tmp_path).series[0])[0]
    assert first.name == planted.name
    assert planted.layer in (None, first.layer)
    assert abs(first.step - planted.step) <= 2


def test_numbers_are_those_of_the_tensors(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    with monitoring(tmp_path):
        loss = model(torch.ones(2, 3)).square().sum()
        loss.backward()
        before = [one.detach().clone() for one in model.parameters()]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    history = read_histories(tmp_path)[0]
    series = history.series[0]
    step = series.steps[0]
    assert series.names == ("0.weight", "0.bias", "1.weight", "1.bias")
    assert list(series.layers()) == ["0", "1"]
    assert step.loss == pytest.approx(float(loss.detach()))
    assert step.clipped_from > 1
    assert step.learning_rates == (0.1,)
    for number, (parameter, old) in enumerate(zip(model.parameters(), before, strict=True)):
        state = optimizer.state[parameter]
        expected = {
            "grad_norm": parameter.grad.norm(),
            "grad_not_finite": torch.tensor(0.0),
            "weight_norm": old.norm(),
            "update_norm": (parameter - old).norm(),
            "first_moment": state["exp_avg"].norm(),
            "second_moment": state["exp_avg_sq"].norm(),
        }
        for metric in METRICS:
            assert series.value(step, number, metric) == pytest.approx(expected[metric].item(), rel=1e-5)
        assert len(series.sketch(step, number)) == SKETCH


def test_the_loss_of_a_scaled_and_accumulated_step_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with monitoring(tmp_path):
        parts = [model(torch.full((1, 2), float(number))).square().mean() / 3 for number in range(3)]
        for part in parts:
            scaler.scale(part).backward()
        scaler.step(optimizer)
        scaler.update()
    step = read_histories(tmp_path)[0].series[0].steps[0]
    assert step.loss == pytest.approx(sum(parts).item(), rel=1e-5)
    assert step.loss_scale == 1024


def test_steps_that_a_scaler_leaves_out_are_told(tmp_path: Path) -> None:
    broken = in_gradient("head.weight", 3, lambda gradient: gradient.fill_(math.inf), 3)
    series = Training("cnn", sgd(0.01), half=True, steps=6, late=broken).run(tmp_path).series[0]
    assert [step.is_skipped for step in series.steps] == [False, False, False, True, False, False]
    assert [step.step for step in series.steps] == list(range(6))
    assert series.steps[4].loss_scale == series.steps[2].loss_scale / 2
    assert alerts_of(series) == []


def test_a_run_that_was_killed_leaves_its_whole_steps(tmp_path: Path) -> None:
    Training("cnn", steps=5).run(tmp_path)
    path = tmp_path / "state.rank0.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    assert [step.step for step in read_histories(path)[0].series[0].steps] == [0, 1, 2, 3]


@pytest.mark.parametrize("content", ["", "hello\n", '{"npuport": "npuport-state/9"}\n'])
def test_what_is_no_such_file_is_one_clear_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "state.rank0.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match="no state of a training"):
        read_histories(tmp_path)
    with pytest.raises(UserError, match="--monitor"):
        read_histories(tmp_path.parent / tmp_path.name / "..")


def test_a_follower_that_fails_leaves_the_training_alone(capsys: pytest.CaptureFixture[str]) -> None:
    class Breaking(Follower):
        def stepped(self, _optimizer: torch.optim.Optimizer) -> None:
            raise ValueError("no")

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with follow(Breaking()):
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    assert capsys.readouterr().err.count("the breaking stopped, the training goes on (ValueError: no)") == 1


def test_layers_stand_in_the_order_of_the_model_whatever_the_groups_are(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.LayerNorm(3), nn.Linear(3, 1))
    decayed = [one for one in model.parameters() if one.dim() > 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed}, {"params": [one for one in model.parameters() if one.dim() == 1]}]
    )
    with monitoring(tmp_path):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    series = read_histories(tmp_path)[0].series[0]
    assert series.names[:2] == ("0.weight", "2.weight")
    assert list(series.layers()) == ["0", "1", "2"]


def test_two_optimizers_are_two_series(tmp_path: Path) -> None:
    one, other = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (one, other)]
    with monitoring(tmp_path):
        for _ in range(3):
            other(one(torch.ones(1, 2))).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
    series = read_histories(tmp_path)[0].series
    assert [len(part.steps) for part in series] == [3, 3]
    assert [part.names for part in series] == [("weight", "bias")] * 2


def test_spikes_of_a_curve_that_ends_near_zero_are_none() -> None:
    assert loss_spikes([2 * 0.9**step * (1 + step % 3) for step in range(100)]) == []
    assert loss_spikes([2.0] * 50 + [9.0, 8.0] + [2.0] * 50) == [50]


def losses(values: list[float]) -> Series:
    steps = [StateStep(at, loss, (0.1,), None, None, False, ()) for at, loss in enumerate(values)]
    return Series((), (), (), steps)


def test_a_loss_that_grows_is_told_since_when_also_where_its_last_value_is_low() -> None:
    grown = [2.0] * 20 + [1.0] * 20 + [3.2 + at / 50 for at in range(40)]
    assert [(one.name, one.step) for one in alerts_of(losses(grown))] == [("loss-spike", 40), ("diverging", 40)]
    names = [one.name for one in alerts_of(losses([2.0] * 20 + [1.0] * 20 + [4.0] * 39 + [1.0]))]
    assert names == ["loss-spike", "diverging"]


def state_of(
    model: str, noise: float, seed: int, folder: Path, fault: Fault | None = None, **changes: object
) -> History:
    with Device(noise, seed, fault):
        return dataclasses.replace(Training(model, adam(1e-3), steps=2), **changes).run(folder / str(seed))


def pair(model: str, noise: float, folder: Path, fault: Fault | None = None, **changes: object) -> StateComparison:
    runs = state_of(model, noise, 1, folder), state_of(model, noise, 2, folder, fault, **changes)
    found = compare_states(runs[0].series[0], runs[1].series[0])
    assert found is not None
    return found


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3, 4e-3])
@pytest.mark.parametrize("model", ["gpt", "cnn", "lstm", "unet"])
def test_noise_of_a_device_is_no_suspect(model: str, noise: float, tmp_path: Path) -> None:
    assert not pair(model, noise, tmp_path).is_suspect


@pytest.mark.parametrize("noise", [1e-6, 1e-3])
def test_a_doubled_gradient_jumps_at_its_layer(noise: float, tmp_path: Path) -> None:
    found = pair("gpt", noise, tmp_path, Fault("x", "gpt", "gelu_backward", 1, scaled(2.0)))
    assert (found.is_suspect, found.jump) == (True, "blocks.1.up")


@pytest.mark.parametrize("noise", [1e-6, 1e-3])
def test_a_wrong_weight_gradient_stands_alone(noise: float, tmp_path: Path) -> None:
    wrong = in_gradient("blocks.0.up.weight", 0, lambda gradient: gradient.mul_(1.3))
    found = pair("gpt", noise, tmp_path, late=wrong)
    assert found.is_suspect
    assert str(found.verdict).startswith("in the first step blocks.0.up alone differs, by ")


def test_growth_through_depth_is_told_from_a_jump(tmp_path: Path) -> None:
    found = pair("cnn", 1e-3, tmp_path)
    assert found.growth > 1.2
    assert "grows smoothly" in str(found.verdict)


def test_another_batch_differs_from_the_last_layer_on(tmp_path: Path) -> None:
    other = Training("gpt", steps=2, trouble=lambda *given: (given[-1] + 1) % 64)
    runs = [Training("gpt", steps=2).run(tmp_path / "a"), other.run(tmp_path / "b")]
    found = compare_states(runs[0].series[0], runs[1].series[0])
    assert found is not None
    assert found.is_suspect
    assert "from the last layer on" in str(found.verdict)
    assert found.steps == 2


def history_of(rank: int, sums: dict[int, tuple[int, ...]], is_replicated: bool = True) -> History:
    steps = [StateStep(step, 1.0, (0.1,), None, None, False, (), one) for step, one in sums.items()]
    return History(rank, 3, is_replicated, (Series(("a.weight", "b.weight"), (0, 0), (0, 1), steps),))


def test_weights_that_part_between_ranks_are_named() -> None:
    even = {0: (1, 2), 10: (3, 4), 20: (5, 6)}
    assert drift_of([history_of(rank, even) for rank in range(3)]) == []
    odd = {**even, 10: (3, 9), 20: (8, 9)}
    (found,) = drift_of([history_of(0, even), history_of(1, odd), history_of(2, even)])
    assert (found.name, found.step, found.layer) == ("drift", 10, "b")
    assert "1 weights differ between ranks (rank 1 beside the others), seen at step 10: b.weight" in str(found.text)
    apart = {step: (rank, 2) for step, rank in ((0, 7), (10, 7))}
    divided = [history_of(0, {0: (1, 2), 10: (1, 2)}, False), history_of(1, apart, False)]
    assert drift_of(divided) == []
    assert drift_of([history_of(0, {0: (1, 2)}), history_of(1, {0: (7, 2)})])[0].step == 0


JOB = """
import torch
from torch import nn
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(25):
    model(torch.randn(4, 4)).square().mean().backward()
    if step == 14 and dist.get_rank() == 1:
        model.module[1].weight.grad.view(-1)[0] += 1e-6
    optimizer.step(); optimizer.zero_grad()
"""


def test_drift_of_a_real_job_and_its_command(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB, encoding="utf-8")
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "NPUPORT_DEVICE": "cpu", "OMP_NUM_THREADS": "1"}
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(script),
    ]
    command = [sys.executable, "-m", "npuport", "run", "--monitor", str(tmp_path / "state"), "--", *launch]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    judged = subprocess.run(
        [sys.executable, "-m", "npuport", "precision", "state", str(tmp_path / "state"), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    document = document_of("state", judged.stdout)
    assert [(one["name"], one["step"], one["layer"]) for one in document["alerts"]] == ([("drift", 20, "module.1")])
    assert judged.returncode == 1
    assert [one["layer"] for one in document["layers"][0]] == ["module.0", "module.1"]


def test_event_files_hold_the_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    monkeypatch.undo()
    Training("cnn", steps=3).run(tmp_path)
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard" / "rank0"))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {"loss", "lr/group0", "grad_norm/head", "update_ratio/layers.0"} <= tags
    assert [event.step for event in events.Scalars("loss")] == [0, 1, 2]


def test_the_table_and_the_comparison_as_text(tmp_path: Path) -> None:
    Training("cnn", steps=3).run(tmp_path / "a")
    Training("cnn", steps=3, trouble=lambda *given: (given[-1][0] + 1, given[-1][1])).run(tmp_path / "b")
    command = [sys.executable, "-m", "npuport", "precision", "state"]
    alone = subprocess.run([*command, tmp_path / "a"], capture_output=True, text=True, check=False)
    assert alone.returncode == 0
    assert alone.stdout.startswith("3 steps, loss ")
    assert "Nothing is wrong with it." in alone.stdout
    both = subprocess.run([*command, tmp_path / "a", tmp_path / "b"], capture_output=True, text=True, check=False)
    assert both.returncode == 1
    assert "step 0, in the order of the backward pass" in both.stdout
    assert both.stdout.splitlines()[2].split()[0] == "head"
