"""Which sequences share a sample: best fit, longest first."""

from __future__ import annotations

import numpy as np

from npuport.llm.packing.ragged import Offsets


def best_fit(lengths: Offsets, capacity: int) -> Offsets:
    """The sample of each sequence: [sequences], samples numbered in the order of their first sequence.

    Best fit decreasing: each sequence, longest first, goes to the sample that it leaves with the least room (Johnson,
    "Near-optimal bin packing algorithms", 1973: at most 11/9 of the fewest samples, plus a few). Sequences of one
    length keep their order, so that the same input gives the same samples.

    Raises:
        ValueError: a sequence is longer than ``capacity``.
    """
    if len(lengths) and int(lengths.max()) > capacity:
        raise ValueError(f"a sequence of {lengths.max()} tokens does not fit into {capacity}")
    sample_of = np.empty(len(lengths), dtype=np.int64)
    samples = 0
    with_room: list[list[int]] = [[] for _ in range(capacity + 1)]
    # Bit r is set where a sample has room for exactly r tokens: the smallest sufficient room is then two operations.
    rooms = 0
    for index in np.argsort(-lengths, kind="stable").tolist():
        length = int(lengths[index])
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            sample = with_room[room].pop()
            if not with_room[room]:
                rooms &= ~(1 << room)
        else:
            room, sample = capacity, samples
            samples += 1
        sample_of[index] = sample
        left = room - length
        if left:
            with_room[left].append(sample)
            rooms |= 1 << left
    return _by_first_sequence(sample_of)


def _by_first_sequence(sample_of: Offsets) -> Offsets:
    """Longest first would put all short dialogues at the end of the training; the order of the input does not."""
    _, first, numbers = np.unique(sample_of, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    renumbered: Offsets = rank[numbers.reshape(-1)]
    return renumbered
