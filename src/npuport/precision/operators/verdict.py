"""What a comparison comes to: one plain sentence, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from npuport.findings import Sentence, say
from npuport.precision.operators.suspects import Comparison
from npuport.precision.operators.suspicion import Suspect

# Deviations of a call's own error from what other calls show. Of the faults in tests/precision those under noise as
# small as theirs score 7 to 10 or little more; all others more than 20.
_HIGH, _MEDIUM = 20.0, 10.0


@dataclass(frozen=True)
class Verdict:
    """``sentences`` one after another; ``confidence`` is "high", "medium" or "low"."""

    sentences: tuple[Sentence, ...]
    confidence: str
    suspect: Suspect


def verdict_of(comparison: Comparison) -> Verdict | None:
    """The verdict on the first suspect; None where nothing is suspected."""
    if not comparison.suspects:
        return None
    first = comparison.suspects[0]
    return Verdict((_what(first, comparison), _around(first, comparison)), _confidence(first, comparison), first)


def _what(suspect: Suspect, comparison: Comparison) -> Sentence:
    call = suspect.call
    operator = call.operator.removeprefix("aten.").rpartition(".")[0]
    place = f"{call.module}.{operator} ({call.phase})" if call.module else f"{operator} ({call.phase})"
    if suspect.kind == "error" and suspect.times is not None and comparison.inputs_apart is not None:
        return say(
            "{place} has an error of its own, {times} x the noise floor; its inputs agree to {apart}.",
            place=place,
            times=_rounded(suspect.times),
            apart=f"{comparison.inputs_apart:.0e}",
        )
    return Sentence(_KINDS.get(suspect.kind, _KINDS["error"]).template, {"place": place})


_KINDS = {
    "error": say("{place} has an error of its own."),
    "not finite": say("{place} makes values that are not finite from inputs that give finite ones."),
    "operators": say("{place} does not compute what the reference computes there."),
    "argument": say("{place} is called with another argument."),
    "input": say(
        "{place} is given another tensor, which no recorded operator made: look at weights, batch and buffers."
    ),
    "dtype": say("{place} computes in another dtype."),
    "bits": say("{place} is the first to make other bits of the same inputs."),
}


def _around(suspect: Suspect, comparison: Comparison) -> Sentence:
    before = sum(other.call.index < suspect.call.index for other in comparison.suspects)
    if before:
        return say("{number} calls before it are suspected too, with less reason.", number=before)
    return say("Nothing before it is suspected; what uses its result inherits the error.")


def _confidence(suspect: Suspect, comparison: Comparison) -> str:
    is_behind_random = comparison.random is not None and comparison.random.index < suspect.call.index
    if suspect.kind == "error":
        if not suspect.is_replayed:
            return "medium" if suspect.score >= _MEDIUM else "low"
        return "high" if suspect.score >= _HIGH else "medium" if suspect.score >= _MEDIUM else "low"
    if suspect.kind in ("not finite", "operators") and suspect.is_replayed:
        return "high"
    if suspect.kind in ("argument", "input") and not is_behind_random:
        return "high"
    return "low" if is_behind_random else "medium"


def _rounded(number: float) -> str:
    """Two digits, with thousands apart."""
    digits = float(f"{number:.1e}")
    return f"{digits:,.0f}" if digits >= 10 else f"{digits:.1f}"
