"""Steps of several ranks: what collectives did is recorded as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import rank_jobs  # noqa: E402
from precision_json import document_of  # noqa: E402
from torch import Tensor  # noqa: E402

from npuport.cli.precision_compare import compare_folders  # noqa: E402
from npuport.cli.precision_ranks import check_ranks  # noqa: E402
from npuport.errors import UserError  # noqa: E402
from npuport.precision.operators.calls import ModuleCall, Step, TensorRef, read_step, step_file, write_step  # noqa: E402
from npuport.precision.operators.collectives import CollectiveCheck, check_collectives  # noqa: E402
from npuport.precision.operators.drift import find_drift  # noqa: E402
from npuport.precision.operators.shards import WholeComparison, compare_with_whole  # noqa: E402


def steps_of(folder: Path, step: int = 0, world: int = rank_jobs.WORLD) -> list[Step]:
    return [read_step(step_file(folder, step, rank)) for rank in range(world)]


@pytest.fixture(scope="module")
def data_parallel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks") / "data"
    rank_jobs.run(rank_jobs.data_parallel, folder)
    return folder


@pytest.fixture(scope="module")
def tensor_parallel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks") / "tensor"
    rank_jobs.run(rank_jobs.tensor_parallel, folder)
    return folder


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks") / "sharded"
    rank_jobs.run(rank_jobs.sharded, folder)
    return folder


def test_a_collective_is_recorded_with_what_it_was_given_and_what_it_made(data_parallel: Path) -> None:
    steps = steps_of(data_parallel)
    calls = [next(call for call in step.calls if call.operator == "c10d.allreduce_.default") for step in steps]
    assert calls[0].arguments[1] == ("group", "0", (0, 1)) and calls[0].arguments[2] == ("reduction", "sum")
    given = [step.tensor(call.inputs[0]) for step, call in zip(steps, calls, strict=True)]
    made = [step.tensor(call.outputs[0]) for step, call in zip(steps, calls, strict=True)]
    assert not torch.equal(*given) and torch.equal(*made)
    torch.testing.assert_close(made[0], given[0] + given[1])


def test_the_calls_of_sharded_tensors_are_recorded_with_local_tensors(tensor_parallel: Path) -> None:
    step = steps_of(tensor_parallel)[0]
    up = next(call for call in step.calls if call.module == "mlp.up")
    assert up.operator == "aten.addmm.default"
    assert [ref.shape for ref in (*up.inputs, *up.outputs)] == [(16,), (8, 16), (16, 16), (8, 16)]
    assert not any("empty_strided" in call.operator for call in step.calls)
    reduce = next(call for call in step.calls if call.operator == "_c10d_functional.all_reduce.default")
    assert reduce.arguments[1:] == ("sum", ("group", reduce.arguments[2][1], (0, 1)))
    following = next(call for call in step.calls if call.operator == "aten.add.Tensor")
    assert reduce.outputs[0].storage in {ref.storage for ref in following.inputs}


@pytest.fixture(scope="module")
def every_collective(tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    folder = tmp_path_factory.mktemp("ranks") / "collectives"
    rank_jobs.run(rank_jobs.collectives, folder)
    return steps_of(folder)


def check_of(steps: list[Step]) -> CollectiveCheck:
    return check_collectives(dict(enumerate(steps)))


def test_right_collectives_are_found_right(
    every_collective: list[Step], data_parallel: Path, tensor_parallel: Path, sharded: Path
) -> None:
    assert check_of(every_collective) == CollectiveCheck((), 9, 9)
    for folder in (data_parallel, tensor_parallel, sharded):
        for step in range(2):
            check = check_of(steps_of(folder, step))
            assert check.wrong == () and check.checked == check.seen > 0


def spoiled(steps: list[Step], operator: str, rank: int | None, change: Callable[[int, Tensor], Tensor]) -> list[Step]:
    """The steps with another result of the first call of an operator, on one rank or on all."""
    found = []
    for own, step in enumerate(steps):
        call = next(call for call in step.calls if call.operator.startswith(operator))
        storages = dict(step.storages)
        if rank in (own, None):
            for ref in call.outputs:
                copy = storages[ref.storage] = storages[ref.storage].clone()
                values = torch.as_strided(copy.view(getattr(torch, ref.dtype)), ref.shape, ref.stride, ref.offset)
                values.copy_(change(own, values.clone()))
        found.append(replace(step, storages=storages))
    return found


WRONG = {
    "the avg of": ("c10d.allreduce_", None, lambda _steps: lambda _own, sum_: sum_ / 2),
    "the contribution of rank 1 is missing": (
        "c10d.allreduce_",
        None,
        lambda steps: lambda _own, _: given(steps[0], "c10d.allreduce_"),
    ),
    "reduced in 16 bits": ("c10d.allreduce_", 0, lambda _steps: lambda _own, sum_: sum_.bfloat16().float() * 1.001),
    "off by": ("c10d._reduce_scatter_base_", 1, lambda _steps: lambda _own, sum_: sum_ + 1),
    "what arrived differs": ("c10d._allgather_base_", 1, lambda _steps: lambda _own, all_: all_.flip(0)),
    "what was sent": ("c10d.broadcast_", 0, lambda _steps: lambda _own, sent: sent + 1e-6),
}


def given(step: Step, operator: str) -> Tensor:
    call = next(call for call in step.calls if call.operator.startswith(operator))
    return step.tensor(call.inputs[0])


@pytest.mark.parametrize("sentence", WRONG)
def test_a_wrong_collective_is_named_with_rank_and_reason(sentence: str, every_collective: list[Step]) -> None:
    operator, rank, change = WRONG[sentence]
    (wrong,) = check_of(spoiled(every_collective, operator, rank, change(every_collective))).wrong
    assert wrong.first.operator.startswith(operator)
    if rank is not None:
        assert wrong.ranks == (rank,)
    assert sentence in str(wrong.text)


def test_a_collective_that_was_read_too_early_is_named(every_collective: list[Step]) -> None:
    first = given(every_collective[1], "c10d.allreduce_")
    (wrong,) = check_of(spoiled(every_collective, "c10d.allreduce_", 1, lambda *_: first)).wrong
    assert wrong.ranks == (1,) and "own input" in str(wrong.text)


def test_ranks_that_call_different_collectives_are_named(every_collective: list[Step]) -> None:
    steps = [every_collective[0], replace(every_collective[1], calls=every_collective[1].calls[3:])]
    assert "different collectives" in str(check_of(steps).wrong[0].text)


def drifted(steps: list[Step], *names: str, whole: bool = False, by: float = 1 + 1e-6) -> list[Step]:
    """The steps with other values of named tensors on rank 1: the last ones, or all."""
    storages = dict(steps[1].storages)
    for name in names:
        numbers = [number for number, own in steps[1].names.items() if own == name]
        for number in numbers if whole else numbers[-1:]:
            storages[number] = (storages[number].view(torch.float32) * by).view(torch.uint8)
    return [steps[0], replace(steps[1], storages=storages)]


def test_copies_that_stay_the_same_raise_no_suspicion(
    data_parallel: Path, tensor_parallel: Path, sharded: Path
) -> None:
    for folder in (data_parallel, tensor_parallel, sharded):
        for step in range(2):
            assert find_drift(dict(enumerate(steps_of(folder, step)))) == []


def test_ranks_that_drift_apart_are_named_with_the_call_and_the_cause(data_parallel: Path) -> None:
    steps = steps_of(data_parallel)
    name = "module.mlp.up.weight"
    (drift,) = find_drift(dict(enumerate(drifted(steps, f"parameter {name}"))))
    assert (drift.name, drift.ranks) == (f"parameter {name}", (1,))
    assert drift.call is not None and drift.call.phase == "optimizer"
    assert "gradients are the same" in str(drift.text)
    (drift,) = find_drift(dict(enumerate(drifted(steps, f"parameter {name}", f"gradient of {name}"))))
    assert "not reduced" in str(drift.text)
    (drift,) = find_drift(dict(enumerate(drifted(steps, f"parameter {name}", whole=True))))
    assert drift.call is None and "begin the step with different values" in str(drift.text)


def test_the_command_tells_what_is_wrong(
    data_parallel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_ranks(data_parallel, as_json=False) == 0
    assert "step 0: 2 ranks, 1 of 1 collectives computed again" in capsys.readouterr().out
    steps = steps_of(data_parallel)
    halved = spoiled(steps, "c10d.allreduce_", None, lambda _, sum_: sum_ / 2)
    for step in drifted(halved, "parameter module.norm.bias"):
        write_step(tmp_path, step)
    assert check_ranks(tmp_path, as_json=False) == 1
    said = capsys.readouterr().out
    assert "c10d.allreduce_.default (backward, call " in said and "the avg of the inputs, not the sum" in said
    assert "parameter module.norm.bias" in said
    assert check_ranks(tmp_path, as_json=True) == 1
    (document,) = document_of("ranks", capsys.readouterr().out)
    assert document["wrong"][0]["ranks"] == [0, 1] and document["drift"][0]["ranks"] == [1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks") / "whole"
    rank_jobs.train(rank_jobs.model(), rank_jobs.batch(), folder)
    return folder


def with_whole(whole: Path, steps: list[Step], step: int = 0) -> WholeComparison:
    return compare_with_whole(read_step(step_file(whole, step, 0)), dict(enumerate(steps)))


def test_data_parallel_ranks_are_the_whole_run(whole: Path, data_parallel: Path) -> None:
    for step in range(2):
        comparison = with_whole(whole, steps_of(data_parallel, step), step)
        assert comparison.findings == ()
        assert comparison.layouts["split"] == 6 and comparison.layouts["the same on all ranks"] == 16
        assert comparison.floor < 1e-6


def test_values_with_gradients_of_rounding_are_no_finding_and_others_are(tmp_path: Path) -> None:
    rank_jobs.run(rank_jobs.encoders, tmp_path / "ranks")
    rank_jobs.train_with_adam(*rank_jobs.encoder(), tmp_path / "whole")
    for step in range(2):
        assert with_whole(tmp_path / "whole", steps_of(tmp_path / "ranks", step), step).findings == ()
    name = "layers.layers.0.self_attn.in_proj_bias"
    wrong = drifted(steps_of(tmp_path / "ranks", 1), f"parameter module.{name}", whole=True, by=1.05)
    (found,) = [one for one in with_whole(tmp_path / "whole", wrong, 1).findings if one.kind == "weight"]
    assert (found.name, found.ranks, round(found.apart, 3)) == (name, (1,), 0.05)


def with_loss(loss: float) -> Step:
    """A step of a model that gives its loss."""
    ref = TensorRef(0, "float32", (), (), 0)
    return Step([], {0: torch.tensor(loss)}, modules=[ModuleCall("", "Gpt", "forward", (), {}, ref, 0, 0)])


def test_the_loss_of_a_rank_is_that_of_its_own_part_of_the_batch() -> None:
    whole = with_loss(3.0)
    right = compare_with_whole(whole, {0: with_loss(2.0), 1: with_loss(4.0)})
    assert (right.findings, dict(right.layouts)) == ((), {"means": 1})
    (wrong,) = compare_with_whole(whole, {0: with_loss(2.0), 1: with_loss(5.0)}).findings
    assert wrong.name == "Gpt" and wrong.apart == pytest.approx(1 / 6)


def test_rows_and_columns_of_tensor_parallel_ranks_are_joined(whole: Path, tensor_parallel: Path) -> None:
    comparison = with_whole(whole, steps_of(tensor_parallel))
    assert comparison.findings == ()
    # The weights of both linear layers, the bias of the first, and their gradients.
    assert comparison.layouts["split"] == 6


def test_gradients_that_were_summed_and_not_averaged_are_named(whole: Path, data_parallel: Path) -> None:
    steps = steps_of(data_parallel)
    doubled = []
    for step in steps:
        storages = dict(step.storages)
        for number, name in step.names.items():
            if name.startswith("gradient of "):
                storages[number] = (storages[number].view(torch.float32) * 2).view(torch.uint8)
        doubled.append(replace(step, storages=storages))
    findings = with_whole(whole, doubled).findings
    assert {one.kind for one in findings} == {"gradient"}
    assert len(findings) == len(list(rank_jobs.model().parameters()))
    assert findings[0].ranks == (0, 1) and findings[0].apart == pytest.approx(1.0, rel=1e-3)


def test_the_rank_with_another_shard_is_named(
    whole: Path, tensor_parallel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in drifted(steps_of(tensor_parallel), "shard of parameter mlp.up.weight", whole=True, by=1.01):
        write_step(tmp_path / "parts", step)
    assert compare_folders(whole, tmp_path / "parts", as_json=False) == 1
    assert "weight mlp.up.weight on rank 1" in capsys.readouterr().out
    assert compare_folders(tmp_path / "parts", whole, as_json=True) == 1
    found = document_of("compare", capsys.readouterr().out)[0]["findings"][0]
    assert (found["kind"], found["name"], found["ranks"]) == ("weight", "mlp.up.weight", [1])
    assert compare_folders(whole, tensor_parallel, as_json=False) == 0
    assert "The ranks together compute what the single device computes." in capsys.readouterr().out


@pytest.mark.sim
def test_a_wrong_collective_of_two_npus_is_named_and_right_ones_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from npuport import sim

    try:
        sim.environment()
    except sim.SimulationUnavailable as reason:
        pytest.skip(str(reason))
    dump = tmp_path / "dump 两卡"
    options = ["run", "--sim", "--devices", "2", "--dump", str(dump), "--dump-steps", "0-2"]
    job = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "npu_ranks.py"]
    done = subprocess.run(
        [sys.executable, "-m", "npuport", *options, "--", *job],
        cwd=Path(__file__).parent, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert check_ranks(dump, as_json=False) == 1
    right, wrong, after = capsys.readouterr().out.split("\nstep ")
    assert right.splitlines()[1].strip().startswith("The collectives are right")
    assert wrong.count("c10d.allreduce_") == 1 and "(backward, call " in wrong and "on rank 1" in wrong
    assert " and 5 more (optimizer, call " in wrong
    assert "c10d" not in after and "begin the step with different values" in after


def test_a_dump_of_one_rank_is_refused(whole: Path) -> None:
    with pytest.raises(UserError, match="one rank only"):
        check_ranks(whole, as_json=False)
