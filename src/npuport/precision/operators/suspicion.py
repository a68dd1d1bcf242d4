"""A call that is suspected, whatever the evidence."""

from __future__ import annotations

from dataclasses import dataclass

from npuport.findings import Sentence
from npuport.precision.operators.calls import Call


@dataclass(frozen=True)
class Suspect:
    """A call of the candidate that is suspected. ``score`` orders them: the larger the surer. ``times``: its own error
    over what is usual. ``is_replayed``: the evidence is a replay in float64."""

    call: Call
    kind: str  # "operators", "argument", "dtype", "input", "not finite", "error"
    score: float
    text: Sentence
    times: float | None = None
    is_replayed: bool = False


@dataclass(frozen=True)
class Measure:
    """What is known of a call of both runs: its own error in each, as a share of its result, how large that of the
    candidate is over what is usual, and how far the results are apart. None where it could not be told."""

    error: float | None
    of_reference: float | None
    times: float | None
    apart: float | None
