"""Pretraining: documents one after the other, each ended by a token, cut into samples of one length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from npuport.llm.packing.ragged import Ragged, offsets_of
from npuport.llm.packing.samples import IGNORED, Samples


def ended(documents: Ragged, end: int) -> Ragged:
    """The documents, each with the token ``end`` behind it."""
    tokens = np.insert(documents.tokens, documents.offsets[1:], np.int32(end))
    offsets = offsets_of(documents.lengths + 1)
    return Ragged(tokens, np.ones(len(tokens), dtype=np.bool_), offsets, documents.records)


def pack(pieces: Iterable[Ragged], max_length: int, pad: int) -> Iterator[Samples]:
    """Samples of the documents in their order; all are full but the last, which is padded.

    Each token is the label of the one before it exactly once (``shift_labels``), the first of all excepted: nothing
    stands before it.
    """
    waiting, records = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    for piece in pieces:
        waiting = np.concatenate([waiting, piece.tokens])
        records = np.concatenate([records, np.repeat(piece.records, piece.lengths)])
        # The last token's label is the first of the next sample, so one token more must be known.
        whole = max(len(waiting) - 1, 0) // max_length
        if whole:
            cut = whole * max_length
            yield _samples(waiting[:cut], waiting[1 : cut + 1], records[:cut], max_length)
            waiting, records = waiting[cut:], records[cut:]
    if len(waiting):
        yield _last(waiting, records, max_length, pad)


def _samples(tokens: np.ndarray, following: np.ndarray, records: np.ndarray, max_length: int) -> Samples:
    number = len(tokens) // max_length
    shape = (number, max_length)
    input_ids = tokens.reshape(shape)
    ones = np.ones(shape, dtype=np.int32)
    return Samples(
        input_ids=input_ids,
        labels=input_ids,
        sequence_ids=ones,
        position_ids=np.broadcast_to(np.arange(max_length, dtype=np.int32), shape),
        ends=np.full(number, max_length, dtype=np.int64),
        ends_offsets=np.arange(number + 1, dtype=np.int64),
        records=records[::max_length],
        shift_labels=following.reshape(shape),
    )


def _last(tokens: np.ndarray, records: np.ndarray, max_length: int, pad: int) -> Samples:
    used, room = len(tokens), max_length - len(tokens)

    def filled(values: np.ndarray, filler: int) -> np.ndarray:
        row = np.full(max_length, filler, dtype=np.int32)
        row[: len(values)] = values
        return row[None, :]

    positions = np.concatenate([np.arange(used), np.arange(room)]).astype(np.int32)[None, :]
    ends = np.array([used, max_length] if room else [used], dtype=np.int64)
    return Samples(
        input_ids=filled(tokens, pad),
        labels=filled(tokens, IGNORED),
        sequence_ids=filled(np.ones(used, dtype=np.int32), 0),
        position_ids=positions,
        ends=ends,
        ends_offsets=np.array([0, len(ends)], dtype=np.int64),
        records=np.array([records[0], -1] if room else [records[0]], dtype=np.int64),
        shift_labels=filled(tokens[1:], IGNORED),
    )
