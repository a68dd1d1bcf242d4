"""What is recorded, when, and that neither a full disk nor a killed run costs more than the step it was in."""

from __future__ import annotations

import errno
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from fault_models import CASES  # noqa: E402

from npuport.errors import UserError  # noqa: E402
from npuport.precision import record  # noqa: E402
from npuport.precision.operators import writing  # noqa: E402
from npuport.precision.operators.calls import Step, read_step, step_file  # noqa: E402
from npuport.precision.operators.keeping import Summaries  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.operators.writing import shared  # noqa: E402


def train(steps: int, rate: float = 0.1, model: str = "gpt", spoil: Any = None) -> None:
    torch.manual_seed(0)
    case = CASES[model]
    net, batch = case.model(), case.batch()
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate * 1e-2)
    for step in range(steps):
        loss = net(batch) * (spoil or {}).get(step, 1.0)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def recorded(folder: Path, step: int = 0) -> Step:
    return read_step(step_file(folder, step, 0))


def steps_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("step*"))


def test_statistics_are_those_of_the_tensors(tmp_path: Path) -> None:
    with record(tmp_path / "tensors"):
        train(1)
    with record(tmp_path / "checksums", what="checksums"):
        train(1)
    whole, told = recorded(tmp_path / "tensors"), recorded(tmp_path / "checksums")
    assert (whole.has_tensors, told.has_tensors) == (True, False)
    assert whole.calls == told.calls
    compared = 0
    unset = {ref.storage for call in told.calls if call.operator.startswith("aten.empty") for ref in call.outputs}
    for call in told.calls:
        for ref in (*call.inputs, *call.outputs):
            if ref.storage in unset:
                continue
            expected, found = whole.statistics_of(ref, with_checksum=True), told.statistics_of(ref)
            assert expected is not None
            assert found is not None
            assert (found.max, found.min, found.nans, found.infs) == (
                expected.max, expected.min, expected.nans, expected.infs)  # fmt: skip
            assert found.norm == pytest.approx(expected.norm, rel=1e-5)
            assert found.checksum == expected.checksum
            compared += 1
    assert compared > 1500


def test_a_device_is_waited_for_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from npuport.precision.operators import summing

    fetches = []
    original = summing._together
    monkeypatch.setattr(summing, "_together", lambda results: fetches.append(len(results)) or original(results))
    recorder = Recorder(Summaries())
    with recorder.following():
        CASES["cnn"].model()(CASES["cnn"].batch()).backward()
    step = recorder.take(0, 0)
    assert len(fetches) == 1
    assert step.statistics


def test_only_what_is_asked_for_is_recorded(tmp_path: Path) -> None:
    scopes: dict[str, dict[str, Any]] = {
        "module": {"modules": ["blocks.1"]},
        "pattern": {"modules": ["blocks.*.qkv"]},
        "operator": {"operators": ["aten.addmm", "aten.gelu*"]},
        "phase": {"phases": ["optimizer"]},
    }
    calls = {}
    for name, scope in scopes.items():
        with record(tmp_path / name, what="statistics", **scope):
            train(1)
        calls[name] = recorded(tmp_path / name).calls
    assert {call.module.split(".")[1] for call in calls["module"]} == {"1"}
    assert {call.phase for call in calls["module"]} == {"forward", "backward"}
    assert {call.module for call in calls["pattern"]} == {f"blocks.{number}.qkv" for number in range(3)}
    assert {call.operator for call in calls["operator"]} == {
        "aten.addmm.default", "aten.gelu.default", "aten.gelu_backward.default"}  # fmt: skip
    assert {call.phase for call in calls["phase"]} == {"optimizer"}


def test_what_a_scope_leaves_out_is_still_seen_to_be_written(tmp_path: Path) -> None:
    weight = torch.ones(3, 3)
    parameter = torch.nn.Parameter(torch.ones(1))
    with record(tmp_path, operators=["aten.mm"]):
        torch.mm(weight, weight)
        weight.add_(1)
        torch.mm(weight, weight)
        parameter.grad = torch.ones(1)
        torch.optim.SGD([parameter]).step()
    step = recorded(tmp_path)
    before, after = (step.tensor(call.inputs[0]) for call in step.calls)
    assert (float(before.sum()), float(after.sum())) == (9.0, 18.0)


def test_no_hook_and_no_mode_is_left_in_steps_that_are_not_selected(tmp_path: Path) -> None:
    from torch.nn.modules import module
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    seen = []

    def look() -> None:
        hooks = len(module._global_forward_hooks) + len(module._global_forward_pre_hooks)
        seen.append((hooks, len(_get_current_dispatch_mode_stack())))

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters())
    with record(tmp_path, steps="1"):
        for _ in range(3):
            look()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    assert seen == [(0, 0), (2, 1), (0, 0)]


def test_the_first_step_that_is_not_finite_is_written_with_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for what in ("statistics", "tensors"):
        with record(tmp_path / what, what=what, steps="", when="nan"):
            train(6, spoil={3: math.nan})
        assert steps_in(tmp_path / what) == ["step2", "step3"]
        assert "step 3 is recorded: the loss is nan" in capsys.readouterr().err
    with record(tmp_path / "healthy", steps="", when="nan"):  # its mask is made of infinities
        train(3)
    assert not (tmp_path / "healthy").exists()


def test_a_loss_that_jumps_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with record(tmp_path, what="statistics", steps="", when="spike"):
        train(10, spoil={7: 3.0})
    assert steps_in(tmp_path) == ["step6", "step7"]
    assert "step 7 is recorded: the loss is" in capsys.readouterr().err


def test_a_step_that_a_scaler_skips_is_a_step(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer, scaler = torch.optim.SGD(model.parameters()), torch.amp.GradScaler("cpu")
    with record(tmp_path, steps="", when="nan", what="statistics"):
        for step in range(3):
            scaler.scale(model(torch.full((1, 2), math.inf if step == 1 else 1.0)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    assert steps_in(tmp_path) == ["step0", "step1"]


def test_storages_with_the_same_bytes_are_kept_once() -> None:
    storages = {0: torch.ones(100).view(torch.uint8), 1: torch.ones(100).view(torch.uint8)}
    storages[2] = torch.cat([storages[0][-4:], storages[0][:-4]]).clone()
    storages[3] = torch.arange(100.0).view(torch.uint8)
    storages[4] = torch.arange(100.0).flip(0).view(torch.uint8)
    kept = shared(storages)
    assert kept[1] is kept[0]
    assert kept[2] is kept[0]
    assert kept[4] is not kept[3]
    assert all(torch.equal(kept[number], storages[number]) for number in storages)


@pytest.mark.parametrize("free", [10, 10**12])
def test_a_full_disk_ends_the_recording_and_not_the_training(
    free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing.shutil, "disk_usage", lambda _: type("Usage", (), {"free": free}))
    monkeypatch.setattr(writing, "write_step", full)
    with record(tmp_path, steps="0-2"):
        train(4)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert "nothing more is recorded" in told[0]
    assert not list(tmp_path.rglob("*.pt"))


@pytest.mark.parametrize(
    "wrong",
    [{"what": "all"}, {"steps": "a"}, {"steps": "3-1"}, {"ranks": "-"}, {"when": "never"}, {"phases": ["middle"]}],
)
def test_wrong_arguments_are_one_clear_error(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        record(tmp_path, **wrong)


def test_odd_tensors_are_told_by_statistics_too() -> None:
    recorder = Recorder(Summaries(with_checksum=True))
    with recorder:
        torch.zeros(0, 3).sum()
        torch.ones(2, dtype=torch.complex64).mul(1j).conj().mul(2)
        torch.eye(3).to_sparse() @ torch.ones(3, 1)
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize()
        torch.ones(4, dtype=torch.float8_e5m2).float()
        torch.ones(2, 3).expand(4, 2, 3).sum()
        torch.full((3,), -1, dtype=torch.int64).bool()
    step = recorder.take(0, 0)
    told = [step.statistics_of(ref) for call in step.calls for ref in call.outputs]
    assert all(told)
    assert any(isinstance(value, tuple) and value[0] == "object" for call in step.calls for value in call.arguments)


def test_recomputed_calls_belong_to_their_modules() -> None:
    from torch.utils.checkpoint import checkpoint

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.GELU())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return checkpoint(self.inner, x, use_reentrant=False).relu()

    recorder = Recorder(Summaries())
    with recorder.following():
        Net()(torch.ones(1, 2)).sum().backward()
    step = recorder.take(0, 0)
    found = [(call.module, call.phase) for call in step.calls if call.operator == "aten.addmm.default"]
    assert found == [("inner.0", "forward"), ("inner.0", "backward")]


def test_modules_called_again_and_several_models_have_their_names() -> None:
    first, second = torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2))
    recorder = Recorder(Summaries())
    with recorder.following():
        second(first(first(torch.ones(1, 2)))).sum().backward()
    step = recorder.take(0, 0)
    assert [(one.path, one.class_name) for one in step.modules] == [
        ("", "Linear"), ("", "Linear"), ("", "Sequential"), ("0", "Linear")]  # fmt: skip
    assert "parameter 0.weight" in step.names.values()


def test_a_write_that_fails_half_way_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, before[1]))  # a file may have 1 MiB; a step has 11
    try:
        with record(tmp_path, steps="0-1"):
            train(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "nothing more is recorded" in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


KILLED = """\
import sys

import torch

sys.path.insert(0, sys.argv[2])
from npuport.precision import record

model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 256))
optimizer = torch.optim.AdamW(model.parameters())
with record(sys.argv[1], steps="0-"):
    while True:
        model(torch.randn(64, 256)).sum().backward()
        optimizer.step()
        print("step", flush=True)
"""


def test_a_killed_run_leaves_whole_steps(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(KILLED, encoding="utf-8")
    source = str(Path(writing.__file__).parents[3])
    with subprocess.Popen(
        [sys.executable, "train.py", "dump", source],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    files = list((tmp_path / "dump").rglob("rank*.pt"))
    assert len(files) >= 2
    for path in files:
        step = read_step(path)
        assert all(step.tensor(ref) is not None for call in step.calls for ref in call.outputs)


def test_the_first_operator_that_is_not_deterministic_is_named() -> None:
    """Two runs of one device: compare says which call gave other bits of the same inputs first."""
    from npuport.precision.operators.suspects import compare

    class Wavering(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.nn.functional.gelu(self.first(x))
            return self.second(x[:, torch.randperm(64)].cumsum(1)).square().mean()

    steps = []
    for seed in (1, 2):
        torch.manual_seed(0)
        model, batch = Wavering(), torch.randn(8, 64)
        torch.manual_seed(seed)
        recorder = Recorder(Summaries(with_checksum=True))
        with recorder.following():
            model(batch).backward()
        steps.append(recorder.take(0, 0))
    notes = [str(note) for note in compare(*steps).notes]
    assert any("other bits of the same inputs is aten.randperm" in note for note in notes), notes
    assert not any("other bits" in str(note) for note in compare(steps[0], steps[0]).notes)


def test_what_npuport_computes_itself_is_not_recorded(tmp_path: Path) -> None:
    """Facts of the run and the state of the training are computed while steps are recorded."""
    from npuport.precision import record
    from npuport.precision.preflight.facts_of_run import writing_run
    from npuport.precision.training_state.recording import monitoring

    def train() -> None:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    with record(tmp_path / "alone", steps="0-1"):
        train()
    with (
        writing_run(tmp_path / "facts"),
        monitoring(tmp_path / "state"),
        record(tmp_path / "beside", steps="0-1"),
    ):
        train()
    for step in range(2):
        alone, beside = (read_step(step_file(tmp_path / name, step, 0)) for name in ("alone", "beside"))
        assert [call.operator for call in alone.calls] == [call.operator for call in beside.calls]
