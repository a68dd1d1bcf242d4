"""A curve: the values of one quantity over training steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """Values by step, in the order of the steps; a value may be NaN or infinite."""

    metric: str  # "loss", "grad_norm", "lr", "loss_scale" or "eval_loss"
    values: Mapping[int, float]

    @property
    def steps(self) -> list[int]:
        return list(self.values)

    def first_bad(self) -> int | None:
        """The first step whose value is NaN or infinite."""
        return next((step for step, value in self.values.items() if not math.isfinite(value)), None)


@dataclass(frozen=True)
class Run:
    """What was read from the log of one run."""

    name: str
    curves: Mapping[str, Curve]
    form: str  # of the log, such as "text" or "trainer_state.json"


@dataclass(frozen=True)
class Pair:
    """Two curves of one metric on common steps. ``interpolated``: the steps of the two never met."""

    metric: str
    steps: tuple[int, ...]
    reference: tuple[float, ...]
    candidate: tuple[float, ...]
    interpolated: bool = False

    def finite(self) -> Pair:
        """Without the steps where either value is NaN or infinite."""
        kept = [
            index
            for index, (a, b) in enumerate(zip(self.reference, self.candidate, strict=True))
            if math.isfinite(a) and math.isfinite(b)
        ]
        return Pair(
            self.metric,
            tuple(self.steps[index] for index in kept),
            tuple(self.reference[index] for index in kept),
            tuple(self.candidate[index] for index in kept),
            self.interpolated,
        )


def pair_of(reference: Curve, candidate: Curve) -> Pair | None:
    """The two curves on the steps that both have; where they have none in common, the candidate interpolated at the
    reference's steps. None where they do not overlap."""
    common = [step for step in reference.values if step in candidate.values]
    if common:
        return Pair(
            reference.metric,
            tuple(common),
            tuple(reference.values[step] for step in common),
            tuple(candidate.values[step] for step in common),
        )
    known = candidate.steps
    inside = [step for step in reference.values if known and known[0] <= step <= known[-1]]
    if not inside:
        return None
    return Pair(
        reference.metric,
        tuple(inside),
        tuple(reference.values[step] for step in inside),
        tuple(_between(candidate, step) for step in inside),
        interpolated=True,
    )


def _between(curve: Curve, step: int) -> float:
    before = max(known for known in curve.values if known <= step)
    after = min(known for known in curve.values if known >= step)
    if before == after:
        return curve.values[before]
    share = (step - before) / (after - before)
    return curve.values[before] * (1 - share) + curve.values[after] * share
