"""The verdict on one result of a call: whether its dtype and its inputs explain how far it is from the truth.

What a result may be off is measured on the call itself, not taken from a table: the rounding of the result, what the
CPU's kernel is off in the same dtypes, and how far the true result moves if every input is moved by one rounding. A
gradient that is tiny is judged by its own size. The published standard of the operator is asked as well; where even the
CPU does not keep it, it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

from npuport.facts.precision_standards import OperatorStandard, limits
from npuport.findings import Sentence, say
from npuport.precision.checking import published
from npuport.precision.checking.errors import (
    Allowed,
    Off,
    Second,
    as_real,
    off,
    real_dtype,
    rounding,
)
from npuport.precision.checking.published import Kept, Measures, measures, worst_ratio

# How many times what is allowed an error may be. In float32 kernels approximate (the published tolerance of a product
# of two numbers is 16 roundings); in 16 bits they compute in float32 and round once.
_TIMES = {torch.float16: 4.0, torch.bfloat16: 4.0}
_TIMES_ELSE = 32.0
_PEAK = 5.0  # a single value may be further off, as the published limits for the largest and the usual error have it
_WHOLE, _SIGMAS = 1.25, 8.0  # roundings that a 16-bit result may be off as a whole, and how sure that must be
_SAME = 0.1  # share of the error that a factor leaves where the factor is the error


@dataclass(frozen=True)
class ResultCheck:
    """The verdict on one result of a call. ``times`` is its error over what is allowed: above 1 it fails."""

    position: int
    dtype: str
    shape: tuple[int, ...]
    holds: bool
    limit: float  # of ``relative``, above which it fails in any case
    relative: float  # root mean square of the error over that of the truth; of whole numbers the share that differs
    times: float
    kept: Kept | None  # the published standard, where it says something
    text: Sentence | None  # why it fails, or what is worth knowing


@dataclass(frozen=True)
class Reduced:
    """Inputs that a device rounds before it multiplies them, and what the mode is called."""

    unit: float
    name: str


class Result:
    """One result of a call, with its truth and what else is known of the call."""

    def __init__(
        self,
        position: int,
        got: torch.Tensor,
        truth: torch.Tensor,
        second: Second,
        standard: OperatorStandard,
        reduced: Reduced | None = None,
        reference: Measures | None = None,
    ) -> None:
        self.position, self.second, self.standard, self.reduced = position, second, standard, reduced
        self.reference = reference
        self.dtype = real_dtype(got.dtype)
        self.shape = tuple(got.shape)
        self._got, self._truth = got, truth
        if truth.shape != got.shape and self.cpu is not None:  # kernels may differ in it by dtype
            self._truth = self.cpu

    def check(self) -> ResultCheck:
        """The verdict."""
        if self._truth.shape != self._got.shape:
            text = say("its shape is {shape}, that of the CPU {other}", shape=list(self.shape),
                       other=list(self._truth.shape))  # fmt: skip
            return self._verdict(False, 1.0, float("inf"), None, text)
        if not self._got.numel():
            return self._verdict(True, 0.0, 0.0, None, None)
        if not self.dtype.is_floating_point:
            return self._whole_numbers()
        broken = self._broken()
        if broken:
            text = say("{number} of {total} values are finite and should not be, or are not and should",
                       number=broken, total=self._got.numel())  # fmt: skip
            return self._verdict(False, float("inf"), float("inf"), None, text)
        if self.standard.standard == "equal":
            return self._equal()
        return self._close()

    @cached_property
    def got(self) -> torch.Tensor:
        return as_real(self._got)

    @cached_property
    def truth(self) -> torch.Tensor:
        """The truth in float64; what is too large for the result's dtype is infinite."""
        exact = as_real(self._truth)
        rounded = exact.to(self.dtype).double()
        return torch.where(torch.isinf(rounded), rounded, exact)

    @cached_property
    def rounded(self) -> torch.Tensor:
        """The truth as the result's dtype has it."""
        return self.truth.to(self.dtype).double()

    @property
    def cpu(self) -> torch.Tensor | None:
        """What the CPU gives in the recorded dtypes."""
        result = self.second.result(self.position)
        return result if result is not None and result.shape == self._got.shape else None

    def _whole_numbers(self) -> ResultCheck:
        wrong = self._got != self._truth.to(self._got.dtype)
        if bool(wrong.any()) and self.cpu is not None:  # a comparison with 0.1 is one with another number in float64
            wrong &= self._got != self.cpu.to(self._got.dtype)
        number = int(wrong.sum())
        share = number / self._got.numel()
        if not number:
            return self._verdict(True, 0.0, 0.0, None, None)
        text = say("{number} of {total} whole numbers differ", number=number, total=self._got.numel())
        return self._verdict(False, share, float("inf"), None, text)

    def _broken(self) -> int:
        """How many values are NaN, infinite or finite and should be another of these."""
        same = _kind(self.got) == _kind(self.truth)
        if bool(same.all()):
            return 0
        largest = float(torch.finfo(self.dtype).max)  # what a device gives that saturates
        same |= torch.isinf(self.truth) & (self.got.abs() >= largest) & (self.got.sign() == self.truth.sign())
        if not bool(same.all()) and self.cpu is not None:  # too large on the way
            same |= _kind(self.got) == _kind(as_real(self.cpu))
        return int((~same).sum())

    def _equal(self) -> ResultCheck:
        finite = torch.isfinite(self.got) & torch.isfinite(self.rounded)
        wrong = finite & (self.got != self.rounded)
        if bool(wrong.any()) and self.cpu is not None:
            wrong &= self.got != as_real(self.cpu)
        number, total = int(wrong.sum()), wrong.numel()
        kept = Kept(not number, "equal", number / total, 0.0)
        if not number:
            return self._verdict(True, 0.0, 0.0, kept, None)
        one = off(self.got, self.truth, Allowed(self.truth, self.dtype))
        text = say("{number} of {total} values differ; this operator computes nothing, every bit must agree",
                   number=number, total=total)  # fmt: skip
        return self._verdict(False, one.relative, float("inf"), kept, _factor_text(one) or text)

    def _close(self) -> ResultCheck:
        allowed = Allowed(self.truth, self.dtype)
        one = off(self.got, self.truth, allowed)
        if self._times(one) > 1:  # rounding alone does not explain it: ask what these inputs make of a rounding
            allowed.widen(self.second.moves(self.position, max(rounding(self.dtype), self.second.between)))
            allowed.widen(self._error_of_cpu())
            one = off(self.got, self.truth, allowed)
        kept = self._published()
        note = None
        if self.reduced is not None and not self._holds(one, kept):
            allowed.widen(self.second.moves(self.position, self.reduced.unit))
            reduced = off(self.got, self.truth, allowed)
            if self._holds(reduced, None):
                one, kept = reduced, None
                note = say("within the error of {mode}, in which this device multiplies by default",
                           mode=self.reduced.name)  # fmt: skip
        holds = self._holds(one, kept)
        if self.reference is not None and holds:
            kept = self._ratio(limits("ratio", self._part).get("floor", 0.0))
            holds = kept.holds
        elif self.reference is not None and self._ratio(rounding(self.dtype)).holds:
            holds, note = True, say("the same call of the reference is as far off")
        text = note if holds else next(self._reasons(one, kept))
        return self._verdict(holds, one.relative, self._times(one), kept, text)

    def _holds(self, one: Off, kept: Kept | None) -> bool:
        return self._times(one) <= 1 and (kept is None or kept.holds)

    def _ratio(self, floor: float) -> Kept:
        """The error over that of the reference's same call."""
        assert self.reference is not None
        return worst_ratio(measures(self.got, self.truth, self._part), self.reference, self.standard.care, floor)

    def _error_of_cpu(self) -> torch.Tensor:
        """The error of each value of the CPU's result. One may be right by chance: at least its share of all errors."""
        if self.cpu is None:
            return torch.zeros_like(self.truth)
        error = (as_real(self.cpu) - self.truth).abs().nan_to_num(0.0, 0.0, 0.0)
        share = min(self._off_on_cpu().relative, 1.0)
        return torch.maximum(error, (self.truth.abs() * share).nan_to_num(0.0, 0.0, 0.0))

    def _off_on_cpu(self) -> Off:
        """The error of what the CPU gives in the recorded dtypes."""
        assert self.cpu is not None
        return off(as_real(self.cpu), self.truth, Allowed(self.truth, self.dtype))

    def _times(self, one: Off) -> float:
        limit = _TIMES.get(self.dtype, _TIMES_ELSE)
        times = max(one.times / limit, one.most / limit, one.peak / (limit * _PEAK))
        if self.dtype in _TIMES and one.sigmas > _SIGMAS:
            times = max(times, abs(one.factor - 1) / (_WHOLE * rounding(self.dtype)) if self._is_off_alone(one) else 0)
        return times

    def _is_off_alone(self, one: Off) -> bool:
        """Whether the CPU's result is not off as a whole in the same way."""
        if abs(one.factor - 1) <= _WHOLE * rounding(self.dtype) or self.cpu is None:
            return True
        return abs(self._off_on_cpu().factor - 1) < abs(one.factor - 1) / 2

    def _published(self) -> Kept | None:
        """The published standard, unless the CPU's own result does not keep it either."""
        kept = self._kept(self.got)
        if kept is None or kept.holds or self.cpu is None:
            return kept
        other = self._kept(as_real(self.cpu))
        return kept if other is not None and other.holds else None

    def _kept(self, result: torch.Tensor) -> Kept | None:
        finite = torch.isfinite(result) & torch.isfinite(self.truth)
        got, truth = result[finite], self.truth[finite]
        if self.standard.standard == "absolute":
            return published.absolute(got, truth, self._part)
        if self.standard.standard == "ulp":
            return published.ulp(got, truth, self.dtype)
        return published.thousandth(got, truth) if self.standard.standard == "thousandth" else None

    def _reasons(self, one: Off, kept: Kept | None) -> Iterator[Sentence]:
        """Why the result fails, the plainest first."""
        factor = _factor_text(one)
        if factor is not None:
            yield factor
        limit = _TIMES.get(self.dtype, _TIMES_ELSE)
        times = max(one.times, one.most)
        if times > limit:
            yield say("its error is {error} of its size, {times} x what {dtype} and these inputs explain",
                      error=f"{one.relative:.1e}", times=f"{times:.3g}", dtype=self._dtype_name)  # fmt: skip
        if one.peak > limit * _PEAK:
            got, truth = (f"{float(values.flatten()[one.at]):.6g}" for values in (self.got, self.truth))
            yield say("a value is {got} and should be {truth}: {times} x what {dtype} and these inputs explain",
                      got=got, truth=truth, times=f"{one.peak:.3g}", dtype=self._dtype_name)  # fmt: skip
        if kept is not None and not kept.holds and self.reference is not None:
            yield say("its error is {times} x that of the reference ({measure}; the published limit is {limit})",
                      times=f"{kept.value:.3g}", measure=kept.measure, limit=kept.limit)  # fmt: skip
        if kept is not None and not kept.holds:
            yield say("the published standard {standard} is not kept ({share} of the values, allowed {limit}); "
                      "the CPU keeps it", standard=kept.measure, share=f"{kept.value:.2%}",
                      limit=f"{kept.limit:.2%}")  # fmt: skip
        yield say("the result is {share} off as a whole", share=f"{one.factor - 1:+.2%}")

    @property
    def _part(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def _dtype_name(self) -> str:
        return str(self._got.dtype).removeprefix("torch.")

    def _verdict(
        self, holds: bool, relative: float, times: float, kept: Kept | None, text: Sentence | None
    ) -> ResultCheck:
        limit = relative / times if 0 < times < float("inf") else 0.0
        if not holds and 0 < times <= 1:  # a published standard accuses: twice what the CPU is off is right
            limit = min(relative / 2, 2 * self._off_on_cpu().relative) if self.cpu is not None else relative / 2
        return ResultCheck(self.position, self._dtype_name, self.shape, holds, limit, relative, times, kept, text)


def _kind(values: torch.Tensor) -> torch.Tensor:
    """0 for finite values, 1 for NaN, 2 and 3 for the infinities."""
    return torch.isnan(values) + 2 * torch.isposinf(values).to(torch.int8) + 3 * torch.isneginf(values).to(torch.int8)


def _factor_text(one: Off) -> Sentence | None:
    """Where the error is a factor: which."""
    if abs(one.factor - 1) < 1e-3 or one.rest > _SAME:
        return None
    return say("the result is {factor} x what it should be", factor=f"{one.factor:.4g}")
