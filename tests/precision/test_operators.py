"""Faults put into training steps are found by what the operators did; healthy pairs raise no suspicion."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from fault_models import CASES  # noqa: E402
from faults import FAULTS, NOISES, Fault, is_right, step_of  # noqa: E402
from precision_json import document_of  # noqa: E402

from npuport.cli.precision_compare import compare_folders  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision import record  # noqa: E402
from npuport.precision.operators.alignment import align  # noqa: E402
from npuport.precision.operators.calls import Call, Step, TensorRef, read_step, step_file, write_step  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.operators.renames import plain_path  # noqa: E402
from npuport.precision.operators.replay import errors_of  # noqa: E402
from npuport.precision.operators.suspects import compare  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("model", CASES)
@pytest.mark.parametrize("noise", [0.0, *NOISES.values()])
def test_a_healthy_pair_has_no_suspect(model: str, noise: float) -> None:
    comparison = compare(step_of(model, noise, 1), step_of(model, noise, 2))
    assert comparison.suspects == ()
    assert comparison.replayed > 0.5 * comparison.calls


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.model}-{fault.name}" for fault in FAULTS])
def test_a_fault_is_the_first_suspect(fault: Fault) -> None:
    comparison = compare(step_of(fault.model, 1e-6, 1), step_of(fault.model, 1e-6, 2, fault))
    first = comparison.suspects[0]
    assert is_right(fault, first.call.operator, first.call.module), (first.call, str(first.text))


HARD = [fault for fault in FAULTS if fault.change is not None and fault.model in ("gpt", "unet")]


def test_most_faults_of_a_device_are_found_in_bfloat16_s_noise() -> None:
    noise = NOISES["bf16"]
    found = 0
    for fault in HARD:
        suspects = compare(step_of(fault.model, noise, 1), step_of(fault.model, noise, 2, fault)).suspects
        found += bool(suspects) and is_right(fault, suspects[0].call.operator, suspects[0].call.module)
    assert found >= 0.7 * len(HARD)


def test_calls_know_module_phase_and_line() -> None:
    step = step_of("gpt", 0.0, 1)
    gelu = [call for call in step.calls if call.operator.startswith("aten.gelu")]
    assert [(call.module, call.phase) for call in gelu][:2] == [("blocks.0", "forward"), ("blocks.1", "forward")]
    assert gelu[0].line.startswith("fault_models.py:")
    backward = [call for call in step.calls if call.operator.startswith("aten.gelu_backward")]
    assert [call.module for call in backward] == ["blocks.2", "blocks.1", "blocks.0"]
    assert backward[0].line == gelu[2].line
    assert {call.phase for call in step.calls} == {"forward", "backward", "optimizer"}


def test_a_storage_is_kept_once_and_again_when_it_is_written() -> None:
    weight = torch.ones(4, 4)
    recorder = Recorder()
    with recorder:
        first = weight.t() @ weight
        weight.add_(1)
        torch.mm(weight, weight[1:3].t())
    step = recorder.take(0, 0)
    mm, add, later = step.calls
    assert mm.inputs[0].storage == mm.inputs[1].storage != add.outputs[0].storage == later.inputs[0].storage
    assert torch.equal(step.tensor(mm.outputs[0]), first)
    assert torch.equal(step.tensor(mm.inputs[0]), torch.ones(4, 4))
    assert torch.equal(step.tensor(later.inputs[1]), torch.full((4, 2), 2.0))
    assert later.inputs[1].stride == (1, 4)


def test_memory_that_is_given_to_another_tensor_is_another_storage() -> None:
    recorder = Recorder()
    with recorder:
        for value in range(3):
            torch.full((1000,), float(value)).sum()
    step = recorder.take(0, 0)
    sums = [call for call in step.calls if call.operator.startswith("aten.sum")]
    assert [float(step.tensor(call.outputs[0])) for call in sums] == [0.0, 1000.0, 2000.0]


def test_steps_are_written_one_by_one_and_read_again(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record(tmp_path, steps="1-2"):
        for _ in range(4):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step1", "step2"]
    step = read_step(step_file(tmp_path, 2, 0))
    assert (step.step, step.rank, step.device) == (2, 0, "cpu")
    call = next(call for call in step.calls if call.operator == "aten.addmm.default")
    assert call.arguments[1].shape == (1, 3)
    assert errors_of(call, step)[0].relative < 1e-6


def test_a_run_that_fails_leaves_whole_steps(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        with record(tmp_path, steps="0-8"):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
            model(torch.ones(1, 4))

    with pytest.raises(RuntimeError):
        train()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["rank0.pt"]
    assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


def test_storages_have_names_and_modules_their_calls() -> None:
    step = step_of("gpt", 0.0, 1)
    module = next(one for one in step.modules if one.path == "blocks.0.qkv")
    assert (module.class_name, module.phase, module.first) == ("Linear", "forward", module.last)
    call = step.calls[module.first]
    assert call.operator == "aten.addmm.default"
    assert [ref.storage for ref in (*module.inputs, *module.outputs)] == [
        call.inputs[1].storage,
        call.outputs[0].storage,
    ]
    assert [step.names.get(ref.storage) for ref in call.inputs] == [
        "parameter blocks.0.qkv.bias",
        None,
        "parameter blocks.0.qkv.weight",
    ]
    optimizer = [call for call in step.calls if call.phase == "optimizer"]
    used = {step.names.get(ref.storage, "") for call in optimizer for ref in call.inputs}
    assert {"gradient of head.weight", "exp_avg of head.weight", "exp_avg_sq of head.weight"} <= used


def test_statistics_and_all_else_survive_the_file(tmp_path: Path) -> None:
    step = step_of("cnn", 0.0, 1)
    ref = step.calls[0].outputs[0]
    assert step.has_tensors
    expected = step.statistics_of(ref)
    tensor = step.tensor(ref).double()
    assert expected is not None
    assert (expected.max, expected.nans) == (float(tensor.max()), 0)
    assert expected.mean == pytest.approx(float(tensor.mean()), abs=1e-6)
    statistics = Step(list(step.calls), {}, 3, 1, "npu", {ref: expected}, step.names, step.modules)
    again = read_step(write_step(tmp_path, statistics))
    assert again == statistics
    assert not again.has_tensors
    assert again.statistics_of(ref) == expected
    assert again.statistics_of(step.calls[1].outputs[0]) is None


def test_another_format_is_one_clear_error(tmp_path: Path) -> None:
    torch.save({"npuport": 1}, tmp_path / "rank0.pt")
    with pytest.raises(UserError, match=r"rank0\.pt has format 1"):
        read_step(tmp_path / "rank0.pt")


@pytest.mark.parametrize("content", [b"", b"nothing", None])
def test_a_file_that_is_no_step_is_one_clear_error(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "rank0.pt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"rank0\.pt"):
        read_step(path)
    torch.save({"other": 1}, path)
    with pytest.raises(UserError, match="no recorded step"):
        read_step(path)


def test_masks_of_minus_infinity_are_no_errors() -> None:
    recorder = Recorder()
    with recorder:
        torch.ones(3, 3).masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
    step = recorder.take(0, 0)
    assert compare(step, step).suspects == ()


def test_odd_tensors_are_recorded_or_named() -> None:
    recorder = Recorder()
    with recorder:
        torch.zeros(0, 3).sum()
        torch.ones(2, dtype=torch.complex64) * 2
        torch.eye(3).to_sparse() @ torch.ones(3, 1)
        torch.ones(()).item()
    step = recorder.take(0, 0)
    assert compare(step, step).suspects == ()
    assert any(isinstance(value, tuple) and value[0] == "object" for call in step.calls for value in call.arguments)


def test_wrappers_do_not_change_a_module_s_path() -> None:
    assert plain_path("module.layers.0.mlp") == plain_path("_orig_mod.layers.0.mlp") == "layers.0.mlp"
    assert plain_path("my_module.x") == "my_module.x"
    one = Call(0, "aten.mm.default", "module.fc", "forward", (), {}, None, "")
    other = Call(0, "aten.mm.default", "fc", "forward", (), {}, None, "")
    assert align(Step([one], {}), Step([other], {})).pairs == ((one, other),)


def test_values_survive_the_file(tmp_path: Path) -> None:
    ref = TensorRef(0, "float32", (2, 1), (1, 1), 0)
    call = Call(
        0,
        "aten.x.default",
        "m",
        "forward",
        (ref, [ref, None], ("dtype", "float16"), (1, 2), 1e-5),
        {"a": ()},
        (ref,),
        "",
    )
    path = write_step(tmp_path, Step([call], {0: torch.ones(2).view(torch.uint8)}))
    assert read_step(path).calls == [call]


def test_the_command_names_the_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "softmax 1 % noise")
    good, bad = tmp_path / "good", tmp_path / "bad 中"
    write_step(good, step_of("gpt", 1e-6, 1))
    write_step(bad, step_of("gpt", 1e-6, 2, fault))
    assert compare_folders(good, bad, as_json=False) == 1
    assert "1  blocks.1 · aten._softmax.default (forward)" in capsys.readouterr().out
    assert compare_folders(good, bad, as_json=True) == 1
    document = document_of("compare", capsys.readouterr().out)
    assert document[0]["suspects"][0]["operator"] == "aten._softmax.default"
    assert compare_folders(good, good, as_json=False) == 0


def test_folders_without_steps_are_one_clear_error(tmp_path: Path) -> None:
    for first in (tmp_path, tmp_path / "no"):
        with pytest.raises(UserError, match=str(first)):
            compare_folders(first, tmp_path, as_json=False)


SCRIPT = """\
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def test_a_run_records_the_steps_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "npuport", "run", "--dump", "d", "--dump-steps", "1-2", "train.py"]
    inside = {**os.environ, "NPUPORT_DEVICE": "cpu", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(command, cwd=tmp_path, env=inside, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert sorted(path.name for path in (tmp_path / "d").glob("step*")) == ["step1", "step2"]
    step = read_step(step_file(tmp_path / "d", 1, 0))
    assert [call.module for call in step.calls if call.operator == "aten.gelu.default"] == ["1"]
    twice = subprocess.run(command, cwd=tmp_path, env=inside, capture_output=True, text=True, check=False)
    assert (twice.returncode, twice.stdout) == (2, "")
    assert "holds recorded steps already" in twice.stderr
    again = subprocess.run([*command[:7], "2-1", "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "steps takes numbers" in again.stderr


def test_a_backward_call_belongs_to_the_module_of_its_forward_call() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    recorder = Recorder()
    with recorder.following():  # batch norm counts its batches without a node of its own
        model(torch.randn(2, 1, 5, 5)).sum().backward()
    modules = {call.operator.split(".")[1]: call.module for call in recorder.take(0, 0).calls}
    assert (modules["convolution_backward"], modules["native_batch_norm_backward"]) == ("0", "1")
