"""Whether collectives gave what the ranks' own inputs make, in float64: no reference is needed, only all ranks of a
step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING, apart
from npuport.precision.operators.calls import Call, Step, TensorRef, references
from npuport.precision.operators.communication import is_collective

if TYPE_CHECKING:
    from torch import Tensor

Parts = list[list["Tensor"]]
"""Tensors of each rank of a group, in the order of its ranks."""

_ROUNDINGS = 2  # of the dtype, for each doubling of the ranks, that a reduction may be off
_SEVERAL = 1.0e-2  # a guess at what went wrong must explain all but this share of the error


@dataclass(frozen=True)
class WrongCollective:
    """A collective whose result is not what its inputs make. ``calls``: the call of each rank of the group."""

    calls: Mapping[int, Call]
    ranks: tuple[int, ...]  # those with a wrong result
    apart: float  # how far the worst is from the truth, as a share of its size
    text: Sentence

    @property
    def first(self) -> Call:
        return self.calls[self.ranks[0]]


@dataclass(frozen=True)
class CollectiveCheck:
    """``checked`` collectives of ``seen`` could be computed again; the others lack ranks or are not known."""

    wrong: tuple[WrongCollective, ...]
    seen: int
    checked: int


def check_collectives(steps: Mapping[int, Step]) -> CollectiveCheck:
    """Compute each collective of one step again from the recorded inputs of all ranks of its group."""
    wrong: list[WrongCollective] = []
    seen = checked = 0
    for ranks, calls in _meetings(steps):
        seen += 1
        if len({(call.operator, _argument(call, "reduction")) for call in calls}) > 1:
            text = say("the ranks call different collectives: {names}", names=_names(ranks, calls))
            wrong.append(WrongCollective(dict(zip(ranks, calls, strict=True)), ranks, 1.0, text))
            break  # what follows in this step does not meet
        found = _Collective(ranks, calls, [steps[rank] for rank in ranks])
        expected = found.expected()
        if expected is None:
            continue
        checked += 1
        if (one := found.judged(expected)) is not None:
            wrong.append(one)
    wrong.sort(key=lambda one: one.first.index)
    return CollectiveCheck(tuple(wrong), seen, checked)


def _meetings(steps: Mapping[int, Step]) -> Iterator[tuple[tuple[int, ...], list[Call]]]:
    """The n-th collective of each group on each of its ranks, where all of them were recorded."""
    of_group: dict[tuple[str, tuple[int, ...]], dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
    for rank, step in steps.items():
        for call in step.calls:
            group = _argument(call, "group")
            if is_collective(call.operator) and group is not None:
                of_group[group[1], tuple(group[2])][rank].append(call)
    for (_, ranks), calls in of_group.items():
        if all(rank in calls for rank in ranks):
            for together in zip(*(calls[rank] for rank in ranks), strict=False):
                yield ranks, list(together)


class _Collective:
    """One collective with its call, inputs and results on each rank."""

    def __init__(self, ranks: tuple[int, ...], calls: Sequence[Call], steps: Sequence[Step]) -> None:
        self.ranks, self.calls, self.steps = ranks, calls, steps
        self.name = calls[0].operator.split(".")[1].removesuffix("_").removeprefix("_")
        self.is_functional = calls[0].operator.startswith("_c10d_functional")

    def expected(self) -> Parts | None:
        """What each rank should have; None where the collective is not known or an input was not recorded."""
        compute = _KINDS.get(self.name)
        return compute(self) if compute is not None and all(self.given()) else None

    def given(self) -> Parts:
        return [
            [step.tensor(ref).double() for ref in self._inputs(call)]
            for call, step in zip(self.calls, self.steps, strict=True)
        ]

    def made(self) -> Parts:
        return [[step.tensor(ref) for ref in call.outputs] for call, step in zip(self.calls, self.steps, strict=True)]

    def argument(self, position: int) -> Any:
        return self.calls[0].arguments[position]

    @property
    def reduction(self) -> str:
        found = _argument(self.calls[0], "reduction")
        return str(found[1] if found is not None else self.argument(1))

    def _inputs(self, call: Call) -> list[TensorRef]:
        """What a call was given; c10d has the tensors to be written first."""
        is_in_place = self.is_functional or self.name in _IN_PLACE
        return list(references(call.arguments[0 if is_in_place else 1]))

    def judged(self, expected: Parts) -> WrongCollective | None:
        made = self.made()
        far = [
            max((self._apart(a, b) for a, b in zip(own, truth, strict=False)), default=0.0)
            for own, truth in zip(made, expected, strict=True)
        ]
        worst = max(far)
        if worst <= self._tolerance(made):
            return None
        ranks = tuple(rank for rank, one in zip(self.ranks, far, strict=True) if one > self._tolerance(made))
        text = self._explained(made, [self.ranks.index(rank) for rank in ranks], worst)
        return WrongCollective(dict(zip(self.ranks, self.calls, strict=True)), ranks, worst, text)

    @staticmethod
    def _apart(own: Tensor, truth: Tensor) -> float:
        return apart(truth, own) if own.shape == truth.shape else apart(truth.flatten(), own.flatten())

    def _tolerance(self, made: Parts) -> float:
        dtype = str(made[0][0].dtype).removeprefix("torch.") if made[0] else "float32"
        if self.name not in _REDUCING or dtype not in ROUNDING:
            return 0.0
        return _ROUNDINGS * ROUNDING[dtype] * max(1, len(self.ranks).bit_length())

    def _explained(self, made: Parts, wrong: Sequence[int], worst: float) -> Sentence:
        """What would make such results at the places in ``wrong``."""
        import torch

        off = f"{worst:.2g}"
        if self.name not in _REDUCING:
            return say("what arrived differs from what was sent by {apart}", apart=off)
        given, enough = self.given(), max(worst * _SEVERAL, 2 * self._tolerance(made))
        scatters = "scatter" in self.name

        def is_like(truth: Callable[[int], list[Tensor]]) -> bool:
            pairs = [pair for at in wrong for pair in zip(made[at], truth(at), strict=False)]
            return all(a.numel() == b.numel() and apart(b.flatten(), a.flatten()) <= enough for a, b in pairs)

        def is_reduced(parts: Parts, reduction: str) -> bool:
            found = _reduced(parts, reduction)
            return is_like(lambda at: _chunks(found, len(self.ranks), at) if scatters else found)

        if not scatters and is_like(lambda at: given[at]):
            return say("the result is the rank's own input: nothing was reduced, or it was read too early")
        for other in ("sum", "avg", "max", "min", "product"):
            if other != self.reduction and is_reduced(given, other):
                return say("the result is the {other} of the inputs, not the {reduction}", other=other,
                           reduction=self.reduction)  # fmt: skip
        for missing, rank in enumerate(self.ranks):
            nothing = [torch.zeros_like(one) for one in given[missing]]
            without = [*given[:missing], nothing, *given[missing + 1 :]]
            if self.reduction in ("sum", "avg") and is_reduced(without, self.reduction):
                return say("the contribution of rank {rank} is missing", rank=rank)
        if made[wrong[0]][0].dtype in (torch.float32, torch.float64) and worst <= 4 * ROUNDING["bfloat16"]:
            return say("the result is off by {apart}: it looks as if it was reduced in 16 bits", apart=off)
        return say("the result is off by {apart} from the {reduction} of the inputs", apart=off,
                   reduction=self.reduction)  # fmt: skip


def _reduced(parts: Parts, reduction: str) -> list[Tensor]:
    """The tensors of all ranks reduced, one by one."""
    import torch

    functions: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "max": torch.maximum,
        "min": torch.minimum,
        "product": torch.mul,
    }
    combine = functions.get(reduction, torch.add)
    found = [reduce(combine, together) for together in zip(*parts, strict=True)]
    return [one / len(parts) for one in found] if reduction == "avg" else found


def _chunks(tensors: Sequence[Tensor], number: int, position: int) -> list[Tensor]:
    return [one.flatten().chunk(number)[position] for one in tensors]


def _all_reduce(one: _Collective) -> Parts:
    return [_reduced(one.given(), one.reduction)] * len(one.ranks)


def _reduce(one: _Collective) -> Parts:
    root, made = int(one.argument(3)), one.made()
    return [_reduced(one.given(), one.reduction) if at == root else made[at] for at in range(len(one.ranks))]


def _broadcast(one: _Collective) -> Parts:
    root = int(one.argument(1) if one.is_functional else one.argument(2))
    return [one.given()[root]] * len(one.ranks)


def _all_gather(one: _Collective) -> Parts:
    return [[part[0] for part in one.given()]] * len(one.ranks)


def _all_gather_flat(one: _Collective) -> Parts:
    import torch

    given = one.given()
    return [[torch.cat([part[at].flatten() for part in given]) for at in range(len(given[0]))]] * len(one.ranks)


def _reduce_scatter(one: _Collective) -> Parts:
    whole = _reduced(one.given(), one.reduction)
    return [[whole[at]] for at in range(len(one.ranks))]


def _reduce_scatter_flat(one: _Collective) -> Parts:
    whole = _reduced(one.given(), one.reduction)
    return [_chunks(whole, len(one.ranks), at) for at in range(len(one.ranks))]


def _all_to_all(one: _Collective) -> Parts:
    given = one.given()
    return [[part[at] for part in given] for at in range(len(one.ranks))]


def _all_to_all_flat(one: _Collective) -> Parts:
    import torch

    given, sent = one.given(), []
    for part, call in zip(given, one.calls, strict=True):
        sizes = list(call.arguments[2 if one.is_functional else 4]) or [part[0].shape[0] // len(given)] * len(given)
        sent.append(part[0].split(sizes))
    return [[torch.cat([part[at] for part in sent])] for at in range(len(given))]


_KINDS: dict[str, Callable[[_Collective], Parts]] = {
    "allreduce": _all_reduce,
    "allreduce_coalesced": _all_reduce,
    "all_reduce": _all_reduce,
    "all_reduce_coalesced": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "allgather": _all_gather,
    "allgather_base": _all_gather_flat,
    "allgather_into_tensor_coalesced": _all_gather_flat,
    "all_gather_into_tensor": _all_gather_flat,
    "all_gather_into_tensor_coalesced": _all_gather_flat,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_base": _reduce_scatter_flat,
    "reduce_scatter_tensor": _reduce_scatter_flat,
    "reduce_scatter_tensor_coalesced": _reduce_scatter_flat,
    "alltoall": _all_to_all,
    "alltoall_base": _all_to_all_flat,
    "all_to_all_single": _all_to_all_flat,
}
_IN_PLACE = ("allreduce", "allreduce_coalesced", "reduce", "broadcast")
_REDUCING = frozenset(name for name in _KINDS if "reduce" in name)


def _argument(call: Call, tag: str) -> Any:
    return next((one for one in call.arguments if isinstance(one, tuple) and one and one[0] == tag), None)


def _names(ranks: Sequence[int], calls: Sequence[Call]) -> str:
    return ", ".join(f"{call.operator.split('.')[1]} (rank {rank})" for rank, call in zip(ranks, calls, strict=True))
