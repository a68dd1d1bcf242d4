"""Which call of one run is which call of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.matching import matches
from npuport.precision.operators.renames import plain_path, renamed, same_modules
from npuport.precision.operators.versions import path_of


@dataclass(frozen=True)
class Difference:
    """Calls that one run has and the other has not, at one place; either may be empty."""

    reference: tuple[Call, ...]
    candidate: tuple[Call, ...]


@dataclass(frozen=True)
class Alignment:
    """``renames`` has the reference's path for each path of the candidate that was matched by what the module does."""

    pairs: tuple[tuple[Call, Call], ...]
    differences: tuple[Difference, ...]
    renames: Mapping[str, str]


def align(reference: Step, candidate: Step, given: Mapping[str, str] | None = None) -> Alignment:
    """Match calls in order by module, phase and operator. Where a stretch has the same modules and phases but other
    operators, or none, it is a difference. ``given``: parts of the candidate's paths and what the reference calls
    them."""
    paths = {path: renamed(plain_path(path), given or {}) for path in {call.module for call in candidate.calls}}
    found = same_modules(reference.calls, candidate.calls, paths)
    keys = (
        [_key(call, plain_path(call.module)) for call in reference.calls],
        [_key(call, found.get(paths[call.module], paths[call.module])) for call in candidate.calls],
    )
    pairs: list[tuple[Call, Call]] = []
    differences: list[Difference] = []
    last, last_b = 0, 0
    ends = len(reference.calls), len(candidate.calls)
    for a, b in [*matches(*_with_gradients(keys, (reference, candidate))), ends]:
        if a > last or b > last_b:
            differences.append(Difference(tuple(reference.calls[last:a]), tuple(candidate.calls[last_b:b])))
        if a < ends[0]:
            pairs.append((reference.calls[a], candidate.calls[b]))
        last, last_b = a + 1, b + 1
    return Alignment(tuple(pairs), tuple(differences), found)


_Key = tuple[str, str, str]


def _key(call: Call, path: str) -> _Key:
    return path, call.phase, call.operator.rpartition(".")[0]


def _with_gradients(keys: tuple[list[_Key], list[_Key]], steps: tuple[Step, Step]) -> list[list[tuple[object, ...]]]:
    """Keys with the gradient to which a call adds, which no order tells: a parameter that is used several times gets
    its gradient part by part, and devices make the parts of weight and bias in another order. What only one run has
    tells nothing."""
    sums = [_added_to(step) for step in steps]
    known = [{(key, of[at]) for at, key in enumerate(own) if at in of} for own, of in zip(keys, sums, strict=True)]
    both = known[0] & known[1]
    return [
        [(key, of[at]) if at in of and (key, of[at]) in both else (key,) for at, key in enumerate(own)]
        for own, of in zip(keys, sums, strict=True)
    ]


def _added_to(step: Step) -> dict[int, tuple[str, int]]:
    """For the place of each call that adds up parts of a parameter's gradient the last part of the parameter's name,
    and how many such sums follow."""
    places = {ref.storage: place for place, call in enumerate(step.calls) for ref in call.outputs}
    found: dict[int, tuple[str, int]] = {}
    for gradient, name in step.names.items():
        path = path_of(name, "gradient")
        todo = [(gradient, 0)] if path is not None else []
        while todo:
            storage, behind = todo.pop()
            place = places.get(storage)
            if place is not None and place not in found and _adds_gradients(step.calls[place]):
                found[place] = (path or "").rpartition(".")[2], behind
                todo += [(ref.storage, behind + 1) for ref in step.calls[place].inputs]
    return found


def _adds_gradients(call: Call) -> bool:
    return call.phase == "backward" and call.operator.startswith(("aten.add.", "aten.add_."))


def scalars(call: Call) -> Iterator[tuple[str, object]]:
    """The arguments of a call, named by position or keyword; of a tensor only that it is one."""
    yield from _scalars("", call.arguments)
    for name, value in call.keywords.items():
        yield from _scalars(name, value)


def _scalars(name: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, TensorRef):
        yield name, "a tensor"
        return
    if isinstance(value, tuple) and value and value[0] in ("device", "layout", "object"):
        return  # where and how, not what
    if isinstance(value, list | tuple) and not (value and value[0] == "dtype"):
        for position, one in enumerate(value):
            yield from _scalars(f"{name}.{position}" if name else str(position), one)
    else:
        yield name, value
