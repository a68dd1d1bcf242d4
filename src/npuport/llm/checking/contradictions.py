"""One thing that options contradict each other in."""

from __future__ import annotations

from dataclasses import dataclass

from npuport.facts import ConfigCheck, config_check
from npuport.findings import Sentence


@dataclass(frozen=True)
class Contradiction:
    """What the options say together, and what is known of that."""

    check: ConfigCheck
    text: Sentence


def contradicts(name: str, text: Sentence) -> Contradiction:
    return Contradiction(config_check(name), text)
