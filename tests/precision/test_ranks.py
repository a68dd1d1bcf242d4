"""Steps of several ranks: what collectives did is recorded as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import rank_jobs  # noqa: E402

from npuport.precision.operators.calls import Step, read_step, step_file  # noqa: E402


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
