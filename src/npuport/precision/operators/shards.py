"""One device against several ranks: the tensors of the ranks joined to the whole before they are compared.

Data parallel ranks have a part of the batch and, after all_reduce, the whole gradient; tensor parallel ranks have
rows or columns of weights and activations, or summands. A loss is the mean over each rank's own part of the batch.
Which it is is told from the shapes and from what fits best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING, Distance, apart
from npuport.precision.operators.calls import SHARD, ModuleCall, Step, TensorRef
from npuport.precision.operators.renames import plain_path
from npuport.precision.operators.sources import Gradients

if TYPE_CHECKING:
    from torch import Tensor

_TIMES = 8.0  # further apart than what came before by this factor is not by chance
_ROUNDINGS = 64.0  # split sums are added up in another order
_BACKWARD = 8.0  # how much further apart gradients may be than results of the forward pass
_FEW = 5  # tensors that tell what is usual
_WEIGHTS = (1e-4, 2e-2)  # that weights may differ by in the first step, and later
_NOTHING = 1e-4  # gradients smaller than the others by this factor are rounding, such as that of the bias of a key
_SAME = "the same on all ranks"
_PACKED = (1, 2, 3)  # matrices in one weight: gate and up, or query, key and value


@dataclass(frozen=True)
class ShardFinding:
    """Something of which the ranks together have other values than the single device. ``ranks``: those whose part
    differs; all of them where that cannot be told."""

    kind: str  # "weight", "module" or "gradient"
    name: str
    ranks: tuple[int, ...]
    apart: float
    text: Sentence


@dataclass(frozen=True)
class WholeComparison:
    """``findings`` in the order in which a step computes; ``layouts``: how many tensors were "the same on all ranks",
    "split", "summands" or "means"; ``floor``: how far apart they usually are."""

    findings: tuple[ShardFinding, ...]
    layouts: Mapping[str, int]
    floor: float


@dataclass(frozen=True)
class _Joined:
    """How the parts of a tensor make the whole one, and how far off that is, in all and by rank."""

    layout: str
    apart: float
    by_rank: tuple[float, ...]
    size: float  # root mean square of the whole
    rounding: float


def compare_with_whole(whole: Step, parts: Mapping[int, Step]) -> WholeComparison:
    """Compare the weights, the results of modules and the gradients of one step on one device and on several ranks."""
    steps = [parts[rank] for rank in sorted(parts)]
    weights = list(_named(whole, steps, "parameter ", first=True))
    modules = list(_modules(whole, steps))
    gradients = list(_named(whole, steps, "gradient of ", first=False))
    usual_size = median(one.size for _, one in gradients) if gradients else 0.0
    gradients = [(name, one) for name, one in gradients if one.size > _NOTHING * usual_size]
    ranks = tuple(sorted(parts))
    judged = list(_beyond_rounding(weights, whole, steps)) if whole.step else weights
    found = [
        *_judged("weight", judged, ranks, [_WEIGHTS[min(whole.step, 1)]] * len(weights)),
        *_judged("module", modules, ranks, _limits(modules, weights if whole.step else ())),
        *_judged("gradient", gradients, ranks, _limits_of_gradients(gradients, modules)),
    ]
    everything = [one for _, one in (*weights, *modules, *gradients)]
    layouts = Counter(one.layout for one in everything)
    return WholeComparison(tuple(found), layouts, median(one.apart for one in everything) if everything else 0.0)


def _judged(
    kind: str, tensors: Sequence[tuple[str, _Joined]], ranks: tuple[int, ...], limits: Sequence[float]
) -> Iterator[ShardFinding]:
    for (name, one), limit in zip(tensors, limits, strict=True):
        if one.apart > limit:
            wrong = tuple(rank for rank, far in zip(ranks, one.by_rank, strict=True) if far > limit)
            text = say(
                "the ranks together ({layout}) are {apart} apart from the single device; {floor} is usual here",
                layout=one.layout, apart=f"{one.apart:.2g}", floor=f"{limit / _TIMES:.0e}")  # fmt: skip
            yield ShardFinding(kind, name, wrong or ranks, one.apart, text)


def _beyond_rounding(
    weights: Sequence[tuple[str, _Joined]], whole: Step, parts: Sequence[Step]
) -> Iterator[tuple[str, _Joined]]:
    """The weights of a later step, whole ones without what gradients that are rounding, or turned signs, explain."""
    gradients = [Gradients(whole, part, _distance_between(whole, part)) for part in parts]
    of_whole, *of_parts = (_refs_of(step, "parameter ", first=True) for step in (whole, *parts))
    for name, one in weights:
        if one.layout == _SAME and one.apart > _WEIGHTS[1]:
            by_rank = []
            for known, refs, far in zip(gradients, of_parts, one.by_rank, strict=True):
                left = known.apart(name, of_whole[name], refs[name], far)
                by_rank.append(left if left > known.by_turned_signs(name, refs[name]) else 0.0)
            yield name, replace(one, apart=max(by_rank), by_rank=tuple(by_rank))
        else:
            yield name, one


def _distance_between(whole: Step, part: Step) -> Distance:
    return lambda one, other: apart(whole.tensor(one).double(), part.tensor(other).double())


def _limits(modules: Sequence[tuple[str, _Joined]], weights: Sequence[tuple[str, _Joined]]) -> list[float]:
    """How far apart the results of modules may be: what came before tells what is usual, and the module's own
    ``weights``, which are judged themselves."""
    limits: list[float] = []
    before: list[float] = []
    for path, one in modules:
        usual = _TIMES * median(before) if len(before) >= _FEW else 0.0
        own = max((weight.apart for name, weight in weights if name.startswith(f"{path}.")), default=0.0)
        limits.append(max(usual, own, _TIMES * _ROUNDINGS * one.rounding))
        before.append(one.apart)
    return limits


def _limits_of_gradients(
    gradients: Sequence[tuple[str, _Joined]], modules: Sequence[tuple[str, _Joined]]
) -> list[float]:
    """How far apart gradients may be: what the forward pass shows, some times over, for if they are wrong, all are."""
    usual = _BACKWARD * _TIMES * median(one.apart for _, one in modules) if modules else 0.0
    return [max(usual, _TIMES * _ROUNDINGS * one.rounding) for _, one in gradients]


def _modules(whole: Step, parts: Sequence[Step]) -> Iterator[tuple[str, _Joined]]:
    """The first floating result of each module that all have, in the order in which they end."""
    of_parts = [_by_place(step) for step in parts]
    for key, call in sorted(_by_place(whole).items(), key=lambda item: (item[1].last, -len(item[0][0]))):
        if all(key in own for own in of_parts):
            refs = [_first_floating(own[key]) for own in of_parts]
            joined = _joined(whole, _first_floating(call), parts, refs, has_losses=True)
            if joined is not None:
                yield key[0] or call.class_name, joined


def _by_place(step: Step) -> dict[tuple[str, int], ModuleCall]:
    """Module calls by path and the number of the call."""
    seen: Counter[str] = Counter()
    found = {}
    for call in step.modules:
        path = plain_path(call.path)
        found[path, seen[path]] = call
        seen[path] += 1
    return found


def _first_floating(call: ModuleCall) -> TensorRef | None:
    return next((ref for ref in call.outputs if ref.dtype in ROUNDING), None)


def _named(whole: Step, parts: Sequence[Step], kind: str, first: bool) -> Iterator[tuple[str, _Joined]]:
    """The first or last values of tensors with a name of one kind that all have."""
    of_whole, of_parts = _refs_of(whole, kind, first), [_refs_of(step, kind, first) for step in parts]
    for name, ref in of_whole.items():
        joined = _joined(whole, ref, parts, [own.get(name) for own in of_parts])
        if joined is not None:
            yield name, joined


def _refs_of(step: Step, kind: str, first: bool) -> dict[str, TensorRef]:
    """The whole tensor of each name: of several views the one that is laid out as usual."""
    found: dict[str, TensorRef] = {}
    for call in step.calls:
        for ref in (*call.inputs, *call.outputs):
            name = step.names.get(ref.storage, "").removeprefix(SHARD)
            if not name.startswith(kind) or not _is_contiguous(ref):
                continue
            path = plain_path(name.removeprefix(kind))
            if not first or path not in found:
                found[path] = ref
    return found


def _is_contiguous(ref: TensorRef) -> bool:
    expected = 1
    for length, stride in zip(reversed(ref.shape), reversed(ref.stride), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _joined(
    whole: Step,
    ref: TensorRef | None,
    parts: Sequence[Step],
    refs: Sequence[TensorRef | None],
    has_losses: bool = False,
) -> _Joined | None:
    """The layout that brings the parts closest to the whole; None where no layout has the right shape. ``has_losses``:
    a single value may be the mean over a rank's own part of the batch."""
    import torch

    if ref is None or ref.dtype not in ROUNDING or 0 in ref.shape:
        return None
    known = [one for one in refs if one is not None]
    if len(known) < len(parts) or len({one.shape for one in known}) > 1:
        return None
    truth = whole.tensor(ref).double()
    tensors = [step.tensor(one).double() for step, one in zip(parts, known, strict=True)]
    size = float(truth.square().mean().sqrt())
    rounding = max(ROUNDING.get(one.dtype, 0.0) for one in (ref, *known))
    found = []
    if known[0].shape == ref.shape:
        by_rank = tuple(apart(truth, one) for one in tensors)
        found.append(_Joined(_SAME, max(by_rank), by_rank, size, rounding))
        total = torch.stack(tensors).sum(0)
        found.append(_Joined("summands", apart(truth, total), (), size, rounding))
        if has_losses and not ref.shape:
            found.append(_Joined("means", apart(truth, total / len(parts)), (), size, rounding))
    for pieces in _splits(truth, tensors):
        by_rank = tuple(apart(own, one) for own, one in zip(pieces, tensors, strict=True))
        found.append(_Joined("split", max(by_rank), by_rank, size, rounding))
    best = min(found, key=lambda one: median(one.by_rank) if one.by_rank else one.apart, default=None)
    return (
        best if best is None or best.by_rank else _Joined(best.layout, best.apart, (0.0,) * len(parts), size, rounding)
    )


def _splits(truth: Tensor, parts: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """What each rank should have of a tensor, for each way to split it along the dimension that is shorter there."""
    import torch

    shapes = tuple(truth.shape), tuple(parts[0].shape)
    if len(shapes[0]) != len(shapes[1]):
        return
    shorter = [at for at, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]
    if len(shorter) != 1 or shapes[1][shorter[0]] * len(parts) != shapes[0][shorter[0]]:
        return
    for packed in _PACKED:
        if shapes[1][shorter[0]] % packed == 0:
            pieces = [one.chunk(len(parts), shorter[0]) for one in truth.chunk(packed, shorter[0])]
            yield [torch.cat([one[rank] for one in pieces], shorter[0]) for rank in range(len(parts))]
