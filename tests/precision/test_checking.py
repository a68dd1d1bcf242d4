"""Every recorded call judged alone: healthy ones pass, whatever the operator; a doubled result is caught."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from faults import FAULTS, step_of  # noqa: E402
from operator_samples import differentiable_operators, doubled, recorded_samples, with_result  # noqa: E402
from precision_json import document_of  # noqa: E402

from npuport.cli.precision_check_ops import check_folder  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.facts.precision_standards import limits, standard_of  # noqa: E402
from npuport.precision.checking.calls import check_call, is_chosen  # noqa: E402
from npuport.precision.operators.calls import Call, Step, write_step  # noqa: E402
from npuport.precision.operators.execution import execute  # noqa: E402
from npuport.precision.operators.recording import Recorder  # noqa: E402
from npuport.precision.operators.summing import statistics_of  # noqa: E402


def one_call(function: Any, *tensors: Any) -> tuple[Call, Step]:
    """What a function of one operator records."""
    recorder = Recorder()
    with recorder:
        function(*tensors)
    step = recorder.take(0, 0)
    return step.calls[-1], step


def is_noise(call: Call, step: Step, position: int) -> bool:
    """Whether a result is nothing but rounding: rounding its inputs moves it by a fiftieth of itself (a sum of which
    nothing is left), or its values are among the smallest that its dtype has."""
    got = step.tensor(call.outputs[position])
    information = torch.finfo(got.dtype)
    signs = torch.Generator().manual_seed(7)

    def rounded(one: Any) -> Any:
        return one * (1 + information.eps / 2 * torch.randint(0, 2, one.shape, generator=signs).mul(2).sub(1))

    truth = execute(call, step)[position]
    moved = max(float((execute(call, step, change=rounded)[position] - truth).abs().max()) for _ in range(5))
    smallest = information.smallest_normal * (1 if got.dtype != torch.float16 else 2**-6)
    return moved > 0.02 * float(got.abs().max()) or float(got.abs().median()) < smallest


@pytest.mark.parametrize("model", ["gpt", "cnn", "lstm", "unet"])
def test_calls_of_healthy_models_pass_and_each_doubled_gradient_is_caught(model: str) -> None:
    step = step_of(model, 0.0, 1)
    gradients = 0
    for call in step.calls:
        check = check_call(call, step)
        assert check.status != "fail", (call.operator, [str(one.text) for one in check.results])
        if call.phase == "backward" and check.status == "pass":
            for position, one in doubled(call, step):
                gradients += 1
                assert one.status == "fail" or is_noise(call, step, position), call.operator
    assert gradients > 10


@pytest.mark.parametrize(
    ("dtype", "scale"), [("float32", 1.0), ("float32", 1e-10), ("bfloat16", 1.0), ("float16", 1e-3)]
)
def test_doubling_every_gradient_is_caught_for_every_operator(dtype: str, scale: float) -> None:
    """PyTorch's own samples of every operator, forward and backward; also where the gradients are tiny."""
    pytest.importorskip("expecttest")
    seen, caught, missed = 0, 0, []
    for operator in differentiable_operators(getattr(torch, dtype))[3::10]:  # benchmarks/check_ops.py takes all
        for step in recorded_samples(operator, getattr(torch, dtype), scale, 1):
            for call in step.calls:
                check = check_call(call, step)
                assert check.status != "fail", (operator.name, call, [str(one.text) for one in check.results])
                is_gradient = call.phase == "backward" and check.status == "pass"
                for position, one in doubled(call, step) if is_gradient else ():
                    seen, caught = seen + 1, caught + (one.status == "fail")
                    if one.status != "fail" and not is_noise(call, step, position):
                        missed.append((operator.name, call.operator))
    assert not missed
    assert seen > 60
    assert caught > 0.985 * seen


@pytest.mark.parametrize("fault", [one for one in FAULTS if one.change is not None], ids=lambda one: one.name)
def test_the_call_of_a_faulty_device_fails_and_no_other(fault: Any) -> None:
    step = step_of(fault.model, 0.0, 1, fault)
    failed = [call for call in step.calls if check_call(call, step).status == "fail"]
    assert [call.operator.split(".")[1] for call in failed] == [fault.operator]


def test_an_intended_minus_infinity_is_no_error() -> None:
    mask = torch.ones(4, 4, dtype=torch.bool).triu(1)
    assert check_call(*one_call(lambda x: x.masked_fill(mask, float("-inf")), torch.randn(4, 4))).status == "pass"
    call, step = one_call(lambda x: x.masked_fill(mask, -1e30), torch.randn(4, 4))
    wrong = check_call(*with_result(call, step, 0, step.tensor(call.outputs[0]).masked_fill(mask, float("-inf"))))
    assert wrong.status == "fail"


def test_what_is_too_large_for_the_dtype_is_right_as_infinity_and_as_the_largest_number() -> None:
    call, step = one_call(lambda x: x * 2, torch.full((3,), 60000.0, dtype=torch.float16))
    assert check_call(call, step).status == "pass"
    saturated = torch.full((3,), 65504.0, dtype=torch.float16)
    assert check_call(*with_result(call, step, 0, saturated)).status == "pass"
    assert check_call(*with_result(call, step, 0, -saturated)).status == "fail"


def test_of_equal_values_any_may_be_chosen() -> None:
    values = torch.tensor([[3.0, 1.0, 3.0, 2.0]])
    for function, other in (
        (lambda x: x.max(1), torch.tensor([2])),
        (lambda x: x.argmax(1), torch.tensor([2])),
        (lambda x: x.topk(2), torch.tensor([[2, 0]])),
    ):
        call, step = one_call(function, values)
        position = len(call.outputs) - 1
        assert check_call(*with_result(call, step, position, other)).status == "pass"
        assert check_call(*with_result(call, step, position, other - 1)).status == "fail"


def test_an_operator_that_returns_nothing_is_judged_by_what_it_wrote() -> None:
    call, step = one_call(lambda x, y: torch._foreach_add_([x, y], 1.5), torch.randn(3), torch.randn(4))
    assert len(call.outputs) == 2
    assert check_call(call, step).status == "pass"
    assert all(one.status == "fail" for _, one in doubled(call, step))


def test_a_wrong_value_beside_a_mask_of_lowest_numbers_is_seen() -> None:
    lowest = torch.finfo(torch.float32).min
    scores = torch.randn(8, 8)
    call, step = one_call(lambda x, m: x + m, scores, torch.full((8, 8), lowest).triu(1))
    right = step.tensor(call.outputs[0])
    assert check_call(call, step).status == "pass"
    wrong = torch.where(right < -1e30, right, right * 1.01)
    assert check_call(*with_result(call, step, 0, wrong)).status == "fail"


def test_a_reference_that_is_as_far_off_excuses_and_a_better_one_accuses() -> None:
    call, step = one_call(torch.exp, torch.randn(200))
    right = step.tensor(call.outputs[0])
    noise = 1 + 1e-3 * torch.randn(200, generator=torch.Generator().manual_seed(1))
    bad = with_result(call, step, 0, right * noise)
    assert check_call(*bad).status == "fail"
    assert check_call(*bad, reference=bad).status == "pass"
    assert check_call(*bad, reference=(call, step)).status == "fail"
    assert check_call(call, step, reference=(call, step)).status == "pass"


def test_convolutions_of_a_device_with_a_reduced_format_are_judged_by_it() -> None:
    from torch.nn import functional as F

    x, weight = torch.randn(2, 8, 12, 12), torch.randn(8, 8, 3, 3)
    call, step = one_call(F.conv2d, x, weight)

    def cut(tensor: Any) -> Any:  # to the 11 bits of HF32's fraction
        return (tensor.view(torch.int32) & ~0xFFF).view(torch.float32)

    bad = with_result(call, step, 0, F.conv2d(cut(x), cut(weight)))
    assert check_call(bad[0], replace(bad[1], device="cpu")).status == "fail"
    check = check_call(bad[0], replace(bad[1], device="npu"))
    assert check.status == "pass"
    assert "HF32" in str(check.results[0].text)
    assert all(one.status == "fail" for _, one in doubled(call, replace(step, device="npu")))


def test_patterns_mean_operators_modules_and_both() -> None:
    call = Call(0, "aten._softmax.default", "layers.7.attn", "forward", (), {}, None, "")
    for pattern in (
        "*",
        "softmax",
        "_softmax",
        "aten._softmax.*",
        "layers.7",
        "layers.7.attn",
        "layers.7.attn.softmax",
    ):
        assert is_chosen(call, pattern), pattern
    for pattern in ("layers.70", "layers.1", "mm", "attn"):
        assert not is_chosen(call, pattern), pattern


def test_standards_are_those_of_the_tables() -> None:
    assert standard_of("masked_fill").standard == "equal"
    assert (standard_of("mm").standard, standard_of("mm").care) == ("ulp", "L2")
    assert standard_of("erf").standard == "ratio"
    assert limits("absolute", "float32")["rtol"] == 2**-20
    assert limits("ratio", "L2") == {"small_share": 2, "rms": 1.2, "max": 2, "mean": 1.2}


@pytest.mark.parametrize(("operator", "size"), [("gelu_backward", "file"), ("mse_loss_backward", "inline")])
def test_a_failure_becomes_a_script_that_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], operator: str, size: str
) -> None:
    if size == "file":
        fault = next(one for one in FAULTS if one.operator == operator)
        step = step_of(fault.model, 0.0, 1, fault)
    else:
        x = torch.randn(3, requires_grad=True)
        recorder = Recorder()
        with recorder:
            torch.nn.functional.mse_loss(x, torch.zeros(3)).backward()
        step = recorder.take(0, 0)
        at = next(call.index for call in step.calls if operator in call.operator)
        wrong, step = with_result(step.calls[at], step, 0, step.tensor(step.calls[at].outputs[0]) * 2)
        step.calls[at] = wrong
    dump, bug = tmp_path / "dump 中", tmp_path / "bug report"
    write_step(dump, step)
    assert check_folder(dump, "*", "", None, bug, as_json=False) == 1
    assert "x what it should be" in capsys.readouterr().out
    (script,) = bug.glob(f"*{operator}.py")
    assert (script.with_suffix(".pt")).exists() == (size == "file")
    recorded = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert recorded.returncode == 1, recorded.stderr
    assert "FAILS" in recorded.stdout
    on_cpu = subprocess.run(
        [sys.executable, str(script), "--device", "cpu"], capture_output=True, text=True, check=False
    )
    assert on_cpu.returncode == 0, on_cpu.stdout + on_cpu.stderr


def test_a_dump_of_statistics_is_checked_on_a_device_with_generated_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = step_of("gpt", 0.0, 1)
    refs = {ref for call in step.calls for ref in (*call.inputs, *call.outputs)}
    bare = replace(step, statistics={ref: statistics_of(step.tensor(ref)) for ref in refs}, storages={})
    write_step(tmp_path, bare)
    with pytest.raises(UserError, match="--device"):
        check_folder(tmp_path, "*", "", None, None, as_json=False)
    assert check_folder(tmp_path, "*", "cpu", None, None, as_json=True) == 0
    (document,) = document_of("check-ops", capsys.readouterr().out)
    assert document["right"] > 100


def test_a_healthy_dump_is_right_and_again_on_the_cpu_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_step(tmp_path, step_of("cnn", 0.0, 1))
    assert check_folder(tmp_path, "*", "cpu", tmp_path, None, as_json=False) == 0
    assert " 0 wrong" in capsys.readouterr().out
    with pytest.raises(UserError, match="--only"):
        check_folder(tmp_path, "no_such", "", None, None, as_json=False)
    with pytest.raises(UserError, match="nowhere"):
        check_folder(tmp_path, "*", "nowhere", None, None, as_json=False)


def test_what_an_operator_writes_beside_its_result_is_recorded_and_judged() -> None:
    mean, variance = torch.zeros(3), torch.ones(3)
    call, step = one_call(
        lambda x: torch.nn.functional.batch_norm(x, mean, variance, training=True), torch.randn(8, 3)
    )  # fmt: skip
    assert len(call.outputs) == 5
    assert torch.equal(step.tensor(call.outputs[3]), mean)
    assert torch.equal(step.tensor(call.inputs[1]), torch.zeros(3))
    assert [one.status for _, one in doubled(call, step)] == ["fail"] * 5


def test_sparse_and_lazy_zero_tensors_do_not_end_a_recording() -> None:
    table = torch.nn.Embedding(4, 2, sparse=True)
    recorder = Recorder()
    with recorder:
        (table(torch.tensor([1, 2])) + table(torch.tensor([1, 3]))).sum().backward()
        torch._efficientzerotensor((2,)) + torch.ones(2)
    step = recorder.take(0, 0)
    assert all(check_call(call, step).status != "fail" for call in step.calls)
