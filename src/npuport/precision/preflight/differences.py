"""One thing that two runs differ in, or that one run alone shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from npuport.facts import PreflightCheck, preflight_check
from npuport.findings import Sentence

# What must differ between a GPU and an NPU, said alike.
_DEVICE = re.compile(r"\b(?:cuda|npu|gpu)(?::\d+)?\b")
_BACKEND = re.compile(r"\b(?:nccl|hccl)\b")


@dataclass(frozen=True)
class Difference:
    """``rank`` is None for what concerns the whole run."""

    check: PreflightCheck
    text: Sentence
    rank: int | None = None


def differs(name: str, text: Sentence, rank: int | None = None) -> Difference:
    return Difference(preflight_check(name), text, rank)


def ranked(differences: list[Difference]) -> list[Difference]:
    """The likeliest cause first; what several ranks show is told of the first."""
    told: dict[tuple[str, str], Difference] = {}
    for one in differences:
        told.setdefault((one.check.name, str(one.text)), one)
    return sorted(told.values(), key=lambda one: one.check.rank)


def alike(one: Any, other: Any) -> bool:
    """Whether two values mean the same on a GPU and on an NPU."""
    return bool(_neutral(one) == _neutral(other))


def _neutral(value: Any) -> Any:
    if isinstance(value, str):
        return _BACKEND.sub("ccl", _DEVICE.sub("device", value))
    if isinstance(value, list):
        return [_neutral(one) for one in value]
    return value
