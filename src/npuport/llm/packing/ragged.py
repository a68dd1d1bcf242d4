"""Sequences of unlike lengths as one flat array with offsets, so that numpy works on all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]
Mask = NDArray[np.bool_]
Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """Token sequences end to end.

    ``tokens`` and ``learned`` (which tokens the loss counts) have one entry for each token; sequence i is
    ``tokens[offsets[i]:offsets[i + 1]]``; ``records`` [sequences] are the numbers of the input records, from 0.
    """

    tokens: Tokens
    learned: Mask
    offsets: Offsets
    records: Offsets

    def __len__(self) -> int:
        return len(self.records)

    @property
    def lengths(self) -> Offsets:
        """Tokens of each sequence."""
        return np.diff(self.offsets)


def offsets_of(lengths: Sequence[int] | Offsets) -> Offsets:
    """Where each sequence begins and the last ends: [sequences + 1]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def counting(lengths: Offsets) -> Offsets:
    """0, 1, 2, … anew in each sequence: [sum of the lengths]."""
    return np.arange(int(lengths.sum()), dtype=np.int64) - np.repeat(offsets_of(lengths)[:-1], lengths)


def spread(starts: Offsets, lengths: Offsets) -> Offsets:
    """The places start, start + 1, … of each sequence: [sum of the lengths]."""
    return np.repeat(starts, lengths) + counting(lengths)


def ragged(sequences: Iterable[Sequence[int]], learned: Iterable[Sequence[bool]], first_record: int = 0) -> Ragged:
    """From lists, one for each sequence."""
    rows, masks = list(sequences), list(learned)
    offsets = offsets_of([len(row) for row in rows])
    return Ragged(
        _flat(rows, np.int32),
        _flat(masks, np.bool_),
        offsets,
        np.arange(first_record, first_record + len(rows), dtype=np.int64),
    )


def _flat(rows: list[Sequence[Any]], kind: Any) -> NDArray[Any]:
    total = sum(map(len, rows))
    return np.fromiter((value for row in rows for value in row), dtype=kind, count=total)
