"""Which call of one run is which call of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npuport.precision.operators.calls import Call, TensorRef
from npuport.precision.operators.matching import matches
from npuport.precision.operators.renames import plain_path, renamed, same_modules


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


def align(reference: Sequence[Call], candidate: Sequence[Call], given: Mapping[str, str] | None = None) -> Alignment:
    """Match calls in order by module, phase and operator. Where a stretch has the same modules and phases but other
    operators, or none, it is a difference. ``given``: parts of the candidate's paths and what the reference calls
    them."""
    paths = {path: renamed(plain_path(path), given or {}) for path in {call.module for call in candidate}}
    found = same_modules(reference, candidate, paths)
    keys = (
        [_key(call, plain_path(call.module)) for call in reference],
        [_key(call, found.get(paths[call.module], paths[call.module])) for call in candidate],
    )
    pairs: list[tuple[Call, Call]] = []
    differences: list[Difference] = []
    last, last_b = 0, 0
    for a, b in [*matches(*keys), (len(reference), len(candidate))]:
        if a > last or b > last_b:
            differences.append(Difference(tuple(reference[last:a]), tuple(candidate[last_b:b])))
        if a < len(reference):
            pairs.append((reference[a], candidate[b]))
        last, last_b = a + 1, b + 1
    return Alignment(tuple(pairs), tuple(differences), found)


def _key(call: Call, path: str) -> tuple[str, str, str]:
    return path, call.phase, call.operator.rpartition(".")[0]


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
