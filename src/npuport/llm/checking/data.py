"""Training data checked before it is used: records that fail or teach nothing, and what to know of the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from npuport.errors import UserError
from npuport.llm.checking.records import ANSWERS, ROLES, Turn, are_ids, is_question, kind_of, turns_of
from npuport.llm.cleaning.settings import Digits, Encoded, Garbled
from npuport.llm.pipelines.records import records_of
from npuport.llm.pipelines.shards import files_of, shards_of
from npuport.texts.characters import characters
from npuport.texts.encoded import encoded_pieces
from npuport.texts.garbled import misread

_PLACES = 3  # of each finding that are named
_SHARD = 2**40  # bytes: a file is read as a whole, so that lines have numbers
# Fields beside the text that make another record of the same text.
_AROUND = ("system", "tools", "images", "image", "videos", "audios", "history", "label")
_SHORTEST = 40  # characters; of less nothing can be said
_IGNORED = -100

FAULTS = (
    *("unreadable", "other-fields", "malformed", "empty", "unknown-role", "no-answer"),
    *("label-length", "label-range", "id-range", "nothing-learned"),
)
"""Records that end the training with an error, or teach nothing."""

NOTES = ("roles-in-a-row", "too-long", "duplicate", "garbled", "encoded", "digits")
"""Records that train, though seldom as intended."""


@dataclass(frozen=True)
class Wish:
    """``tokens`` counts those of a dialogue or text; ``vocabulary`` bounds ids and labels; None: not known."""

    tokens: Callable[[Sequence[Turn]], int] | None = None
    max_length: int | None = None
    vocabulary: int | None = None


@dataclass
class Seen:
    """Records with one finding: how many, and where the first ones stand."""

    number: int = 0
    places: list[str] = field(default_factory=list)


@dataclass
class Found:
    """``lengths`` are in tokens, of records whose tokens are known; ``kinds`` counts records of each kind."""

    records: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    findings: dict[str, Seen] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)
    characters: int = 0
    learned: int = 0  # tokens that the loss counts, of records with labels

    @property
    def tokens(self) -> int | None:
        """Of all records; None where they are not known."""
        return sum(self.lengths) if self.lengths else None

    @property
    def is_faulty(self) -> bool:
        return any(name in FAULTS for name in self.findings)


def check_data(patterns: Sequence[str], wish: Wish, watch: Callable[[int], None] = lambda _: None) -> Found:
    """Check every record of JSONL and Parquet files; ``watch`` is told how many were read.

    Raises:
        UserError: a pattern names no file, a file cannot be read, or there is no record.
    """
    found, known = Found(), set[bytes]()
    for path, number, fields in _records(files_of(patterns)):
        found.records += 1
        for finding in _of_record(fields, found, wish, known):
            seen = found.findings.setdefault(finding, Seen())
            seen.number += 1
            if len(seen.places) < _PLACES:
                seen.places.append(f"{path}:{number}")
        watch(found.records)
    if not found.records:
        raise UserError("there is no record in {paths}.", paths=", ".join(patterns))
    return found


def _records(paths: Sequence[Path]) -> Iterator[tuple[str, int, dict[str, Any] | None]]:
    """Each record with its file and its line, row or place in an array, from 1."""
    for path in paths:
        array = _array(path)
        if array is not None:
            for number, one in enumerate(array, 1):
                yield str(path), number, one if isinstance(one, dict) else None
            continue
        for shard in shards_of([path], _SHARD):
            for record in records_of(shard):
                if not record.blank:
                    yield shard.path, record.number + 1, record.fields


def _array(path: Path) -> list[Any] | None:
    """The records of a file that is one JSON array; None for other files."""
    if path.suffix != ".json":
        return None
    with path.open("rb") as stream:
        if not stream.read(64).lstrip().startswith(b"["):
            return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Any])
    except msgspec.DecodeError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error


def _of_record(fields: dict[str, Any] | None, found: Found, wish: Wish, known: set[bytes]) -> Iterator[str]:
    if fields is None:
        yield "unreadable"
        return
    kind = kind_of(fields)
    usual = next(iter(found.kinds), kind)
    found.kinds[kind] = found.kinds.get(kind, 0) + 1
    if not kind or kind != usual:
        yield "other-fields"
        return
    if kind == "token ids":
        yield from _ids(fields, found, wish)
        yield from _repeated(str(fields["input_ids"]), known)
        return
    turns = turns_of(kind, fields)
    if turns is None:
        yield "malformed"
        return
    found.characters += sum(len(turn.text) for turn in turns if not turn.is_ids)
    yield from _dialogue(turns) if kind != "text" else _text(turns)
    around = [str(fields.get(name, "")) for name in _AROUND]
    yield from _repeated("\0".join([*around, *(f"{turn.role}\1{turn.text}" for turn in turns)]), known)
    if any(turn.is_ids for turn in turns):
        return  # no writing, and what stands around the ids is not known
    yield from _writing("\n".join(turn.text for turn in turns))
    if wish.tokens is not None:
        length = wish.tokens(turns)
        found.lengths.append(length)
        if wish.max_length is not None and length > wish.max_length:
            yield "too-long"


def _text(turns: Sequence[Turn]) -> Iterator[str]:
    if not turns[0].text.strip():
        yield "empty"


def _dialogue(turns: Sequence[Turn]) -> Iterator[str]:
    roles = [turn.role for turn in turns]
    if any(role not in ROLES for role in roles):
        yield "unknown-role"
        return
    if not any(role in ANSWERS for role in roles):
        yield "no-answer"
    elif any(turn.role in ANSWERS and not turn.text.strip() for turn in turns):
        yield "empty"
    if any(is_question(one) and is_question(other) for one, other in pairwise(roles)):
        yield "roles-in-a-row"


def _ids(fields: Mapping[str, Any], found: Found, wish: Wish) -> Iterator[str]:
    ids, labels = fields["input_ids"], fields.get("labels")
    if not are_ids(ids) or not (labels is None or are_ids(labels)):
        yield "malformed"
        return
    if not ids:
        yield "empty"
        return
    found.lengths.append(len(ids))
    if wish.max_length is not None and len(ids) > wish.max_length:
        yield "too-long"
    if min(ids) < 0 or (wish.vocabulary is not None and max(ids) >= wish.vocabulary):
        yield "id-range"
    if labels is None:
        return
    if len(labels) != len(ids):
        yield "label-length"
    counted = [label for label in labels if label != _IGNORED]
    # The first token has nothing before it that could predict it.
    found.learned += sum(label != _IGNORED for label in labels[1:])
    if not any(label != _IGNORED for label in labels[1:]):
        yield "nothing-learned"
    elif min(counted) < 0 or (wish.vocabulary is not None and max(counted) >= wish.vocabulary):
        yield "label-range"


def _repeated(content: str, known: set[bytes]) -> Iterator[str]:
    mark = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    if mark in known:
        yield "duplicate"
    known.add(mark)


def _writing(text: str) -> Iterator[str]:
    """What `npuport data clean` would drop by the same limits."""
    if len(text) < _SHORTEST:
        return
    counts, wrong = characters(text), misread(text)
    limit = Garbled().max_share
    if counts.foreign > limit * counts.length or (wrong is not None and wrong.share > limit):
        yield "garbled"
    if sum(map(len, encoded_pieces(text))) > Encoded().max_share * len(text):
        yield "encoded"
    if counts.digits > Digits().max_share * max(1, counts.digits + counts.letters):
        yield "digits"
