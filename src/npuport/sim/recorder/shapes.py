"""Operators whose shapes do not settle: on a real NPU each new shape can cost a compilation or a new plan of memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from npuport.sim.recorder import places

WARM_UP = 2  # steps; the first makes the optimizer's state, the second is the first that looks like the others

Inputs = Sequence[Sequence[Any]]  # of each tensor: name, dtype, shape, and "cpu" on the host


def changes(operators: Sequence[Mapping[str, Any]], where: places.Places, steps: int) -> list[dict[str, Any]]:
    """Each line with operators that met new shapes in two or more steps after the warm-up, and these operators.

    A shape belongs to the line that met it first. ``operators`` and ``steps`` are those of one process's record; what
    came after the last step (an evaluation) does not count.
    """
    by_site: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for operator in operators:
        seen_at: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for one in operator["shapes"]:
            seen_at[one["site"]].append(one)
        for site, seen in seen_at.items():
            change = _change(operator["name"], [one for one in seen if one["first_step"] < steps])
            if change is not None:
                by_site[site].append(change)
    found = [
        {
            "place": where[site],
            "new_after_warm_up": sum(one["new_after_warm_up"] for one in changing),
            "operators": sorted(changing, key=lambda one: (-one["new_after_warm_up"], one["operator"])),
        }
        for site, changing in by_site.items()
    ]
    return sorted(found, key=lambda one: (-one["new_after_warm_up"], places.key(one["place"])))


def _change(operator: str, seen: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    late = [one for one in seen if one["first_step"] >= WARM_UP]
    steps = {one["first_step"] for one in late}
    varying = _varying(seen, late)
    if len(steps) < 2 or not varying:
        return None
    return {
        "operator": operator,
        "shapes": len(seen),
        "new_after_warm_up": len(late),
        "last_new_step": max(steps),
        "varying": varying,
    }


def last_new_step(operators: Sequence[Mapping[str, Any]], steps: int) -> int:
    """The step of ``steps`` in which an operator last met a shape it had not met before; 0 is the first."""
    first_steps = (one["first_step"] for operator in operators for one in operator["shapes"])
    return max((step for step in first_steps if step < steps), default=0)


def _varying(seen: Sequence[Mapping[str, Any]], late: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The dimensions in which each late shape differs from the most similar ones that were met before it."""
    values: dict[tuple[str, int], set[int]] = defaultdict(set)
    ordered = sorted(seen, key=lambda one: one["first_step"])
    for one in late:
        earlier = [other for other in ordered if other["first_step"] < one["first_step"]]
        comparable = [d for d in (_differences(other["inputs"], one["inputs"]) for other in earlier) if d is not None]
        nearest = min(map(len, comparable), default=0)
        for dimension, before, now in (each for found in comparable if len(found) == nearest for each in found):
            values[dimension] |= {before, now}
    return [
        {"input": name, "dimension": dimension, "smallest": min(sizes), "largest": max(sizes), "distinct": len(sizes)}
        for (name, dimension), sizes in sorted(values.items())
    ]


def _differences(before: Inputs, now: Inputs) -> list[tuple[tuple[str, int], int, int]] | None:
    """((input, dimension), size before, size now); None where dtypes or numbers of dimensions differ."""
    if [(one[0], one[1], len(one[2])) for one in before] != [(one[0], one[1], len(one[2])) for one in now]:
        return None
    return [
        ((old[0], dimension), size, new[2][dimension])
        for old, new in zip(before, now, strict=True)
        for dimension, size in enumerate(old[2])
        if size != new[2][dimension]
    ]
