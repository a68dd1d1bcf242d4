"""What two tensors differ by, held against the formulas computed at once in float64."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from npuport.precision.operators.agreement import apart, norm_of  # noqa: E402
from npuport.precision.operators.pieces import pieces  # noqa: E402
from npuport.precision.operators.replay import error_between  # noqa: E402

LARGE = (3, 100_003)  # more than a piece, and no multiple of one
MAX = torch.finfo(torch.float32).max


def noisy(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    values = torch.randn(shape, dtype=torch.float64)
    return values.to(dtype), (values * (1 + 1e-3 * torch.randn(shape, dtype=torch.float64))).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (7,), LARGE])
def test_a_distance_is_the_formula_s(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    one, other = noisy(shape, dtype)
    difference, size = (other.double() - one.double()).norm(), one.double().norm()
    assert apart(one, other) == pytest.approx(float(difference / size), rel=1e-9)
    assert norm_of(one) == pytest.approx(float(size), rel=1e-9)


@pytest.mark.parametrize("shape", [(7,), LARGE])
def test_an_error_is_the_formula_s(shape: tuple[int, ...]) -> None:
    result, truth = noisy(shape)
    truth = truth.double() * 1.01
    error = result.double() - truth
    size = truth.square().mean().sqrt()
    found = error_between(result, truth)
    assert found.relative == pytest.approx(float(error.square().mean().sqrt() / size))
    assert found.factor == pytest.approx(float((result.double() * truth).sum() / truth.square().sum()))
    assert found.scale == pytest.approx(float((error * truth).sum().abs() / (error * truth).norm()))
    assert found.effective == pytest.approx(float(truth.square().sum() ** 2 / truth.pow(4).sum()))
    largest = float((error.abs() / (truth.abs() + 0.1 * size)).max())
    assert found.peak == pytest.approx(largest / found.relative)
    assert found.broken == 0


def test_values_that_are_infinite_in_both_do_not_count() -> None:
    one, other = noisy(LARGE)
    expected = apart(one[:, 1:], other[:, 1:])
    one[:, 0], other[:, 0] = -math.inf, -MAX  # a mask: some devices give the largest value there is
    assert apart(one, other) == pytest.approx(expected, rel=1e-9)
    assert norm_of(one) == pytest.approx(float(one[:, 1:].double().norm()), rel=1e-9)
    assert error_between(other, one.double()).broken == 0
    assert error_between(other, one.double()).relative == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_one_value_that_is_not_finite_is_seen_in_any_piece(value: float) -> None:
    for place in (0, 150_000, 300_008):
        one, other = noisy(LARGE)
        other.view(-1)[place] = value
        assert apart(one, other) == 1.0
        assert error_between(other, one.double()).broken == 1


def test_tensors_that_lie_otherwise_in_memory_are_compared_by_place() -> None:
    one, other = noisy((300, 501))
    expected = apart(one, other)
    for turned in (one.t().contiguous().t(), one):
        assert apart(turned, other.t().contiguous().t()) == pytest.approx(expected, rel=1e-9)
    assert apart(one.t(), other.t()) == pytest.approx(expected, rel=1e-9)
    assert apart(one[:, :1].expand(300, 7), other[:, :1].expand(300, 7)) == pytest.approx(
        apart(one[:, :1], other[:, :1]), rel=1e-9
    )


def test_complex_numbers_have_a_distance_too() -> None:
    one, other = (torch.complex(part, part.flip(0)) for part in noisy((7,)))
    size, difference = one.abs().square().sum().sqrt(), (other - one).abs().square().sum().sqrt()
    assert apart(one, other) == pytest.approx(float(difference / size), rel=1e-6)
    assert apart(one.conj(), other.conj()) == pytest.approx(float(difference / size), rel=1e-6)
    assert apart(one, one.real) == pytest.approx(float(one.imag.norm() / size), rel=1e-6)


def test_of_whole_numbers_the_share_that_differs_counts() -> None:
    assert apart(torch.tensor([1, 2, 3, 4]), torch.tensor([1, 2, 0, 4])) == 0.25
    assert apart(torch.tensor([True, False]), torch.tensor([True, True])) == 0.5
    assert apart(torch.empty(0), torch.empty(0)) == 0.0


def test_no_piece_is_as_large_as_a_large_tensor() -> None:
    one, other = noisy(LARGE)
    sizes = [piece.values.numel() for piece in pieces(one, other, math.inf)]
    assert sum(sizes) == one.numel()
    assert max(sizes) * 2 < one.numel()
