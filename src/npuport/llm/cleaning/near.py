"""Texts that are nearly the same, by MinHash: datatrove's signatures and buckets, and groups that are verified.

datatrove drops what shares a bucket, whatever its similarity: with its 14 buckets of 8 hashes, one in twenty pairs that
have half of their pieces in common, while one in thirteen that have four fifths in common is missed. Here more buckets
of fewer hashes miss almost none, and of each match all hashes are compared before it counts. The first text of a group
is kept, and named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets, MinhashDedupSignature
from datatrove.utils.hashing import HashConfig
from numpy.typing import NDArray

from npuport.llm.cleaning.duplicates import numbers_of
from npuport.llm.cleaning.tokens import WordsOrPairs, grams, hashed_words

BUCKETS, HASHES = 25, 5
_PART = 1 << 30  # bytes of input for each task: a start costs more than the buckets of a small input
_BUFFERED = 4_096  # signatures that datatrove reads at once

Place: TypeAlias = "tuple[int, int]"
"""A shard, and a text's place among those of it that passed the judges."""


def config_of(gram: int) -> MinhashConfig:
    """datatrove's configuration for pieces of ``gram`` words."""
    hashes = HashConfig(precision=32, hash_fc="sha1")
    return MinhashConfig(n_grams=gram, num_buckets=BUCKETS, hashes_per_bucket=HASHES, hash_config=hashes)


class Signatures(MinhashDedupSignature):
    """datatrove's signatures, of hashes that are computed for all pieces of a text at once."""

    def __init__(self, output: Path, config: MinhashConfig) -> None:
        super().__init__(str(output), config, language=WordsOrPairs())

    def get_shingles(self, text: str) -> NDArray[np.uint64]:
        return np.unique(grams(hashed_words(text), self.config.n_grams)).reshape(-1, 1)

    def get_signature(self, shingles: NDArray[np.uint64]) -> list[list[int]]:
        factors, terms = self.parameters
        # Multiply and shift: the high bits are as good a permutation as a remainder by a prime, at a third of its cost.
        with np.errstate(over="ignore"):
            least = np.min((shingles * (factors | np.uint64(1)) + terms) >> np.uint64(32), axis=0)
        return [bucket.tolist() for bucket in np.split(least.astype(np.uint32), self.config.num_buckets)]


def tasks_of(size: int) -> int:
    """In how many tasks the buckets of so many bytes are searched."""
    return min(BUCKETS, 1 + size // _PART)


class Matches(PipelineStep):
    """datatrove's search for texts that share a bucket; each task takes a share of the buckets."""

    type, name = "DEDUP", "matches"

    def __init__(self, signatures: Path, output: Path, config: MinhashConfig) -> None:
        super().__init__()
        self.signatures, self.output, self.config = signatures, output, config

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        for bucket in range(rank, BUCKETS, world_size):
            one = MinhashDedupBuckets(
                str(self.signatures), str(self.output), config=self.config, lines_to_buffer=_BUFFERED
            )
            one.run(None, bucket, BUCKETS)


class NearGroups(PipelineStep):
    """Verifies the matches, and joins them to groups."""

    type, name = "DEDUP", "near duplicates"

    def __init__(self, signatures: Path, matched: Path, survivors: Path, output: Path, similarity: float) -> None:
        super().__init__()
        self.signatures, self.matched, self.survivors, self.output = signatures, matched, survivors, output
        self.similarity = similarity

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        pairs = _pairs(self.matched)
        similar = _similarities(pairs, self.signatures)
        sure = similar >= self.similarity
        groups = _groups(pairs[sure], similar[sure])
        numbers: dict[int, NDArray[np.uint32]] = {}

        def number(place: Place) -> int:
            shard, at = place
            if shard not in numbers:
                numbers[shard] = numbers_of(self.survivors, shard)
            return int(numbers[shard][at])

        rows = [(one[0], number(one), first[0], number(first)) for one, (first, _) in groups.items()]
        np.save(self.output / "groups.npy", np.array(rows, dtype=np.int64).reshape(-1, 4))
        np.save(self.output / "similarities.npy", np.array([share for _, share in groups.values()], dtype=np.float64))
        self.stat_update("dropped", value=len(rows))


def _pairs(folder: Path) -> NDArray[np.int64]:
    """[n, 4]: two shards with places, each pair once, the earlier text first."""
    found = [np.fromfile(path, dtype="<u4").reshape(-1, 4) for path in sorted(folder.glob("*.dups"))]
    pairs = np.concatenate(found).astype(np.int64)
    first, second = pairs[:, :2], pairs[:, 2:]
    swapped = (first[:, 0] > second[:, 0]) | ((first[:, 0] == second[:, 0]) & (first[:, 1] > second[:, 1]))
    pairs[swapped] = pairs[swapped][:, [2, 3, 0, 1]]
    unique: NDArray[np.int64] = np.unique(pairs, axis=0)
    return unique


def _similarities(pairs: NDArray[np.int64], signatures: Path) -> NDArray[np.float64]:
    """The share of all hashes that two texts have in common: an estimate of Jaccard's, ± 4 % of a hundred at most."""
    wanted: dict[int, set[int]] = defaultdict(set)
    for shard, place in (*pairs[:, :2].tolist(), *pairs[:, 2:].tolist()):
        wanted[shard].add(place)
    hashes: list[NDArray[np.uint32]] = []
    row_of: dict[Place, int] = {}
    for shard, places in sorted(wanted.items()):
        order = np.array(sorted(places), dtype=np.int64)
        hashes.append(_hashes(signatures, shard, order))
        for place in order.tolist():
            row_of[shard, place] = len(row_of)
    if not hashes:
        return np.empty(0, dtype=np.float64)
    every = np.concatenate(hashes)
    left = [row_of[shard, place] for shard, place in pairs[:, :2].tolist()]
    right = [row_of[shard, place] for shard, place in pairs[:, 2:].tolist()]
    found = np.empty(len(pairs), dtype=np.float64)
    for start in range(0, len(pairs), 1 << 16):
        some = slice(start, start + (1 << 16))
        found[some] = np.mean(every[left[some]] == every[right[some]], axis=1)
    return found


def _hashes(signatures: Path, shard: int, places: NDArray[np.int64]) -> NDArray[np.uint32]:
    """[n, BUCKETS * HASHES] of the texts at these places of a shard, which are in ascending order."""
    kind = np.dtype([("hashes", "<u4", HASHES), ("place", "<u4")])
    found = np.empty((len(places), BUCKETS * HASHES), dtype=np.uint32)
    for bucket in range(BUCKETS):
        rows = np.fromfile(signatures / f"bucket_{bucket:03d}" / f"{shard:05d}.minhash.sig", dtype=kind)
        rows = rows[np.isin(rows["place"], places)]
        at = np.searchsorted(places, rows["place"])
        found[at, bucket * HASHES : (bucket + 1) * HASHES] = rows["hashes"]
    return found


def _groups(pairs: NDArray[np.int64], similar: NDArray[np.float64]) -> dict[Place, tuple[Place, float]]:
    """Each text that is not the first of its group, with the first one and its closest match's similarity."""
    above: dict[Place, Place] = {}

    def root(one: Place) -> Place:
        path = []
        while (up := above.get(one, one)) != one:
            path.append(one)
            one = up
        above.update(dict.fromkeys(path, one))
        return one

    closest: dict[Place, float] = {}
    together: Iterable[tuple[list[int], float]] = zip(pairs.tolist(), similar.tolist(), strict=True)
    for (shard, place, other_shard, other_place), share in together:
        one, other = (shard, place), (other_shard, other_place)
        for text in (one, other):
            closest[text] = max(closest.get(text, 0.0), share)
        first, second = sorted((root(one), root(other)))
        above[second] = first
        above.setdefault(first, first)
    return {text: (root(text), closest[text]) for text in sorted(above) if root(text) != text}
