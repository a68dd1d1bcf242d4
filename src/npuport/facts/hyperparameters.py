"""Hyper-parameters that published trainings of language models used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class PublishedValue:
    """``quantity`` is one of "learning_rate" (the peak), "final_share" (the last rate over the peak), "warmup_share"
    (of all steps), "batch_tokens" (of one step), "tokens_per_parameter", "beta2", "weight_decay", "clipping" and
    "loss_scale".

    ``purpose`` is "pretraining", "fine-tuning" (of all weights), "lora", or "" for all. ``parameters`` is the size of
    the model; None where one value was used for all sizes.
    """

    name: str
    quantity: str
    purpose: str
    parameters: int | None
    value: float
    basis: Basis


@cache
def published_values(quantity: str, purpose: str = "pretraining") -> tuple[PublishedValue, ...]:
    """The values of a quantity in trainings of one purpose."""
    return tuple(
        PublishedValue(
            row["name"],
            row["quantity"],
            row["purpose"],
            int(row["parameters"]) if row["parameters"] else None,
            float(row["value"]),
            basis(row),
        )
        for row in rows("hyperparameters")
        if row["quantity"] == quantity and row["purpose"] in (purpose, "")
    )
