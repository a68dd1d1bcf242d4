"""Each candidate beside the need: what it would take, what is known of it, and why it is refused if it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from npuport.facts.language_models import LanguageModel
from npuport.llm.candidates.arithmetic import Chats, Load, divides, load
from npuport.llm.planning.model import Model

Refusal = Literal["division", "memory", "rate", "context", "quality", "licence", "serving"]


@dataclass(frozen=True)
class Need:
    """``rate`` in tokens/s of each chat; ``quality`` in percent of MMLU; empty ``licences`` allow every one.

    ``served`` asks for models that vllm-ascend serves on the family of the chips.
    """

    chats: Chats
    rate: float | None = None
    quality: float | None = None
    licences: tuple[str, ...] = ()
    served: bool = False


@dataclass(frozen=True)
class Machine:
    """``memory`` in bytes of one device that may be filled; ``bandwidth`` in bytes/s of one, None where unknown."""

    family: str
    devices: int
    memory: float
    bandwidth: float | None


@dataclass(frozen=True)
class Candidate:
    """``fact`` is None for a model of the user's own, of which only the sizes are known."""

    name: str
    model: Model
    fact: LanguageModel | None = None


@dataclass(frozen=True)
class Assessment:
    """``rate`` is the upper bound in tokens/s of each chat. ``refusals`` is empty where the need is met.

    ``unknown`` names what the need asks and no source says of the model; that does not refuse it.
    """

    candidate: Candidate
    load: Load
    rate: float | None
    refusals: tuple[Refusal, ...]
    unknown: tuple[Refusal, ...]


def known_candidates(models: Iterable[LanguageModel]) -> list[Candidate]:
    """The models of the table as candidates."""
    return [Candidate(one.name, sizes(one), one) for one in models]


def sizes(fact: LanguageModel) -> Model:
    """The entry's sizes; each model of the table has a gated MLP. Biases and norms of queries are left out: < 0.1 %."""
    return Model(
        fact.layers,
        fact.hidden,
        fact.heads,
        fact.kv_heads,
        fact.head_width,
        fact.ffn,
        fact.vocabulary,
        tied=fact.tied,
        experts=fact.experts,
        top_k=fact.top_k,
    )


def assess(candidate: Candidate, need: Need, machine: Machine, dtype: str) -> Assessment:
    """One candidate on the machine."""
    model, fact = candidate.model, candidate.fact
    taken = load(model, need.chats, machine.devices, dtype)
    rate = machine.bandwidth / taken.read if machine.bandwidth is not None else None
    refused: list[Refusal] = []
    unknown: list[Refusal] = []
    if not divides(model, machine.devices):
        refused.append("division")
    if taken.held > machine.memory:
        refused.append("memory")
    if need.rate is not None:
        if rate is None:
            unknown.append("rate")
        elif rate < need.rate:
            refused.append("rate")
    context = fact.context if fact else None
    if context is None:
        unknown.append("context")
    elif context < need.chats.context:
        refused.append("context")
    if need.quality is not None:
        if fact is None or fact.mmlu is None:
            unknown.append("quality")
        elif fact.mmlu < need.quality:
            refused.append("quality")
    if need.licences:
        if fact is None or fact.licence is None:
            unknown.append("licence")
        elif fact.licence.lower() not in need.licences:
            refused.append("licence")
    if need.served and (fact is None or machine.family not in fact.served_on):
        refused.append("serving")
    return Assessment(candidate, taken, rate, tuple(refused), tuple(unknown))


def ranked(assessments: Sequence[Assessment]) -> list[Assessment]:
    """Those that meet the need: known quality first and the best of it first, then the faster."""

    def order(one: Assessment) -> tuple[float, float]:
        quality = one.candidate.fact.mmlu if one.candidate.fact else None
        return -(quality if quality is not None else -1.0), one.load.read

    return sorted((one for one in assessments if not one.refusals), key=order)
