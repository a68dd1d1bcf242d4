"""Third-party libraries and what becomes of them on Ascend. What nobody has said anything about is not in the table."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Status = Literal["native", "adapted", "replace", "cuda-only", "neutral"]


@dataclass(frozen=True)
class Library:
    """A library.

    ``status`` is "native" (supports Ascend itself), "adapted" (``replacement`` is the package, build or plug-in that
    does), "replace" (use ``replacement`` instead), "cuda-only" (no counterpart known) or "neutral" (no device code).
    ``imports`` are top-level modules or dotted ones, ``distributions`` names as in requirements files.
    """

    name: str
    imports: tuple[str, ...]
    distributions: tuple[str, ...]
    status: Status
    replacement: str | None
    note: str
    basis: Basis


@lru_cache(maxsize=4096)
def library(import_name: str) -> Library | None:
    """The library that an import brings in, such as "flash_attn.bert_padding"; None if nothing is known of it.

    The longest known prefix decides: "numba.cuda.random" is numba.cuda, "numba.typed" is not in the table.
    """
    parts = import_name.split(".")
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    table = _by_import()
    return next((table[prefix] for prefix in prefixes if prefix in table), None)


def distribution(name: str) -> Library | None:
    """The library of a distribution's name, however it is spelt (PEP 503); None if nothing is known of it."""
    return _by_distribution().get(_normalized(name))


def all_libraries() -> tuple[Library, ...]:
    """Every entry, in the order of the table."""
    return _table()


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _table() -> tuple[Library, ...]:
    return tuple(
        Library(
            name=row["name"],
            imports=tuple(row["imports"].split()),
            distributions=tuple(row["distributions"].split()),
            status=cast("Status", row["status"]),
            replacement=row["replacement"] or None,
            note=row["note"],
            basis=basis(row),
        )
        for row in rows("libraries")
    )


@cache
def _by_import() -> dict[str, Library]:
    return {name: entry for entry in _table() for name in entry.imports}


@cache
def _by_distribution() -> dict[str, Library]:
    return {_normalized(name): entry for entry in _table() for name in entry.distributions}
