"""Which parameters a call is about: what its module and its operator do not tell.

A module may call one operator with several parameters, and devices do it in another order: a recurrent layer multiplies
by its weights step by step or all steps at once, and the parts of gradients arrive as they are made.
"""

from __future__ import annotations

from collections.abc import Callable

from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.versions import path_of

# Operators that give what they are given, in another place, order or dtype.
COPIES = frozenset((
    "aten._to_copy", "aten.clone", "aten._unsafe_view", "npu.npu_format_cast", "npu.npu_dtype_cast",
    "npu._npu_dtype_cast",
))  # fmt: skip
_SUMS = ("aten.add.", "aten.add_.")

Subject = tuple[object, ...]


def subjects(
    steps: tuple[Step, Step], known_as: tuple[Callable[[str], str], Callable[[str], str]]
) -> tuple[dict[int, Subject], dict[int, Subject]]:
    """For both runs, by the place of a call, the parameters that it uses, or that whose gradient it adds up with how
    many such sums follow. Parameters that only one run knows tell nothing. ``known_as`` gives the paths by which the
    runs' modules are known."""
    paths = [_paths(step, name) for step, name in zip(steps, known_as, strict=True)]
    both = set(paths[0].values()) & set(paths[1].values())
    of_one, of_other = (
        {**_used(step, known), **_added_up(step, known)}
        for step, known in (
            (step, {storage: path for storage, path in own.items() if path in both})
            for step, own in zip(steps, paths, strict=True)
        )
    )
    return of_one, of_other


def _paths(step: Step, known_as: Callable[[str], str]) -> dict[int, str]:
    found = {}
    for storage, name in step.names.items():
        path = path_of(name)
        if path is not None:
            module, dot, last = path.rpartition(".")
            found[storage] = f"{known_as(module)}{dot}{last}"
    return found


def _used(step: Step, paths: dict[int, str]) -> dict[int, Subject]:
    found: dict[int, Subject] = {}
    of = {storage: frozenset((path,)) for storage, path in paths.items()}
    for place, call in enumerate(step.calls if paths else ()):
        inputs = {path for ref in call.inputs for path in of.get(ref.storage, ())}
        if inputs:
            found[place] = tuple(sorted(inputs))
            if _name(call) in COPIES:
                of.update({ref.storage: frozenset(inputs) for ref in call.outputs})
    return found


def _added_up(step: Step, paths: dict[int, str]) -> dict[int, Subject]:
    found: dict[int, Subject] = {}
    gradients = [storage for storage in paths if path_of(step.names[storage], "gradient") is not None]
    if not gradients:
        return found
    makers = {
        ref.storage: place for place, call in enumerate(step.calls) if call.phase == "backward" for ref in call.outputs
    }
    for gradient in gradients:
        todo = [(gradient, 0)]
        while todo:
            storage, behind = todo.pop()
            place = makers.get(storage)
            if place is None or place in found:
                continue
            call = step.calls[place]
            is_sum = call.operator.startswith(_SUMS)
            if is_sum:
                found[place] = paths[gradient], behind
            if is_sum or _name(call) in COPIES:
                todo += [(ref.storage, behind + is_sum) for ref in call.inputs]
    return found


def _name(call: Call) -> str:
    """The operator without its overload."""
    return call.operator.rpartition(".")[0]
