"""How far a result is from the truth, and how far it may be: what its dtype and its inputs explain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.execution import Change, NotExecutableError, execute
from npuport.precision.references.formulas import rounds_between

_NEAR_ZERO = 0.1  # values below this share of the root mean square may be as far off as one that large
_DRAWS = 3  # one alone may hit upon a direction in which nothing changes


@dataclass(frozen=True)
class Off:
    """The error of the finite values of a result.

    - ``relative``: its root mean square as a share of that of the truth;
    - ``times``: its root mean square over that of what is allowed;
    - ``most``: the error over what is allowed that half of the values exceed;
    - ``peak``: the largest error of a value over what that value is allowed, and ``at`` which, in order of the values;
    - ``factor``: what the result is times the truth, ``sigmas`` how surely that is not 1, and ``rest`` the share of the
      error that a factor leaves.
    """

    relative: float
    times: float
    most: float
    peak: float
    at: int
    factor: float
    sigmas: float
    rest: float


class Second:
    """A second opinion on a call: the same kernel of the CPU in the recorded dtypes, and how much the true result moves
    if each input is moved by the rounding of ``unit``. Both are computed when they are first asked for."""

    def __init__(self, call: Call, step: Step, truths: list[torch.Tensor]) -> None:
        self._call, self._step, self._truths = call, step, truths
        self._moved: dict[float, list[list[torch.Tensor]]] = {}

    @cached_property
    def results(self) -> list[torch.Tensor]:
        """What the CPU makes of the call in the recorded dtypes; empty where it cannot."""
        try:
            return execute(self._call, self._step, floating=None)
        except NotExecutableError:
            return []

    @cached_property
    def between(self) -> float:
        """The rounding of values on the way where the operator may round them to the dtype of its inputs, else 0."""
        if not rounds_between(self._call.operator):
            return 0.0
        dtypes = (getattr(torch, ref.dtype) for ref in self._call.inputs)
        return max((rounding(one) for one in dtypes if one.is_floating_point), default=0.0)

    def result(self, position: int) -> torch.Tensor | None:
        return self.results[position] if position < len(self.results) else None

    def moves(self, position: int, unit: float) -> torch.Tensor:
        """The largest change of each value of the true result, over a few draws."""
        truth = as_real(self._truths[position])
        if unit not in self._moved:
            self._moved[unit] = [self._draw(unit, seed) for seed in range(_DRAWS)]
        largest = torch.zeros_like(truth)
        for results in self._moved[unit]:
            moved = as_real(results[position]) if position < len(results) else truth
            if moved.shape == truth.shape:
                largest = torch.maximum(largest, (moved - truth).abs().nan_to_num(0.0, 0.0, 0.0))
        return largest

    def _draw(self, unit: float, seed: int) -> list[torch.Tensor]:
        try:
            return execute(self._call, self._step, change=_moved_by(unit, seed))
        except NotExecutableError:
            return []


def _moved_by(unit: float, seed: int) -> Change:
    random = torch.Generator().manual_seed(seed)

    def change(tensor: torch.Tensor) -> torch.Tensor:
        signs = torch.randint(0, 2, tensor.shape, generator=random, dtype=torch.int8).mul_(2).sub_(1)
        return tensor + tensor * signs * unit

    return change


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a tensor in float64; of a complex one real and imaginary parts."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.double()


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the parts of a complex dtype; other dtypes as they are."""
    return dtype.to_real() if dtype.is_complex else dtype


def rounding(dtype: torch.dtype) -> float:
    """Half the distance of neighbouring values as a share of the value."""
    return float(torch.finfo(dtype).eps) / 2


def smallest(dtype: torch.dtype) -> float:
    """An error that is none, however small the value: below the normal numbers, which devices may flush to zero; in
    float16, where gradients live there, half the distance of those numbers."""
    information = torch.finfo(dtype)
    tiny = float(information.smallest_normal)
    return tiny * float(information.eps) / 2 if dtype is torch.float16 else tiny


class Allowed:
    """What a result may be off, value by value: the rounding of the value, and what else is known of the call."""

    def __init__(self, truth: torch.Tensor, dtype: torch.dtype) -> None:
        floor = smallest(dtype)
        self.own = truth.abs().mul_(rounding(dtype)).add_(floor).nan_to_num_(floor, floor)
        # Beside large values small ones may be further off: they were summed with large ones on the way. The lowest
        # numbers of a dtype, which masks are made of, say nothing about the size of the others.
        size = _rms(truth[truth.abs() < torch.finfo(dtype).max / 4])
        self.among_others = self.own.clamp(min=_NEAR_ZERO * size * rounding(dtype))

    def widen(self, more: torch.Tensor) -> None:
        """Allow at least ``more``."""
        self.own, self.among_others = torch.maximum(self.own, more), torch.maximum(self.among_others, more)


def off(got: torch.Tensor, truth: torch.Tensor, allowed: Allowed) -> Off:
    """The error of a result; values that are not finite on either side are left out."""
    finite = torch.isfinite(got) & torch.isfinite(truth)
    if not bool(finite.any()):
        return Off(0.0, 0.0, 0.0, 0.0, 0, 1.0, 0.0, 0.0)
    places = torch.nonzero(finite.flatten()).flatten()
    got, truth, own, among_others = got[finite], truth[finite], allowed.own[finite], allowed.among_others[finite]
    error = got - truth
    size, rms = _rms(truth), _rms(error)
    shares = error.abs() / among_others
    worst = int(shares.argmax())
    values = (error.abs() / own)[truth != 0]
    # Sizes are divided out first: squares of tiny gradients would be zero.
    scaled, pull = (truth / size, error / size) if size else (truth, error)
    square = float(scaled.dot(scaled))
    factor = 1 + float(pull.dot(scaled)) / square if square else 1.0
    products = pull * scaled
    uncertain = float(products.square().sum().sqrt())
    return Off(
        relative=rms / size if size else (float("inf") if rms else 0.0),
        times=rms / _rms(among_others),
        most=float(values.median()) if values.numel() else 0.0,
        peak=float(shares[worst]),
        at=int(places[worst]),
        factor=factor,
        sigmas=abs(float(products.sum())) / uncertain if uncertain else 0.0,
        rest=_rms(pull - (factor - 1) * scaled) / _rms(pull) if rms and size else 0.0,
    )


def _rms(values: torch.Tensor) -> float:
    """The root mean square, also of values whose squares are no numbers."""
    if not values.numel():
        return 0.0
    largest = float(values.abs().max())
    return largest * float((values / largest).square().mean().sqrt()) if largest else 0.0
