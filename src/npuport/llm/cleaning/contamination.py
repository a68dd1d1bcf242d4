"""Texts that hold a part of a test set, found by runs of words that both have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from npuport.errors import UserError
from npuport.llm.cleaning import settings
from npuport.llm.cleaning.judges import Judge
from npuport.llm.cleaning.tokens import grams, hashed_words, is_unspaced, words
from npuport.llm.cleaning.verdicts import Objection
from npuport.llm.pipelines.records import records_of
from npuport.llm.pipelines.shards import shards_of

_UNSPACED_FACTOR = 2  # a word has about two characters in Chinese
_WHOLE_FILE = 1 << 62


@dataclass(frozen=True)
class Index:
    """Sorted hashes of runs of words, for each length of runs, and the place of the item that each is of."""

    grams: dict[int, tuple[np.ndarray, np.ndarray]]
    places: list[str]
    too_short: int  # items in which no run is long enough


def indexed(step: settings.Contamination) -> Index:
    """The test sets, to look texts up in.

    Raises:
        UserError: a test set cannot be read, or has none of the fields.
    """
    found: dict[int, dict[int, int]] = {}
    places: list[str] = []
    too_short = 0
    for place, text in _items(step):
        own = words(text)
        unspaced = sum(map(is_unspaced, own)) * 2 > len(own)
        size = step.words * (_UNSPACED_FACTOR if unspaced else 1)
        hashes = grams(hashed_words(text), size).tolist()
        if not hashes:
            too_short += 1
        for gram in hashes:
            found.setdefault(size, {}).setdefault(gram, len(places))
        places.append(place)
    sorted_ = {}
    for size, items in found.items():
        keys = np.fromiter(items, dtype=np.uint64, count=len(items))
        order = np.argsort(keys)
        sorted_[size] = keys[order], np.fromiter(items.values(), dtype=np.int64, count=len(items))[order]
    return Index(sorted_, places, too_short)


def _items(step: settings.Contamination) -> Iterator[tuple[str, str]]:
    for name in step.tests:
        path = Path(name)
        if path.suffix == ".txt":
            yield from _lines(path)
            continue
        for shard in shards_of([path], _WHOLE_FILE):
            for record in records_of(shard):
                if record.blank:
                    continue
                if record.fields is None:
                    raise UserError("{path}, line {line} is no JSON object.", path=path, line=record.number + 1)
                for text in _texts(record.fields, step.fields, path):
                    yield f"{path}:{record.number + 1}", text


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error
    yield from ((f"{path}:{number}", line) for number, line in enumerate(lines, 1) if line.strip())


def _texts(fields: dict[str, Any], wanted: Sequence[str], path: Path) -> Iterator[str]:
    if wanted and not any(name in fields for name in wanted):
        raise UserError(
            "{path} has no field {wanted}: it has {fields}.",
            path=path,
            wanted=", ".join(wanted),
            fields=", ".join(fields),
        )
    for name, value in fields.items():
        if not wanted or name in wanted:
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str):
                    yield one


def contaminated(index: Index) -> Judge:
    """A run of words is one of a test item."""

    def judge(text: str) -> Objection | None:
        for size, (known, items) in index.grams.items():
            own_grams = grams(hashed_words(text), size)
            at = np.searchsorted(known, own_grams)
            hits = np.flatnonzero(known[np.minimum(at, len(known) - 1)] == own_grams)
            if len(hits):
                own, place = words(text), index.places[items[at[hits[0]]]]
                return Objection("contamination", len(hits), 0, f"{place}: {' '.join(own[hits[0] : hits[0] + size])}")
        return None

    return judge


@lru_cache(maxsize=1)
def loaded(path: Path, changed: int) -> Index:  # noqa: ARG001 - tells one file from the next of its name
    """An index that `save` wrote."""
    with np.load(path) as stored:
        sizes = stored["sizes"].tolist()
        grams = {size: (stored[f"keys{size}"], stored[f"items{size}"]) for size in sizes}
        return Index(grams, stored["places"].tolist(), int(stored["too_short"]))


def save(index: Index, path: Path) -> None:
    """Write an index for the tasks to load."""
    arrays: dict[str, Any] = {"sizes": np.array(list(index.grams), dtype=np.int64)}
    for size, (keys, items) in index.grams.items():
        arrays |= {f"keys{size}": keys, f"items{size}": items}
    np.savez(path, places=np.array(index.places, dtype=np.str_), too_short=index.too_short, **arrays)
