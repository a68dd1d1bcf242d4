"""The published standards on one result, as `npuport.facts.precision_standards` has them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from npuport.facts.precision_standards import limits


@dataclass(frozen=True)
class Kept:
    """Whether a result keeps a standard, and the number that decides: ``measure`` must not exceed ``limit``."""

    holds: bool
    measure: str
    value: float
    limit: float


def absolute(got: torch.Tensor, truth: torch.Tensor, dtype: str) -> Kept | None:
    """Each value within the relative tolerance, small ones within the absolute one; None: no numbers for the dtype."""
    numbers = limits("absolute", dtype)
    if not numbers:
        return None
    error = (got - truth).abs()
    small = truth.abs() < numbers["small"]
    wrong = torch.where(small, error > numbers["small_atol"], error > numbers["rtol"] * truth.abs())
    return _share("absolute", wrong, 0.0)


def ulp(got: torch.Tensor, truth: torch.Tensor, dtype: torch.dtype) -> Kept | None:
    """Few values further off than some units in the last place; in float32 a small mean does as well."""
    name = str(dtype).removeprefix("torch.")
    numbers = limits("ulp", name)
    if not numbers:
        return None
    information = torch.finfo(dtype)
    _, exponents = torch.frexp(truth.abs().clamp(min=float(information.smallest_normal)))
    units = (got - truth).abs() / torch.ldexp(torch.ones_like(truth), exponents - 1) / float(information.eps)
    kept = _share("ulp", units > numbers["far"], numbers["share"])
    mean = float(units.mean()) if units.numel() else 0.0
    if not kept.holds and mean < numbers.get("mean", 0.0):
        return Kept(True, "mean ulp", mean, numbers["mean"])
    return kept


def thousandth(got: torch.Tensor, truth: torch.Tensor) -> Kept:
    """Nearly all values within a thousandth."""
    numbers = limits("thousandth", "")
    wrong = (got - truth).abs() > numbers["far"] * truth.abs()
    return _share("thousandth", wrong, numbers["share"])


def _share(measure: str, wrong: torch.Tensor, limit: float) -> Kept:
    share = float(wrong.double().mean()) if wrong.numel() else 0.0
    return Kept(share <= limit, measure, share, limit)


@dataclass(frozen=True)
class Measures:
    """What the two-benchmark ratio compares: relative errors of two devices on the same call."""

    small_share: float
    rms: float
    max: float
    mean: float


def measures(got: torch.Tensor, truth: torch.Tensor, dtype: str) -> Measures:
    """The errors of one device. Errors are shares of the value, or of the result's size: a tiny gradient counts too."""
    numbers = limits("absolute", dtype) or limits("absolute", "float32")
    finite = torch.isfinite(got) & torch.isfinite(truth)
    got, truth = got[finite], truth[finite]
    if not got.numel():
        return Measures(0.0, 0.0, 0.0, 0.0)
    error, size = (got - truth).abs(), float(truth.abs().max())
    small = truth.abs() < numbers["small"]
    wrong = small & (error > numbers["small_atol"])
    scale = float(truth.div(size).square().mean().sqrt()) * size if size else 1.0
    shares = error / truth.abs().clamp(min=0.1 * scale)
    return Measures(
        small_share=float(wrong.double().mean()),
        rms=float(error.div(scale).square().mean().sqrt()),
        max=float(shares.max()),
        mean=float(shares.mean()),
    )


def worst_ratio(candidate: Measures, reference: Measures, care: str, floor: float) -> Kept:
    """The ratio that comes nearest to its limit, or exceeds it most; errors below ``floor`` are equal."""
    numbers = limits("ratio", care)
    ratios = {
        name: max(getattr(candidate, name), floor) / max(getattr(reference, name), floor)
        for name in ("small_share", "rms", "max", "mean")
    }
    worst = max(ratios, key=lambda name: ratios[name] / numbers[name])
    return Kept(ratios[worst] <= numbers[worst], worst, ratios[worst], numbers[worst])
