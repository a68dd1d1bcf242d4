"""Where the steps of a computation stand in a function: what goes with them, and what names mean there then."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.values import Value

Body = list[ast.stmt]


@dataclass(frozen=True)
class Slot:
    """A last step, the statement that holds it, and what names stand for there once the steps before are gone."""

    node: ast.expr
    statement: ast.stmt
    names: Mapping[str, Value]


@dataclass(frozen=True)
class Place:
    """The last steps, in order, and the statements before them that go, for only the steps need them.

    All are part of ``body``.
    """

    body: Body
    slots: tuple[Slot, ...]
    gone: tuple[ast.stmt, ...]


def place_of(results: Sequence[Value], used: Collection[int], flow: Flow) -> Place:
    """Where the steps stand that compute ``results``; ``used`` are the ids of all their values.

    Raises:
        Unfit: there is no one place to put a call.
    """
    known = {id(node): (body, statement) for body, statement, node in _expressions(flow.function.body)}
    nodes = [value.node for value in results if value.node is not None and id(value.node) in known]
    if len(nodes) != len(results):
        raise Unfit("its last step is no expression of its own")
    bodies = [known[id(node)][0] for node in nodes]
    body = bodies[0]
    if any(other is not body for other in bodies):
        raise Unfit("its steps stand in several branches")
    statements = sorted((known[id(node)][1] for node in nodes), key=body.index)
    gone = _unneeded(body[: body.index(statements[-1])], nodes, used, flow)
    slots = [
        Slot(node, statement, _names(body[: body.index(statement)], statement, gone, flow))
        for node in nodes
        for statement in [known[id(node)][1]]
    ]
    return Place(body, tuple(sorted(slots, key=lambda slot: body.index(slot.statement))), tuple(gone))


def _expressions(body: Body) -> Iterator[tuple[Body, ast.stmt, ast.expr]]:
    """Every expression of simple statements, with the statement and the body that this is part of."""
    for statement in body:
        inner = [part for part in (getattr(statement, name, None) for name in ("body", "orelse", "finalbody")) if part]
        inner += [handler.body for handler in getattr(statement, "handlers", ())]
        inner += [case.body for case in getattr(statement, "cases", ())]
        if inner:
            for part in inner:
                yield from _expressions(part)
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.expr):
                yield body, statement, node


def _unneeded(before: Body, results: Sequence[ast.expr], used: Collection[int], flow: Flow) -> list[ast.stmt]:
    """The statements among ``before`` that serve the steps only."""
    gone = [one for one in before if _is_step(one, used, flow) and not _holds(one, results)]
    in_loop = _is_in_loop(results[0], flow)
    while True:
        inside = {id(node) for one in (*gone, *results) for node in ast.walk(one)}
        others = [node for node in ast.walk(flow.function) if isinstance(node, ast.Name) and id(node) not in inside]
        kept = [one for one in gone if not _is_needed(one, others, flow, in_loop)]
        if len(kept) == len(gone):
            return gone
        gone = kept


def _holds(statement: ast.stmt, results: Sequence[ast.expr]) -> bool:
    return any(node is result for node in ast.walk(statement) for result in results)


def _is_step(statement: ast.stmt, used: Collection[int], flow: Flow) -> bool:
    """Whether a statement only gives names to values that the steps compute."""
    if isinstance(statement, ast.If):
        test = flow.value(statement.test)
        return (
            test is not None
            and id(test) in used
            and all(_is_step(one, used, flow) for one in (*statement.body, *statement.orelse))
        )
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    listed = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
    values = [flow.value(one) for one in listed]
    return all(isinstance(name, ast.Name) for name in names) and all(
        value is not None and id(value) in used for value in values
    )


def _is_needed(statement: ast.stmt, others: list[ast.Name], flow: Flow, in_loop: bool) -> bool:
    """Whether one of the names in ``others`` may read what a statement gives to its names."""
    given = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    after = flow.names_after[id(statement)]
    made = {id(after[name]) for name in given if name in after}
    for node in others:
        if node.id not in given or isinstance(node.ctx, ast.Store):
            continue
        value = flow.value(node)
        if in_loop or value is None or isinstance(node.ctx, ast.Del) or _comes_from(value, made):
            return True
    return False


def _comes_from(value: Value, made: Collection[int]) -> bool:
    if id(value) in made:
        return True
    return value.op == "choice" and any(_comes_from(one, made) for one in value.inputs)


def _is_in_loop(node: ast.expr, flow: Flow) -> bool:
    loops = (loop for loop in ast.walk(flow.function) if isinstance(loop, ast.For | ast.AsyncFor | ast.While))
    return any(inner is node for loop in loops for inner in ast.walk(loop))


def _names(before: Body, statement: ast.stmt, gone: Collection[ast.stmt], flow: Flow) -> dict[str, Value]:
    """What names stand for at ``statement`` without the statements that are gone."""
    names = dict(flow.names_before[id((before or [statement])[0])])
    for one in before:
        if one not in gone:
            old, new = flow.names_before[id(one)], flow.names_after[id(one)]
            names.update({name: value for name, value in new.items() if old.get(name) is not value})
    return names
