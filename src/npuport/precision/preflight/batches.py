"""Whether two runs were given the same data in the same order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from npuport.findings import Sentence, say
from npuport.precision.preflight.differences import Difference, differs
from npuport.precision.preflight.reading import Facts

_NEAR = 0.01  # statistics of one picture that two libraries decoded agree so far


def compare_batches(reference: Facts, candidate: Facts, rank: int) -> Iterator[Difference]:
    """What the data loaders gave, one after the other; without loaders what the models were given."""
    loaders = list(zip(reference["loaders"], candidate["loaders"], strict=False))
    seen = False
    for number, (one, other) in enumerate(loaders):
        found = list(_compare(one["batches"], other["batches"], rank, _named(number, len(loaders))))
        seen |= bool(one["batches"] and other["batches"])
        yield from found
    if not seen:
        yield from _compare(reference["batches"], candidate["batches"], rank, say("given to the model"))
    if not seen and not (reference["batches"] and candidate["batches"]):
        yield differs("unknown", say("no batch was seen in one of the two"), rank)


def _named(number: int, of: int) -> Sentence:
    if of == 1:
        return say("from the data loader")
    return say("from data loader {number}", number=number + 1)


def _compare(
    reference: Sequence[Facts], candidate: Sequence[Facts], rank: int, where: Sentence
) -> Iterator[Difference]:
    pairs = list(zip(reference, candidate, strict=False))
    first = next((at for at, (one, other) in enumerate(pairs) if not _is_same(one, other)), None)
    if first is None:
        return
    one, other = pairs[first]
    place = {"where": where, "batch": first}
    samples = _samples(reference), _samples(candidate)
    if _shapes(one) != _shapes(other):
        text = say(
            "batch {batch} {where} has other shapes: {reference} and {candidate}",
            **place,
            reference=_shapes(one),
            candidate=_shapes(other),
        )
        yield differs("batches", text, rank)
    elif one.get("samples") and Counter(one["samples"]) == Counter(other.get("samples", ())):
        yield differs("batch-order", say("batch {batch} {where}: the same samples in another order", **place), rank)
    elif (ahead := _shift(reference, candidate, first)) is not None:
        text = say("batch {batch} {where} comes {ahead} batches later in the reference", **place, ahead=ahead)
        yield differs("batch-order", text if ahead > 0 else _earlier(place, ahead), rank)
    elif samples[0] and (common := sum((samples[0] & samples[1]).values())) and common * 2 > sum(samples[0].values()):
        text = say(
            "batch {batch} {where}: {common} of {all} samples of the first {batches} batches are the same, in another "
            "order",
            **place,
            common=common,
            all=sum(samples[0].values()),
            batches=len(pairs),
        )
        yield differs("batch-order", text, rank)
    elif _is_near(one, other):
        text = say(
            "batch {batch} {where}: nearly the same values ({name}), not the same", **place, name=_worst(one, other)
        )
        yield differs("batch-values", text, rank)
    else:
        yield differs(
            "batches", say("batch {batch} {where}: other samples ({name})", **place, name=_worst(one, other)), rank
        )


def _earlier(place: dict[str, Any], ahead: int) -> Sentence:
    return say("batch {batch} {where} comes {ahead} batches earlier in the reference", **place, ahead=-ahead)


def _is_same(one: Facts, other: Facts) -> bool:
    tensors = one.get("tensors", {}), other.get("tensors", {})
    if tensors[0].keys() != tensors[1].keys():
        return False
    return all(_same_values(tensors[0][name], tensors[1][name]) for name in tensors[0])


def _same_values(one: Facts, other: Facts) -> bool:
    """Also as another dtype of the same kind: integers are narrower on some devices."""
    if one.get("hash") == other.get("hash") and one["shape"] == other["shape"]:
        return True
    kinds = {"int" in facts["dtype"] for facts in (one, other)}
    return one["dtype"] != other["dtype"] and kinds == {True} and _numbers(one) == _numbers(other)


def _numbers(tensor: Facts) -> list[Any]:
    return [tensor["shape"], *(tensor.get(name) for name in ("max", "min", "mean", "rms"))]


def _shapes(batch: Facts) -> str:
    return ", ".join(f"{name} {tuple(tensor['shape'])}" for name, tensor in batch.get("tensors", {}).items())


def _samples(batches: Sequence[Facts]) -> Counter[str]:
    return Counter(sample for batch in batches for sample in batch.get("samples", ()))


def _shift(reference: Sequence[Facts], candidate: Sequence[Facts], first: int) -> int | None:
    """By how many batches the reference gives the same later (or, below 0, earlier); None if it does not."""
    for ahead in (number for size in range(1, 6) for number in (size, -size)):
        moved = [
            (reference[at + ahead], batch)
            for at, batch in enumerate(candidate)
            if at >= first and 0 <= at + ahead < len(reference)
        ]
        if len(moved) >= 2 and all(_is_same(one, other) for one, other in moved):
            return ahead
    return None


def _is_near(one: Facts, other: Facts) -> bool:
    tensors = one.get("tensors", {}), other.get("tensors", {})
    return tensors[0].keys() == tensors[1].keys() and all(
        _near(tensors[0][name], tensors[1][name]) for name in tensors[0]
    )


def _near(one: Facts, other: Facts) -> bool:
    if one.get("hash") == other.get("hash"):
        return True
    if "float" not in one["dtype"] or one.get("rms") is None or other.get("rms") is None:
        return False
    scale = max(one["rms"], other["rms"], 1e-30)
    return all(math.isclose(one[name], other[name], abs_tol=_NEAR * scale) for name in ("mean", "rms"))


def _worst(one: Facts, other: Facts) -> str:
    tensors = one.get("tensors", {}), other.get("tensors", {})
    names = [name for name in tensors[0] if name in tensors[1] and not _same_values(tensors[0][name], tensors[1][name])]
    return ", ".join(names[:3]) or "…"
