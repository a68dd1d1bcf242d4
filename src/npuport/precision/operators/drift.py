"""Parameters that are the same on all ranks, and become different: where, and from what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import apart
from npuport.precision.operators.calls import Call, Step, TensorRef

_ALIKE = 0.1  # parameters further apart are no copies of one another: parts of a larger one, or others altogether


@dataclass(frozen=True)
class Drift:
    """A parameter of which the ranks have copies that differ. ``call``: the one, on the first of the ranks, that made
    them differ, if they were the same at the beginning of the step."""

    name: str
    ranks: tuple[int, ...]  # those that differ from most others
    apart: float
    call: Call | None
    text: Sentence


def find_drift(steps: Mapping[int, Step]) -> list[Drift]:
    """The parameters whose copies differ between the ranks of one step, those that differ from its beginning first."""
    if len(steps) < 2:
        return []
    values = {rank: _values(step) for rank, step in steps.items()}
    found = []
    for name in values[min(steps)]:
        if not name.startswith("parameter ") or not all(name in own for own in values.values()):
            continue
        first = _Copies(steps, {rank: own[name][0][1] for rank, own in values.items()})
        last = _Copies(steps, {rank: own[name][-1][1] for rank, own in values.items()})
        if not first.are_comparable or first.apart > _ALIKE:
            continue
        if first.apart > 0:
            text = say("the ranks begin the step with different values ({apart} apart)", apart=f"{first.apart:.1g}")
            found.append(Drift(name, first.odd, first.apart, None, text))
        elif last.are_comparable and last.apart > 0:
            gradients = {rank: own.get(name.replace("parameter ", "gradient of ", 1)) for rank, own in values.items()}
            text = _cause(steps, {rank: of[-1][1] for rank, of in gradients.items() if of})
            found.append(Drift(name, last.odd, last.apart, values[min(steps)][name][-1][0], text))
    return sorted(found, key=lambda one: (one.call is not None, one.call.index if one.call is not None else 0))


def _cause(steps: Mapping[int, Step], gradients: Mapping[int, TensorRef]) -> Sentence:
    """Why the optimizer made different values of one parameter."""
    copies = _Copies(steps, gradients)
    if len(gradients) < len(steps) or not copies.are_comparable:
        return say("the optimizer made different values of it")
    if copies.apart > 0:
        return say("its gradients differ between the ranks: they were not reduced, or not to the same")
    return say("its gradients are the same on all ranks, but not what the optimizer made of them")


class _Copies:
    """One tensor on several ranks."""

    def __init__(self, steps: Mapping[int, Step], refs: Mapping[int, TensorRef]) -> None:
        self.are_comparable = len({(ref.shape, ref.dtype) for ref in refs.values()}) == 1
        self.apart = 0.0
        self.odd: tuple[int, ...] = ()
        if not self.are_comparable:
            return
        tensors = {rank: steps[rank].tensor(ref) for rank, ref in refs.items()}
        groups: list[list[int]] = []
        for rank, tensor in tensors.items():
            like = next((group for group in groups if not apart(tensors[group[0]], tensor)), None)
            if like is None:
                groups.append([rank])
            else:
                like.append(rank)
        most = max(groups, key=len)
        self.odd = tuple(rank for rank in tensors if rank not in most)
        self.apart = max((apart(tensors[most[0]], tensors[rank]) for rank in self.odd), default=0.0)


def _values(step: Step) -> dict[str, list[tuple[Call, TensorRef]]]:
    """The values that each named tensor has in a step, in order, with the calls that first use or make them."""
    found: dict[str, list[tuple[Call, TensorRef]]] = {}
    seen: set[int] = set()
    for call in step.calls:
        for ref in (*call.inputs, *call.outputs):
            name = step.names.get(ref.storage, "")
            if name and ref.storage not in seen:
                seen.add(ref.storage)
                found.setdefault(name, []).append((call, ref))
    return found
