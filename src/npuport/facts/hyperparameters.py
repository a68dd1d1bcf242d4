"""Hyper-parameters that published trainings of language models used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class PublishedValue:
    """``quantity`` is "learning_rate" (the peak), "batch_tokens" (of one step), "beta2", "weight_decay" or "clipping".

    ``parameters`` is the size of the model; None where one value was used for all sizes.
    """

    name: str
    quantity: str
    parameters: int | None
    value: float
    basis: Basis


@cache
def published_values(quantity: str) -> tuple[PublishedValue, ...]:
    """Every value of a quantity, the smallest model first."""
    return tuple(
        PublishedValue(
            row["name"],
            row["quantity"],
            int(row["parameters"]) if row["parameters"] else None,
            float(row["value"]),
            basis(row),
        )
        for row in rows("hyperparameters")
        if row["quantity"] == quantity
    )
