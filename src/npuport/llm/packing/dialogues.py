"""Fine-tuning: several dialogues to a sample, each seeing only itself, and only answers in the loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npuport.llm.packing.fitting import best_fit
from npuport.llm.packing.ragged import Mask, Offsets, Ragged, counting, offsets_of, spread
from npuport.llm.packing.samples import IGNORED, Samples


@dataclass(frozen=True)
class Fitted:
    """Dialogues that fit into a sample, and what was done to those that did not.

    ``too_long`` and ``empty`` are numbers of records; ``cut_tokens`` of them are in no sample.
    """

    pieces: Ragged
    too_long: Offsets
    empty: Offsets
    cut_tokens: int


def fit(dialogues: Ragged, max_length: int, too_long: str) -> Fitted:
    """Dialogues of at most ``max_length`` tokens.

    Args:
        too_long: ``split`` (pieces of ``max_length``, each a dialogue of its own), ``cut`` (the end is left out) or
            ``skip`` (the dialogue is left out).
    """
    lengths = dialogues.lengths
    long, empty = lengths > max_length, lengths == 0
    named = dialogues.records[long], dialogues.records[empty]
    if not (long.any() or empty.any()):
        return Fitted(dialogues, *named, cut_tokens=0)
    if too_long == "split":
        # The tokens stay where they are, with more ends among them.
        pieces = -(-lengths // max_length)
        which = np.repeat(np.arange(len(lengths)), pieces)
        kept = np.minimum(lengths[which] - counting(pieces) * max_length, max_length)
        whole = Ragged(dialogues.tokens, dialogues.learned, offsets_of(kept), dialogues.records[which])
        return Fitted(whole, *named, cut_tokens=0)
    which = np.flatnonzero(~empty if too_long == "cut" else ~(empty | long))
    kept = np.minimum(lengths[which], max_length)
    where = spread(dialogues.offsets[which], kept)
    fitted = Ragged(dialogues.tokens[where], dialogues.learned[where], offsets_of(kept), dialogues.records[which])
    return Fitted(fitted, *named, cut_tokens=int(lengths.sum() - kept.sum()))


def predictable(pieces: Ragged) -> Mask:
    """The tokens that the loss can count: nothing stands before the first of a piece that could predict it."""
    learned: Mask = pieces.learned.copy()
    learned[pieces.offsets[:-1][pieces.lengths > 0]] = False
    return learned


def pack(pieces: Ragged, max_length: int, pad: int) -> Samples:
    """Samples of dialogues that fit (none of them empty), in the order of the input where lengths allow it."""
    sample_of = best_fit(pieces.lengths, max_length)
    order = np.argsort(sample_of, kind="stable")
    lengths, sample_of = pieces.lengths[order], sample_of[order]
    per_sample = np.bincount(sample_of)
    before, first = offsets_of(lengths), offsets_of(per_sample)
    filled = np.diff(before[first])
    # Where each dialogue begins within its own sample.
    inside = before[:-1] - np.repeat(before[first[:-1]], per_sample)

    shape = (len(per_sample), max_length)
    input_ids = np.full(shape, pad, dtype=np.int32)
    labels = np.full(shape, IGNORED, dtype=np.int32)
    position_ids, sequence_ids = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
    flat = [values.reshape(-1) for values in (input_ids, labels, position_ids, sequence_ids)]
    learned = np.where(predictable(pieces), pieces.tokens, np.int32(IGNORED))
    counted = np.arange(max_length, dtype=np.int32)
    numbers = counting(per_sample) + 1
    # Copies of slices: index arrays would move four times as many bytes as the tokens themselves.
    for to, start, length, number in _together(
        sample_of * max_length + inside, pieces.offsets[order], lengths, numbers
    ):
        flat[0][to : to + length] = pieces.tokens[start : start + length]
        flat[1][to : to + length] = learned[start : start + length]
        flat[2][to : to + length] = counted[:length]
        flat[3][to : to + length] = number
    for row, used in zip(position_ids, filled.tolist(), strict=True):
        row[used:] = counted[: max_length - used]

    ends_offsets = offsets_of(per_sample + (filled < max_length))
    ends = np.full(int(ends_offsets[-1]), max_length, dtype=np.int64)
    records = np.full(len(ends), -1, dtype=np.int64)
    of_dialogues = spread(ends_offsets[:-1], per_sample)
    ends[of_dialogues], records[of_dialogues] = inside + lengths, pieces.records[order]
    return Samples(input_ids, labels, sequence_ids, position_ids, ends, ends_offsets, records)


def _together(*columns: Offsets) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)
