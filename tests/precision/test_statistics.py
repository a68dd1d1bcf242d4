"""Statistics of tensors are those of double arithmetic on the finite values; checksums tell values and their order."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from npuport.precision.operators.statistics import Statistics  # noqa: E402
from npuport.precision.operators.summing import Awaited, statistics_of, values_of  # noqa: E402

NAN, INF = math.nan, math.inf


def _of(tensor: torch.Tensor) -> list[Statistics]:
    """Computed at once, and as a device does."""
    awaited = Awaited(with_checksum=True)
    awaited.add("one", tensor)
    if tensor.numel():
        awaited._reduce(["as on a device"], values_of(tensor).view(1, -1))
    return [statistics_of(tensor, with_checksum=True), *awaited.fetch().values()]


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16,
          torch.int32, torch.int64, torch.bool, torch.float8_e4m3fn, torch.uint16]  # fmt: skip


@pytest.mark.parametrize("size", [1, 5, 5000, 20000])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_statistics_are_those_of_double_arithmetic(dtype: torch.dtype, size: int) -> None:
    tensor = (torch.randn(size, generator=torch.Generator().manual_seed(1)).abs() * 5).to(dtype)
    expected = tensor.double()
    for one in _of(tensor):
        assert (one.max, one.min) == (float(expected.max()), float(expected.min()))
        assert one.mean == pytest.approx(float(expected.mean()), rel=1e-5)
        assert one.norm == pytest.approx(float(expected.norm()), rel=1e-5)
        assert (one.nans, one.infs) == (0, 0)


@pytest.mark.parametrize("many", [1, 3000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("values", "finite", "nans", "infs"),
    [
        ([1.0, -2.0, NAN], [1.0, -2.0], 1, 0),
        ([1.0, -INF], [1.0], 0, 1),
        ([INF, -INF, NAN, 3.0], [3.0], 1, 2),
        ([INF, INF], [], 0, 2),
        ([NAN], [], 1, 0),
    ],
)
def test_what_is_not_finite_is_counted_and_left_out(
    values: list[float], finite: list[float], nans: int, infs: int, dtype: torch.dtype, many: int
) -> None:
    for one in _of(torch.tensor(values * many, dtype=dtype)):
        assert (one.nans, one.infs) == (nans * many, infs * many)
        if finite:
            assert (one.max, one.min) == (max(finite), min(finite))
            assert one.mean == pytest.approx(sum(finite) / len(finite))
        else:
            assert all(math.isnan(value) for value in (one.max, one.min, one.mean))
        assert one.norm == pytest.approx(math.sqrt(many * sum(value**2 for value in finite)), rel=1e-5)


def test_odd_tensors() -> None:
    assert [one.norm for one in _of(torch.zeros(0, 3))] == [0.0] * 2
    for one in _of(torch.tensor([3 + 4j, -1j])):
        assert (one.max, one.min, one.norm) == (4.0, -1.0, pytest.approx(math.sqrt(26)))
    large = statistics_of(torch.full((9000,), 1e30))
    assert large.norm == pytest.approx(1e30 * math.sqrt(9000))
    spread = statistics_of(torch.tensor([[1.0], [2.0]]).expand(2, 3))
    assert (spread.mean, spread.norm) == (1.5, pytest.approx(math.sqrt(15)))
    matrix = torch.randn(70, 90)
    assert statistics_of(matrix.t()) == statistics_of(matrix)
    assert statistics_of(matrix[:, 1:8]).mean == pytest.approx(float(matrix[:, 1:8].double().mean()), abs=1e-6)


@pytest.mark.parametrize("size", [16_385, 131_072, 1_500_000])
def test_norms_are_closer_than_a_sum_of_all_squares_in_float32(size: int) -> None:
    values = torch.rand(size, generator=torch.Generator().manual_seed(4))
    assert statistics_of(values).norm == pytest.approx(float(values.double().norm()), rel=3e-7)


def test_small_tensors_on_the_cpu_may_be_beyond_the_range_of_float32() -> None:
    awaited = Awaited()
    awaited.add("large", torch.full((4,), 3e38))
    (one,) = awaited.fetch().values()
    assert (one.norm, one.mean, one.infs) == (pytest.approx(6e38), pytest.approx(3e38), 0)


def test_small_tensors_are_computed_together_and_as_they_were() -> None:
    awaited = Awaited()
    tensor = torch.ones(10)
    awaited.add("before", tensor)
    tensor.fill_(2)
    awaited.add("after", tensor)
    awaited.add("other", torch.ones(3, dtype=torch.int64))
    found = awaited.fetch()
    assert [found[key].mean for key in ("before", "after", "other")] == [1.0, 2.0, 1.0]
    assert awaited.fetch() == {}


@pytest.mark.parametrize("size", [1, 128, 8192, 8193, 100_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64], ids=str)
def test_checksums_tell_values_and_their_order(dtype: torch.dtype, size: int) -> None:
    zeros, ones = torch.zeros(size, dtype=dtype), torch.ones(size, dtype=dtype)
    seen = {_checksum(zeros), _checksum(ones)}
    assert len(seen) == 2
    places = sorted({0, 1, size // 2, size - 1} & set(range(size)))
    for place in places:
        changed = zeros.clone()
        changed[place] = 1
        seen.add(_checksum(changed))
    assert len(seen) == 2 + len(places) - (size == 1)
    assert _checksum(zeros) == _checksum(zeros.clone())


def _checksum(tensor: torch.Tensor) -> int | None:
    one, other, *_ = (found.checksum for found in _of(tensor))
    assert one == other is not None
    return one


def test_checksums_of_random_tensors_do_not_collide() -> None:
    # Values whose bits end in zeros are the hard case of sums: 0, 1, 2 and -0 in every order.
    values = torch.tensor([0.0, 1.0, 2.0, -0.0])
    draws = values[torch.randint(0, 4, (20_000, 16), generator=torch.Generator().manual_seed(0))]
    awaited = Awaited(with_checksum=True)
    for number, row in enumerate(draws):
        awaited.add(number, row)
    found = awaited.fetch()
    different = {row.numpy().tobytes() for row in draws}
    assert len({one.checksum for one in found.values()}) == len(different)
