"""Packed samples: what a model is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npuport.llm.packing.ragged import Offsets

IGNORED = -100  # the label that torch.nn.functional.cross_entropy leaves out by default


@dataclass(frozen=True)
class Samples:
    """``n`` samples of ``length`` tokens.

    Args:
        input_ids: [n, length].
        labels: [n, length], at the places of their own tokens as Hugging Face models take them (they shift by one
            themselves); -100 where the loss counts nothing.
        sequence_ids: [n, length], the number of the sequence in its sample, from 1; 0 is padding. Tokens of two numbers
            do not see one another.
        position_ids: [n, length], anew from 0 in each sequence, padding included.
        ends: cumulative lengths of the sequences of all samples, one after the other: ``actual_seq_qlen`` and
            ``actual_seq_kvlen`` of attention in the layout TND. Padding is a sequence of its own, so that the last
            is ``length``, as the layout wants.
        ends_offsets: [n + 1], where each sample begins in ``ends``.
        records: the input record of each sequence; -1 for padding. Parallel to ``ends``.
        shift_labels: [n, length], the token that follows each, across the ends of samples; only for pretraining.
    """

    input_ids: NDArray[np.int32]
    labels: NDArray[np.int32]
    sequence_ids: NDArray[np.int32]
    position_ids: NDArray[np.int32]
    ends: NDArray[np.int64]
    ends_offsets: Offsets
    records: NDArray[np.int64]
    shift_labels: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.input_ids)
