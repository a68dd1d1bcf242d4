"""Which texts are drawn, and in which order: pure arithmetic on their sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from npuport.llm.pipelines.folder import Refused


@dataclass(frozen=True)
class Part:
    """A source with the size of each of its texts, in input order."""

    name: str
    weight: float
    max_epochs: float
    sizes: NDArray[np.int64]

    @property
    def whole(self) -> int:
        """The size of all its texts together."""
        return int(self.sizes.sum())


@dataclass(frozen=True)
class Drawn:
    """[n] for each place of the mixture: which part, and which text of it."""

    part: NDArray[np.int64]
    text: NDArray[np.int64]


def size_of(parts: Sequence[Part], wanted: int) -> float:
    """The size of the mixture: what is wanted, or as much as the weights allow.

    Raises:
        Refused: a source has less than its part of it.
    """
    total = sum(part.weight for part in parts)
    possible = {part.name: part.whole * part.max_epochs * total / part.weight for part in parts}
    scarce = min(possible, key=lambda name: possible[name])
    if not wanted:
        return possible[scarce]
    if possible[scarce] < wanted:
        raise Refused(
            "{source} has too little for its weight: the mixture can have {possible}, not {wanted}. "
            "Raise its max-epochs, or lower its weight or the size.",
            source=scarce,
            possible=int(possible[scarce]),
            wanted=wanted,
        )
    return float(wanted)


def drawn(parts: Sequence[Part], wanted: int, seed: int) -> Drawn:
    """The mixture: in its whole and in every stretch of it the sources have their shares.

    Each source is shuffled anew for each epoch. Its texts stand where the middle of each is due by the source's weight.

    Raises:
        Refused: a source has less than its part.
    """
    size = size_of(parts, wanted)
    total = sum(part.weight for part in parts)
    due, numbers, texts = [], [], []
    for number, part in enumerate(parts):
        order = _order(part, size * part.weight / total, seed)
        sizes = part.sizes[order]
        ends = np.cumsum(sizes)
        due.append((ends - sizes / 2) / part.weight)
        numbers.append(np.full(len(order), number, dtype=np.int64))
        texts.append(order)
    every_due, part_of, text_of = np.concatenate(due), np.concatenate(numbers), np.concatenate(texts)
    places = np.lexsort((part_of, every_due))
    return Drawn(part_of[places], text_of[places])


def _order(part: Part, share: float, seed: int) -> NDArray[np.int64]:
    """The texts of a source in the order in which they are drawn, until their sizes come nearest to its share."""
    if not share or not part.whole:
        return np.empty(0, dtype=np.int64)
    epochs = []
    for epoch in range(int(np.ceil(share / part.whole - 1e-9))):
        # By the source's name, so that a further source leaves this one's order as it is.
        own = int.from_bytes(hashlib.blake2b(part.name.encode(), digest_size=8).digest(), "little")
        epochs.append(np.random.default_rng([seed, own, epoch]).permutation(len(part.sizes)))
    order: NDArray[np.int64] = np.concatenate(epochs)
    sizes = part.sizes[order]
    middles = np.cumsum(sizes) - sizes / 2
    return order[: int(np.searchsorted(middles, share, side="right"))]


def shares(parts: Sequence[Part], found: Drawn) -> Mapping[str, Mapping[str, float]]:
    """What was drawn of each source: documents, size, share of the mixture, epochs."""
    sizes = np.concatenate([part.sizes for part in parts])
    starts = np.cumsum([0, *(len(part.sizes) for part in parts)])[:-1]
    own = sizes[starts[found.part] + found.text]
    whole = max(1, int(own.sum()))
    result = {}
    for number, part in enumerate(parts):
        mine = own[found.part == number]
        result[part.name] = {
            "documents": len(mine),
            "size": int(mine.sum()),
            "share": round(float(mine.sum()) / whole, 6),
            "weight": part.weight,
            "epochs": round(float(mine.sum()) / max(1, part.whole), 4),
        }
    return result
