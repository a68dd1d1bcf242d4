"""Which call of one run is which call of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.matching import matches
from npuport.precision.operators.renames import plain_path, renamed, same_modules
from npuport.precision.operators.subjects import COPIES, Subject, subjects


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


_Key = tuple[str, str, str, Subject]
"""Module, phase, operator, and what a call is about beside these."""

_Naming = Callable[[str], str]

_Places = list[tuple[int, int]]
"""Where the same calls are in both runs."""


def align(reference: Step, candidate: Step, given: Mapping[str, str] | None = None) -> Alignment:
    """Match calls in order by module, phase, operator and the parameters that they are about. Where a stretch has the
    same modules and phases but other operators, or none, it is a difference. ``given``: parts of the candidate's paths
    and what the reference calls them. Where one run knows no modules, as a dump of msprobe's level L1, those of the
    other do not count."""
    paths = {path: renamed(plain_path(path), given or {}) for path in {call.module for call in candidate.calls}}
    found = same_modules(reference.calls, candidate.calls, paths)

    def as_in_reference(path: str) -> str:
        own = renamed(plain_path(path), given or {})
        return found.get(own, own)

    keys = _keys((reference, candidate), (plain_path, as_in_reference))
    computing = _of_computing(*keys)
    places = sorted([*computing, *_of_copies((reference, candidate), keys, computing)])
    differences = [
        Difference(tuple(reference.calls[one.start : one.stop]), tuple(candidate.calls[other.start : other.stop]))
        for one, other in _gaps(places, *keys)
        if one or other
    ]
    pairs = [(reference.calls[a], candidate.calls[b]) for a, b in places]
    return Alignment(tuple(pairs), tuple(differences), found)


def _keys(steps: tuple[Step, Step], known_as: tuple[_Naming, _Naming]) -> tuple[list[_Key], list[_Key]]:
    about = subjects(steps, known_as)
    know_modules = all(any(call.module for call in step.calls) for step in steps)
    of_one, of_other = (
        [
            (paths[call.module], call.phase, call.operator.rpartition(".")[0], own.get(place, ()))
            for place, call in enumerate(step.calls)
        ]
        for step, own, paths in (
            (step, own, {path: name(path) if know_modules else "" for path in {call.module for call in step.calls}})
            for step, own, name in zip(steps, about, known_as, strict=True)
        )
    )
    return of_one, of_other


def _of_computing(one: Sequence[_Key], other: Sequence[_Key]) -> _Places:
    """The calls that compute. Calls that copy help to find them, and are no hindrance: one device casts before a call,
    where another casts behind it."""
    found = [(a, b) for a, b in matches(one, other) if one[a][2] not in COPIES]
    for gap, gap_b in list(_gaps(found, one, other)):
        left = [place for place in gap if one[place][2] not in COPIES]
        left_b = [place for place in gap_b if other[place][2] not in COPIES]
        if left and left_b:
            again = matches([one[place] for place in left], [other[place] for place in left_b])
            found += ((left[a], left_b[b]) for a, b in again)
    return sorted(found)


def _of_copies(
    steps: tuple[Step, Step], keys: tuple[list[_Key], list[_Key]], computing: _Places
) -> Iterator[tuple[int, int]]:
    """The calls that copy, between those that compute, by what they copy: devices do not cast in one order."""
    gaps = [
        [[at for at in gap if own[at][2] in COPIES] for gap, own in zip(sides, keys, strict=True)]
        for sides in _gaps(computing, *keys)
    ]
    gaps = [copies for copies in gaps if copies[0] and copies[1]]
    if not gaps:
        return
    same = {
        candidate.storage: reference.storage
        for one, other in ((steps[0].calls[a], steps[1].calls[b]) for a, b in computing)
        for own in (zip(one.inputs, other.inputs, strict=False), zip(one.outputs, other.outputs, strict=False))
        for reference, candidate in own
    }
    known = {storage: storage for storage in same.values()}

    def key_of(side: int, place: int) -> _Key:
        key, call = keys[side][place], steps[side].calls[place]
        refs = (*call.inputs[:1], *call.outputs[:1])
        ends = tuple(same.get(ref.storage) if side else known.get(ref.storage) for ref in refs)
        return key if key[3] or not any(end is not None for end in ends) else (*key[:3], ends)

    for copies in gaps:
        of_what = [[key_of(side, at) for at in own] for side, own in enumerate(copies)]
        both = set(of_what[0]) & set(of_what[1])
        of_both = [
            [key if key in both else keys[side][at] for key, at in zip(own, copies[side], strict=True)]
            for side, own in enumerate(of_what)
        ]
        yield from ((copies[0][a], copies[1][b]) for a, b in matches(*of_both))


def _gaps(places: _Places, one: Sequence[_Key], other: Sequence[_Key]) -> Iterator[tuple[range, range]]:
    """What lies between places, on both sides."""
    start, from_ = 0, 0
    for end, to in [*places, (len(one), len(other))]:
        yield range(start, end), range(from_, to)
        start, from_ = end + 1, to + 1


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
