"""Models that Ascend's model libraries carry: sizes, licences, published quality, and what trains or serves them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class LanguageModel:
    """A decoder-only model that MindSpeed-LLM trains; its scripts there are the source of the sizes.

    ``ffn`` is the inner width of one MLP (of one expert where ``experts`` > 1). ``context`` (tokens), ``licence`` and
    ``mmlu`` (percent, 5-shot unless the source says otherwise) are None where no source was read. ``served_as`` is the
    entry in vllm-ascend's list, ``serving`` its word for it ("supported", "experimental", or "" for no entry), and
    ``served_on`` the families of chips named there.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    ffn: int
    vocabulary: int
    tied: bool
    experts: int
    top_k: int
    context: int | None
    licence: str | None
    served_as: str
    serving: Literal["supported", "experimental", ""]
    served_on: tuple[str, ...]
    mmlu: float | None
    basis: Basis


@cache
def all_language_models() -> tuple[LanguageModel, ...]:
    """Every entry, in the order of the table."""
    sizes = ("layers", "hidden", "heads", "kv_heads", "head_width", "ffn", "vocabulary", "experts", "top_k")
    return tuple(
        LanguageModel(
            name=row["name"],
            **{size: int(row[size]) for size in sizes},
            tied=row["tied"] == "yes",
            context=int(row["context"]) if row["context"] else None,
            licence=row["licence"] or None,
            served_as=row["served_as"],
            serving=cast("Literal['supported', 'experimental', '']", row["serving"]),
            served_on=tuple(row["served_on"].split()),
            mmlu=float(row["mmlu"]) if row["mmlu"] else None,
            basis=basis(row),
        )
        for row in rows("language_models")
    )


@dataclass(frozen=True)
class LibraryModel:
    """A model of another architecture, with its folder in one of Ascend's model libraries."""

    name: str
    architecture: str
    task: str
    library: str
    path: str
    basis: Basis


@cache
def all_library_models() -> tuple[LibraryModel, ...]:
    """Every entry, in the order of the table."""
    return tuple(
        LibraryModel(row["name"], row["architecture"], row["task"], row["library"], row["path"], basis(row))
        for row in rows("library_models")
    )
