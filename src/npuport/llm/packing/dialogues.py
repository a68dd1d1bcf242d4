"""Fine-tuning: several dialogues to a sample, each seeing only itself, and only answers in the loss."""

from __future__ import annotations

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
        pieces = -(-lengths // max_length)
        which = np.repeat(np.arange(len(lengths)), pieces)
        inside = counting(pieces) * max_length
        kept = np.minimum(lengths[which] - inside, max_length)
        starts = dialogues.offsets[which] + inside
    else:
        which = np.flatnonzero(~empty if too_long == "cut" else ~(empty | long))
        kept, starts = np.minimum(lengths[which], max_length), dialogues.offsets[which]
    where = spread(starts, kept)
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
    ordered = pieces.taken(np.argsort(sample_of, kind="stable"))
    sample_of = np.sort(sample_of, kind="stable")
    number = int(sample_of[-1]) + 1 if len(sample_of) else 0
    lengths, per_sample = ordered.lengths, np.bincount(sample_of, minlength=number)
    filled = np.bincount(sample_of, weights=lengths, minlength=number).astype(np.int64)
    first = offsets_of(per_sample)
    # Where each dialogue begins within its own sample.
    inside = ordered.offsets[:-1] - np.repeat(ordered.offsets[first[:-1]], per_sample)
    where = spread(sample_of * max_length + inside, lengths)

    shape = (number, max_length)
    input_ids = np.full(shape, pad, dtype=np.int32)
    labels = np.full(shape, IGNORED, dtype=np.int32)
    numbers = np.zeros(shape, dtype=np.int32)
    # Padding counts from 0 where the dialogues end.
    positions = np.maximum(np.arange(max_length, dtype=np.int32)[None, :] - filled[:, None].astype(np.int32), 0)
    input_ids.reshape(-1)[where] = ordered.tokens
    labels.reshape(-1)[where] = np.where(predictable(ordered), ordered.tokens, np.int32(IGNORED))
    numbers.reshape(-1)[where] = np.repeat(counting(per_sample) + 1, lengths)
    positions.reshape(-1)[where] = counting(lengths)

    padded = filled < max_length
    ends_offsets = offsets_of(per_sample + padded)
    ends = np.full(int(ends_offsets[-1]), max_length, dtype=np.int64)
    records = np.full(len(ends), -1, dtype=np.int64)
    places = spread(ends_offsets[:-1], per_sample)
    ends[places], records[places] = inside + lengths, ordered.records
    return Samples(input_ids, labels, numbers, positions, ends, ends_offsets, records)
