"""The words every stage speaks: a Finding says what was seen where and why it matters; its Fix repairs it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Severity(enum.Enum):
    """How much a finding matters, worst first."""

    ERROR = "error"  # will fail on an NPU
    WARNING = "warning"  # may differ or be slow
    ADVICE = "advice"  # can be better
    INFO = "info"  # worth knowing; nothing to do

    @property
    def rank(self) -> int:
        """0 for the worst; larger is milder."""
        return list(Severity).index(self)


class Applicability(enum.Enum):
    """How far a fix may be trusted (ruff's three levels)."""

    SAFE = "safe"  # same behaviour, only the device changes
    UNSAFE = "unsafe"  # probably what you want; read it
    MANUAL = "manual"  # shown, never applied


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace ``text[start:end]`` (offsets in characters of the decoded file) by ``new``."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of both functions of a claim. ``value`` is an expression in the words of ``npuport.proof``."""

    name: str
    value: str  # such as "tensor(*lead, D)" or "eps", from the numbers of a case


@dataclass(frozen=True, slots=True)
class Claim:
    """What a fix rests on: two pieces of code compute the same, and have the same gradients.

    ``before`` and ``after`` are bodies of functions of ``inputs``, with an indentation of none and a ``return``; every
    other name in them is a full one, such as ``torch.nn.functional.silu``. ``cases`` give the numbers that the values
    of the inputs are made of, such as "lead=(2, 3), D=64, eps=1e-5". ``before`` is what the user's code was cut down
    to, ``after`` what the fix puts there. ``deviation`` is the documented difference between the two, relative to the
    largest value, where the replacement is an approximation.
    """

    inputs: tuple[Input, ...]
    before: str
    after: str
    cases: tuple[str, ...]
    deviation: float = 0.0


class Outcome(enum.Enum):
    """What became of a claim."""

    PROVED = "proved"
    WITHHELD = "withheld"  # the two are not equal
    UNTRIED = "could not run"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What running both sides of a claim on the simulated NPU showed.

    ``difference`` is the largest error of the replacement against the original in float64, relative to the largest
    value, by dtype; ``original`` is that of the original itself. ``notes`` say what holds for some inputs only.
    """

    outcome: Outcome
    reason: str = ""
    difference: tuple[tuple[str, float], ...] = ()
    original: tuple[tuple[str, float], ...] = ()
    runs: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that repair one finding; all are applied, or none. With a ``claim``, only once the verdict is "proved"."""

    edits: tuple[Edit, ...]
    applicability: Applicability
    title: str = ""
    claim: Claim | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A range in a file. Lines count from 1, columns from 1 in characters; ``cell`` is a notebook cell from 0."""

    path: str  # relative to the analysed root, with forward slashes
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Basis:
    """The fact a finding rests on: where it comes from, for which version, and how sure it is."""

    source: str  # such as "torch_npu 2.13.0 namespace"
    certainty: str  # "measured", "documented" or "inferred"
    version: str = ""

    def __str__(self) -> str:
        return ", ".join(part for part in (self.source, self.version, self.certainty) if part)


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation about a port, with the evidence, the fact behind it, and a repair if there is one."""

    code: str  # such as "NP204"
    name: str  # the rule's kebab-case name, which states the bad pattern
    severity: Severity
    location: Location
    message: str  # one sentence
    evidence: dict[str, Any] = field(default_factory=dict, hash=False)
    basis: Basis | None = None
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """An English sentence with ``{placeholders}`` and their values; the template is the key of its translations."""

    template: str
    values: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.template.format(**self.values)


def say(template: str, **values: object) -> Sentence:
    """A sentence that a renderer says in the user's language."""
    return Sentence(template, values)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that is wrong with a machine: what was seen, why it matters, and what repairs it.

    ``commands`` are lines of shell that do what ``fix`` says; empty where a person has to decide.
    """

    code: str  # such as "ND101"
    name: str  # the check's kebab-case name, which states the bad state
    severity: Severity
    seen: Sentence
    why: Sentence
    fix: Sentence
    commands: tuple[str, ...]
    basis: Basis
