"""Measuring one optimizer step on the device: every number of every parameter, fetched at once in the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from npuport.precision.training_state.history import METRICS, SKETCH

_LONGEST = 1 << 16
"""Length of the signs of a sketch; longer gradients are folded onto it."""

_PART = 1 << 22
"""Values of a weight whose checksum is computed at once."""

_FIRST_MOMENTS = ("exp_avg", "momentum_buffer")
_SECOND_MOMENTS = ("exp_avg_sq", "square_avg", "sum")


class Measurer:
    """Measures the parameters of one optimizer. ``before`` is called right before a step, ``after`` right behind it.

    A copy of the parameters that have a gradient lives between the two: it costs their memory once.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.parameters: list[torch.Tensor] = [one for group in optimizer.param_groups for one in group["params"]]
        self._optimizer = optimizer
        self.is_broken = False  # whether a gradient of the last step was not finite
        self._moving: list[int] = []
        self._known: list[torch.Tensor] = []
        self._weights: list[torch.Tensor] = []
        self._sketches: list[torch.Tensor] = []
        self._signs: dict[torch.device, torch.Tensor] = {}

    @torch.no_grad()
    def before(self) -> None:
        """What is known of gradients and weights before they are changed."""
        self._moving = [at for at, one in enumerate(self.parameters) if one.grad is not None and not one.grad.is_sparse]
        gradients = [_local(self.parameters[at].grad).detach().float() for at in self._moving]
        self._weights = [_local(self.parameters[at]).detach().clone() for at in self._moving]
        self._known = [*_norms(gradients), *_norms([one.float() for one in self._weights])]
        self._sketches = [self._sketch(one) for one in gradients]

    @torch.no_grad()
    def after(self, more: Sequence[torch.Tensor], checksums: bool) -> tuple[list[float], list[float], list[int]]:
        """(numbers of all parameters, ``more`` as numbers, checksums of the weights or none); the one synchronisation.

        The numbers of a parameter are METRICS and then SKETCH numbers that tell the direction of its gradient; NaN
        where a parameter has no gradient or its optimizer keeps no such state.
        """
        now = [_local(self.parameters[at]).detach() for at in self._moving]
        updates = _norms([(one - weight).float() for one, weight in zip(now, self._weights, strict=True)])
        self._weights = []
        states = [self._optimizer.state.get(self.parameters[at], {}) for at in self._moving]
        moments = [self._moments(states, names) for names in (_FIRST_MOMENTS, _SECOND_MOMENTS)]
        sums = [_checksum(_local(one)) for one in self.parameters] if checksums else []
        numbers = _fetched([*self._known, *updates, *moments[0], *moments[1], *self._sketches, *more, *_quarters(sums)])
        count = len(self._moving)
        columns = [numbers[at * count : (at + 1) * count] for at in range(5)]
        self.is_broken = not all(map(math.isfinite, columns[0]))
        sketches = numbers[5 * count : 5 * count + SKETCH * count]
        rest = numbers[5 * count + SKETCH * count :]
        values = [math.nan] * (len(METRICS) + SKETCH) * len(self.parameters)
        for row, at in enumerate(self._moving):
            start = at * (len(METRICS) + SKETCH)
            gradient, weight, update, first, second = (column[row] for column in columns)
            bad = 0.0 if math.isfinite(gradient) else self._not_finite(at)
            values[start : start + len(METRICS)] = [gradient, bad, weight, update, first, second]
            values[start + len(METRICS) : start + len(METRICS) + SKETCH] = sketches[row * SKETCH : (row + 1) * SKETCH]
        return values, rest[: len(more)], _whole(rest[len(more) :])

    def _not_finite(self, parameter: int) -> float:
        """How many values of a gradient are not finite; optimizers leave gradients as they are."""
        gradient = _local(self.parameters[parameter].grad)
        return math.nan if gradient is None else float(torch.isfinite(gradient).logical_not().sum())

    def _moments(self, states: Sequence[dict[str, Any]], names: Sequence[str]) -> list[torch.Tensor]:
        """The norm of an optimizer's state for each parameter that has a gradient; NaN where it keeps none."""
        found = [next((state[name] for name in names if _is_moment(state.get(name))), None) for state in states]
        norms = iter(_norms([_local(one).detach().float() for one in found if one is not None]))
        nothing = torch.full((), math.nan)
        return [nothing if one is None else next(norms) for one in found]

    def _sketch(self, gradient: torch.Tensor) -> torch.Tensor:
        """SKETCH sums of the gradient with fixed random signs: their angles are about those of the gradients."""
        flat = gradient.reshape(-1)
        if flat.device not in self._signs:
            generator = torch.Generator().manual_seed(20240229)
            signs = torch.randint(0, 2, (_LONGEST,), generator=generator).float().mul_(2).sub_(1)
            self._signs[flat.device] = signs.to(flat.device)
        signs = self._signs[flat.device]
        if flat.numel() > _LONGEST:
            whole = flat.numel() // _LONGEST * _LONGEST
            folded = flat[:whole].view(-1, _LONGEST).sum(0)
            folded[: flat.numel() - whole] += flat[whole:]
            flat = folded
        short = flat.numel() % SKETCH
        signed = flat * signs[: flat.numel()]
        if short:
            signed = torch.cat([signed, signed.new_zeros(SKETCH - short)])
        return signed.view(-1, SKETCH).sum(0)


def _local(tensor: Any) -> Any:
    """The part of a sharded tensor that this process has."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _is_moment(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() > 0


def _norms(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(torch._foreach_norm(tensors)) if tensors else []


def _fetched(tensors: Sequence[torch.Tensor]) -> list[float]:
    """All numbers of tensors, which come from their device together."""
    if not tensors:
        return []
    device = next((one.device for one in tensors if one.device.type != "cpu"), tensors[0].device)
    flat = [one.detach().to(device, torch.float32).reshape(-1) for one in tensors]
    numbers: list[float] = torch.cat(flat).cpu().tolist()
    return numbers


def _quarters(sums: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Numbers of 64 bits as four of 16, which float32 holds exactly."""
    return [torch.stack([one >> shift & 0xFFFF for shift in (0, 16, 32, 48)]) for one in sums]


def _whole(quarters: Sequence[float]) -> list[int]:
    return [sum(int(quarters[at + part]) << 16 * part for part in range(4)) for at in range(0, len(quarters), 4)]


def _checksum(tensor: torch.Tensor) -> torch.Tensor:
    """A sum over the bits of all values, each by its place: ranks with equal values have equal sums."""
    as_integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(
        tensor.element_size(), torch.uint8
    )
    data = tensor.detach().contiguous().view(-1).view(as_integers)
    total = torch.zeros((), dtype=torch.int64, device=data.device)
    for part in data.split(_PART):
        places = torch.arange(1, part.numel() + 1, device=data.device, dtype=torch.int64)
        total = total * 31 + (part.to(torch.int64) * (places * 2654435761 % 1000003)).sum()
    return total
