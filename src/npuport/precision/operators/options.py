"""What of a run is recorded, and when; imports no torch, for it is read before torch is there."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from npuport.errors import UserError
from npuport.precision.operators.scope import PHASES, Scope

KINDS = ("tensors", "statistics", "checksums")
"""Tensors with all values; their statistics; or statistics and checksums of the bits."""

CONDITIONS = ("nan", "spike")


@dataclass(frozen=True)
class Numbers:
    """Steps or ranks, such as "0", "3,10-12" or "5-" for all from 5 on."""

    text: str
    name: str = "steps"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+(-\d*)?(,\d+(-\d*)?)*", self.text) or any(
            first > last for first, last in self._ranges
        ):
            raise UserError(
                "{name} takes numbers such as 0, 3,10-12 or 5- (all from 5 on), not {text}",
                name=self.name,
                text=self.text,
            )

    def __contains__(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self._ranges)

    @property
    def last(self) -> float:
        return max(last for _, last in self._ranges)

    @property
    def _ranges(self) -> list[tuple[int, float]]:
        parts = [part.partition("-") for part in self.text.split(",")]
        return [
            (int(first), float(last) if last else (float("inf") if dash else int(first))) for first, dash, last in parts
        ]


@dataclass(frozen=True)
class Options:
    """What is recorded: ``steps`` and ``ranks`` by number ("" for all), ``what`` of KINDS, ``when`` of CONDITIONS or ""
    for every step."""

    folder: Path
    what: str = "tensors"
    steps: str = "0"
    ranks: str = ""
    when: str = ""
    scope: Scope = field(default_factory=Scope)

    def __post_init__(self) -> None:
        _one_of("what", self.what, KINDS)
        if self.when:
            _one_of("when", self.when, CONDITIONS)
        for phase in self.scope.phases:
            _one_of("phases", phase, PHASES)
        for name, text in (("steps", self.steps), ("ranks", self.ranks)):
            if text:
                Numbers(text, name)

    def has_step(self, step: int) -> bool:
        return not self.steps or step in Numbers(self.steps)

    def has_rank(self, rank: int) -> bool:
        return not self.ranks or rank in Numbers(self.ranks)

    def is_over(self, step: int) -> bool:
        """Whether no step from this one on is recorded."""
        return bool(self.steps) and step > Numbers(self.steps).last

    def dumped(self) -> str:
        return json.dumps({**asdict(self), "folder": str(self.folder)})

    @classmethod
    def loaded(cls, text: str) -> Options:
        document = json.loads(text)
        scope = Scope(**{name: tuple(patterns) for name, patterns in document.pop("scope").items()})
        return cls(Path(document.pop("folder")), scope=scope, **document)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UserError("{name} is one of {allowed}, not {value}", name=name, allowed=", ".join(allowed), value=value)
