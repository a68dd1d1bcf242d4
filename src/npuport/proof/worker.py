"""The child process of a proof: reads claims, runs both sides of each, writes a line with the verdict of each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from npuport.proof.comparison import Compared, Side, compare
from npuport.proof.running import Body, Given, Refusal, given, outputs

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def main(asked: str, told: str) -> None:
    """Write verdicts one by one, so that those that are there count whatever becomes of the rest."""
    claims = json.loads(Path(asked).read_text(encoding="utf-8"))
    with Path(told).open("w", encoding="utf-8") as file:
        for claim in claims:
            print(json.dumps(verdict(claim)), file=file, flush=True)


def verdict(claim: dict[str, Any]) -> dict[str, Any]:
    """The verdict on one claim, as ``proving`` reads it."""
    found = _Findings()
    try:
        before, after = (Body.of(claim["inputs"], claim[side]) for side in ("before", "after"))
        for number, case in enumerate(claim["cases"]):
            for dtype in DTYPES:
                _try(before, after, given(claim["inputs"], case, dtype, number), claim["deviation"], found)
                if found.reason:
                    return found.document("withheld")
        if not found.runs:
            return found.document("could not run", "; ".join(found.notes) or "it has no case")
        _try_wide_parameters(before, after, claim, found)
    except Exception as error:
        return found.document("could not run", f"{type(error).__name__}: {error}")
    return found.document("proved")


class _Findings:
    """What the runs of one claim have shown so far."""

    def __init__(self) -> None:
        self.difference: dict[str, float] = {}
        self.original: dict[str, float] = {}
        self.notes: list[str] = []
        self.runs = 0
        self.reason = ""

    def take(self, compared: Compared, dtype: str) -> None:
        self.runs += 1
        self.difference[dtype] = max(self.difference.get(dtype, 0.0), compared.replacement)
        self.original[dtype] = max(self.original.get(dtype, 0.0), compared.original)
        self.reason = compared.reason

    def note(self, when: str, why: object) -> None:
        """Note what does not hold when; of what does not for the same reason, the first."""
        line = (str(why).strip().splitlines() or [""])[0][:160]
        if not any(note.endswith(f": {line}") for note in self.notes):
            self.notes.append(f"{when}: {line}")

    def document(self, outcome: str, reason: str = "") -> dict[str, Any]:
        return {
            "outcome": outcome,
            "reason": reason or self.reason,
            "difference": self.difference,
            "original": self.original,
            "runs": self.runs,
            "notes": self.notes,
        }


def _try(before: Body, after: Body, data: Given, deviation: float, found: _Findings) -> None:
    """One case in one dtype; what a side refuses to run is a limit to be told, and nothing unequal."""
    try:
        truth = outputs(before, data.exact(), exact=True)
        original = outputs(before, data.on_device())
    except Refusal as refusal:
        found.note(f"not tried with {data.case} in {data.dtype_name}, which the original refuses", refusal)
        return
    try:
        replacement = outputs(after, data.on_device())
    except Refusal as refusal:
        found.note(f"not with {data.case} in {data.dtype_name}", refusal)
        return
    compared = compare(Side(truth), Side(original), Side(replacement), data.eps, deviation)
    found.take(compared, data.dtype_name)
    if compared.reason:
        found.reason = f"{compared.reason} (with {data.case}, {data.dtype_name})"


def _try_wide_parameters(before: Body, after: Body, claim: dict[str, Any], found: _Findings) -> None:
    """The same with a first input of float16 and all others of float32: autocast and mixed precision give that."""
    data = given(claim["inputs"], claim["cases"][0], torch.float16, 0, wide_parameters=True)
    if sum(value.requires_grad for value in data.values.values() if isinstance(value, torch.Tensor)) < 2:
        return
    try:
        original = outputs(before, data.on_device())
        truth = outputs(before, data.exact(), exact=True)
    except Refusal:
        return
    try:
        replacement = outputs(after, data.on_device())
    except Refusal as refusal:
        found.note("not with a float16 input beside float32 ones", refusal)
        return
    compared = compare(Side(truth), Side(original), Side(replacement), data.eps, claim["deviation"])
    if compared.reason:
        found.note("with a float16 input beside float32 ones", compared.reason)


if __name__ == "__main__":
    main(*sys.argv[1:])
