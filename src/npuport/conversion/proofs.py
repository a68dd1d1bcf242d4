"""Fixes that rest on a claim: what their verdicts make of them. Pure; who runs the claims is handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from npuport.findings import Applicability, Claim, Finding, Outcome, Verdict

Prover = Callable[[Sequence[Claim]], Sequence[Verdict]]
"""Gives the verdict on each claim, in order."""


def claims_of(findings: Iterable[Finding]) -> list[Claim]:
    """The claims that fixes rest on, each once."""
    claims = (finding.fix.claim for finding in findings if finding.fix is not None)
    return list(dict.fromkeys(claim for claim in claims if claim is not None))


def judged(finding: Finding, verdicts: Mapping[Claim, Verdict] | None) -> Finding:
    """The finding with what is known of its claim. A fix that is not proved is for reading only.

    ``verdicts`` None means that nobody asked for a proof: then the fix is taken as it is.
    """
    fix = finding.fix
    if fix is None or fix.claim is None:
        return finding
    if verdicts is None:
        return replace(finding, message=f"{finding.message}; applied without a proof")
    verdict = verdicts.get(fix.claim)
    if verdict is not None and verdict.outcome is Outcome.PROVED:
        proved = replace(fix, verdict=verdict)
        return replace(finding, fix=proved, message=f"{finding.message}; {in_words(verdict)}")
    held = replace(fix, applicability=Applicability.MANUAL, verdict=verdict)
    words = f"; {in_words(verdict)}" if verdict is not None else ""
    return replace(finding, fix=held, message=f"{finding.message}{words}")


def in_words(verdict: Verdict) -> str:
    """The verdict as the end of a sentence."""
    if verdict.outcome is Outcome.UNTRIED:
        return f"withheld, for the proof could not run: {verdict.reason}"
    if verdict.outcome is Outcome.WITHHELD:
        return f"withheld, for it is not equal: {verdict.reason}"
    before = dict(verdict.original)
    errors = ", ".join(f"{dtype} {error:.1e} (before {before[dtype]:.1e})" for dtype, error in verdict.difference)
    notes = "".join(f"; {note}" for note in verdict.notes)
    return f"proved equal in {verdict.runs} runs on the simulated NPU, values and gradients, errors {errors}{notes}"
