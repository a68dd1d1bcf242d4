"""The values that named tensors, such as parameters and states of optimizers, take in a step of two runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from npuport.precision.operators.calls import SHARD, Step, TensorRef
from npuport.precision.operators.renames import plain_path

_NOT_MADE = -1  # before all calls


class Versions:
    """The tensors of one name, one after another; those of both runs at one time are the same tensor."""

    def __init__(self, reference: Step, candidate: Step) -> None:
        self._steps = reference, candidate
        self._of_names = _of_names(reference), _of_names(candidate)

    def last(self) -> list[tuple[TensorRef, TensorRef]]:
        """The last values of all that the calls of both runs make."""
        pairs = self._at((float("inf"), float("inf")))
        return [(one[1], other[1]) for one, other in pairs if min(one[0], other[0]) > _NOT_MADE]

    def first(self) -> list[tuple[TensorRef, TensorRef]]:
        """The values that calls of both runs read before a call makes others."""
        return [(one[1], other[1]) for one, other in self._at((0, 0)) if max(one[0], other[0]) == _NOT_MADE]

    def before(self, starts: tuple[float, float]) -> tuple[dict[int, tuple[TensorRef, TensorRef]], ...]:
        """The values before a call of each run, by its index: the pairs by the storage of the reference, and by that of
        the candidate."""
        pairs = [(one[1], other[1]) for one, other in self._at(starts)]
        return {pair[0].storage: pair for pair in pairs}, {pair[1].storage: pair for pair in pairs}

    def gradients(self) -> dict[str, tuple[TensorRef, TensorRef]]:
        """The last gradient of each parameter that has one in both runs, by its path, in views of one shape:
        a sum over a batch may keep its dimensions, which a copy of it (DistributedDataParallel's) has not."""
        found = {}
        for name in filter(self._of_names[1].__contains__, self._of_names[0]):
            if (path := path_of(name, "gradient")) is not None:
                one, other = (names[name][max(names[name])] for names in self._of_names)
                if one.shape == other.shape:
                    found[path] = (one, other)
                elif math.prod(one.shape) == math.prod(other.shape):
                    views = ((a, b) for a in self._views(0, one) for b in self._views(1, other) if a.shape == b.shape)
                    found.update((path, pair) for pair in islice(views, 1))
        return found

    def _views(self, side: int, whole: TensorRef) -> list[TensorRef]:
        """All of a tensor, as the calls of one run see it."""
        refs = (ref for call in self._steps[side].calls for ref in (*call.inputs, *call.outputs))
        size = math.prod(whole.shape)
        return [ref for ref in dict.fromkeys(refs) if ref.storage == whole.storage and math.prod(ref.shape) == size]

    def _at(self, starts: tuple[float, float]) -> list[tuple[tuple[int, TensorRef], tuple[int, TensorRef]]]:
        found = []
        for name in filter(self._of_names[1].__contains__, self._of_names[0]):
            one, other = (_latest(names[name], start) for names, start in zip(self._of_names, starts, strict=True))
            if one is not None and other is not None and one[1].shape == other[1].shape:
                found.append((one, other))
        return found


def path_of(name: str, kind: str = "") -> str | None:
    """The path of the parameter that a name is about ("exp_avg of PATH", "parameter PATH"), without what wrappers add;
    None for another kind."""
    start, _, path = name.removeprefix(SHARD).rpartition(" ")
    return plain_path(path) if start.startswith(kind) and path else None


def _latest(versions: Mapping[int, TensorRef], start: float) -> tuple[int, TensorRef] | None:
    index = max((index for index in versions if index < start), default=None)
    return None if index is None else (index, versions[index])


def _of_names(step: Step) -> dict[str, dict[int, TensorRef]]:
    """The tensors of each name by the index of the call that made them."""
    found: dict[str, dict[int, TensorRef]] = defaultdict(dict)
    made: set[int] = set()
    for call in step.calls:
        for refs, index in ((call.inputs, _NOT_MADE), (call.outputs, call.index)):
            for ref in refs:
                name = step.names.get(ref.storage)
                if name is not None and (index != _NOT_MADE or ref.storage not in made):
                    kind, of, path = name.rpartition(" ")
                    found[f"{kind}{of}{plain_path(path)}"].setdefault(index, ref)
        made.update(ref.storage for ref in call.outputs)
    return found
