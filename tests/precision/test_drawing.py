"""Calls whose results do not follow from their inputs, by the names that PyTorch and msprobe give them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from msprobe_dumps import forward, tensor, write_dump

from npuport.precision.dumps import read_any_step
from npuport.precision.operators.calls import Call
from npuport.precision.operators.drawing import drops, holds_anything, is_random
from npuport.precision.operators.suspects import Comparison, compare


def call(operator: str, phase: str = "forward") -> Call:
    return Call(0, operator, "", phase, (), {}, None, "")


@pytest.mark.parametrize(
    "operator", ["aten.rand_like.default", "aten.normal_.default", "aten.bernoulli.p", "aten.randint.low",
                 "aten.native_dropout.default", "aten.random_.from", "aten.uniform_.default",
                 "npu._npu_dropout.default", "Torch.randn.3", "Tensor.normal_.0", "Functional.dropout.12",
                 "Module.Dropout.0"],
)  # fmt: skip
def test_random_numbers(operator: str) -> None:
    assert is_random(call(operator))
    assert drops(call(operator)) is ("dropout" in operator.lower())
    assert not holds_anything(call(operator))


@pytest.mark.parametrize(
    "operator", ["Functional.normalize.0", "Functional.poisson_nll_loss.0", "aten.norm.Scalar", "aten.add.Tensor",
                 "aten.native_dropout_backward.default", "Module.Dropout.backward.0"],
)  # fmt: skip
def test_none_of_them(operator: str) -> None:
    phase = "backward" if "backward" in operator else "forward"
    assert not is_random(call(operator, phase))
    assert not holds_anything(call(operator, phase))


def test_the_backward_call_of_a_dropout_draws_nothing() -> None:
    assert not is_random(call("Functional.dropout.0", "backward"))


@pytest.mark.parametrize("operator", ["aten.empty.memory_format", "aten.new_empty.default", "Torch.empty_like.0"])
def test_memory(operator: str) -> None:
    assert holds_anything(call(operator))


def compared(tmp_path: Path, api: str, other_output: dict[str, float], noise: float = 1e-6) -> Comparison:
    """Two dumps of a chain of layers with one other API in it, whose output is as given in the second."""
    steps = []
    for side in (0, 1):
        data, x = {}, tensor(8, norm=5.0)
        for number in range(20):
            factor = 1.0 + side * noise * (number + 1)
            y = tensor(8, norm=(6.0 + number) * factor, mean=0.1 * (number + 1) * factor)
            if number == 10:
                given = {"norm": 3.0 * factor, "mean": 0.5 * factor, **(other_output if side else {})}
                data[f"{api}.forward"] = forward([x], [y := tensor(8, **given)])
            else:
                data[f"Functional.gelu.{number}.forward"] = forward([x], [y])
            x = y
        steps.append(read_any_step(write_dump(tmp_path / str(side), data)))
    return compare(steps[0], steps[1])


def test_what_lies_in_new_memory_is_no_error(tmp_path: Path) -> None:
    assert compared(tmp_path / "far", "Torch.empty_like.0", {"norm": 900.0}).suspects == ()
    assert compared(tmp_path / "nan", "Torch.empty_like.0", {"largest": math.nan}).suspects == ()
    # The same of an operator that computes is.
    assert compared(tmp_path / "relu", "Functional.relu.0", {"norm": 900.0}).suspects != ()


def test_a_dropout_with_other_numbers_is_no_error_but_said(tmp_path: Path) -> None:
    found = compared(tmp_path, "Functional.dropout.0", {"norm": 3.4, "mean": 0.6})
    assert found.suspects == ()
    assert found.random is not None and found.random.operator == "Functional.dropout.0"


def test_a_dropout_with_the_same_numbers_hides_nothing(tmp_path: Path) -> None:
    assert compared(tmp_path, "Functional.dropout.0", {}).random is None
