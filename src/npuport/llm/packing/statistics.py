"""What packing did, in numbers: printed, and written beside the samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npuport.llm.packing.dialogues import Fitted
from npuport.llm.packing.ragged import Ragged
from npuport.llm.packing.samples import IGNORED, Samples


@dataclass
class Statistics:
    """Counts of all pieces; ``too_long``, ``empty`` and ``no_answer`` name records by their places."""

    max_length: int
    tokens_read: int = 0
    tokens_packed: int = 0
    tokens_cut: int = 0
    tokens_in_loss: int = 0
    answers_without_context: int = 0
    samples: int = 0
    sequences: int = 0
    too_long: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    no_answer: list[str] = field(default_factory=list)
    lengths: list[Any] = field(default_factory=list)

    def saw(self, records: Ragged) -> None:
        """Records as they were read."""
        self.tokens_read += len(records.tokens)
        self.lengths.append(records.lengths)

    def fitted(self, fitted: Fitted, answered: int, places: Any) -> None:
        """Dialogues after those that are too long were divided; ``answered`` of their tokens can be in the loss."""
        self.tokens_cut += fitted.cut_tokens
        self.answers_without_context += int(fitted.pieces.learned.sum()) - answered
        self.too_long += map(places, fitted.too_long.tolist())
        self.empty += map(places, fitted.empty.tolist())

    def packed(self, samples: Samples) -> None:
        """Samples as they are written."""
        labels = samples.labels if samples.shift_labels is None else samples.shift_labels
        self.tokens_in_loss += int(np.count_nonzero(labels != IGNORED))
        self.tokens_packed += int(np.count_nonzero(samples.sequence_ids))
        self.samples += len(samples)
        self.sequences += int(np.count_nonzero(samples.records >= 0))

    def written_whole(self, records: Ragged) -> None:
        """Documents that the training itself cuts into samples."""
        self.tokens_packed += len(records.tokens)
        self.tokens_in_loss += len(records.tokens)
        self.sequences += len(records)

    @property
    def fill_rate(self) -> float:
        """The share of the samples that is no padding."""
        room = self.samples * self.max_length
        return self.tokens_packed / room if room else 0.0

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        lengths = np.concatenate([np.empty(0, dtype=np.int64), *self.lengths])
        return {
            "max_length": self.max_length,
            "records": len(lengths),
            "samples": self.samples,
            "sequences": self.sequences,
            "fill_rate": round(self.fill_rate, 6),
            "tokens": {
                "read": self.tokens_read,
                "packed": self.tokens_packed,
                "cut": self.tokens_cut,
                "in_loss": self.tokens_in_loss,
                "answers_without_context": self.answers_without_context,
            },
            "lengths": _spread(lengths),
            "too_long": self.too_long,
            "empty": self.empty,
            "no_answer": self.no_answer,
        }


def _spread(lengths: Any) -> dict[str, float]:
    if not len(lengths):
        return {}
    shares = {"min": 0, "median": 50, "p90": 90, "p99": 99, "max": 100}
    found = np.percentile(lengths, list(shares.values()))
    return {"mean": round(float(lengths.mean()), 2)} | dict(zip(shares, map(float, found), strict=True))


def without_answer(pieces: Ragged) -> Iterable[int]:
    """Records of which no token is in the loss."""
    learned = np.logical_or.reduceat(np.append(pieces.learned, False), pieces.offsets[:-1])
    silent = {int(record) for record in pieces.records[~learned]}
    return sorted(silent - {int(record) for record in pieces.records[learned]})
