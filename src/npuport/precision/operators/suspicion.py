"""A call that is suspected, whatever the evidence."""

from __future__ import annotations

from dataclasses import dataclass

from npuport.findings import Sentence
from npuport.precision.operators.calls import Call


@dataclass(frozen=True)
class Suspect:
    """A call of the candidate that is suspected. ``score`` orders them: the larger the surer."""

    call: Call
    kind: str  # "operators", "argument", "dtype", "input", "not finite", "error"
    score: float
    text: Sentence
