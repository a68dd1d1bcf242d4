"""The statements of a hand-written attention, which make room for one call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.rules.fusable.attention_steps import Step, Steps
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.rewriting import without


@dataclass(frozen=True)
class Region:
    """``statements`` compute steps only and go; ``result`` is the last product, within ``last``.

    ``scores`` are the names that scores and weights have on the way.
    """

    statements: tuple[ast.stmt, ...]
    result: ast.expr
    last: ast.stmt
    removals: tuple[Edit, ...]
    scores: frozenset[str]


def region_of(steps: Steps, flow: Flow, context: Context) -> Region:
    """Where the steps stand.

    Raises:
        Unfit: when somebody else wants what they compute, or what they take changes on the way.
    """
    result = steps.result.node
    inside = {id(node) for node in ast.walk(result)}
    ids = {id(step.value) for step in steps}
    places = {(step.node.lineno, step.node.col_offset) for step in steps if isinstance(step.node, ast.BinOp)}
    gone: list[ast.stmt] = []
    last: ast.stmt | None = None
    for statement in _statements(flow.function.body):
        if any(node is result for node in _expressions(statement)):
            last = statement
        elif _computes_a_step(statement, ids, places, flow):
            gone.append(statement)
    if last is None:
        raise Unfit("the last product stands in no plain statement")
    covered = inside | {id(node) for statement in gone for node in ast.walk(statement)}
    located = {(one.lineno, one.col_offset) for one in gone if isinstance(one, ast.AugAssign)}
    for step in steps:
        if id(step.node) not in covered and (step.node.lineno, step.node.col_offset) not in located:
            raise Unfit("a step stands in a statement that does more")
    scores = frozenset(name for one in gone for name in _stored(one))
    gone = _with_empty_branches(_with_helpers(gone, flow), flow.function.body)
    _check_other_uses(gone, last, result, flow)
    _check_inputs_stay(steps, gone, last, flow)
    return Region(tuple(gone), result, last, tuple(without(one, context) for one in gone), scores)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement of a function, in order; not those of functions within."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, field, []))
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body)


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement's own expressions."""
    for _, value in ast.iter_fields(statement):
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.expr):
                yield from ast.walk(one)


def _computes_a_step(statement: ast.stmt, ids: set[int], places: set[tuple[int, int]], flow: Flow) -> bool:
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Name) and (statement.lineno, statement.col_offset) in places
    if isinstance(statement, ast.Expr):  # scores.masked_fill_(…)
        value = flow.value(statement.value)
        return value is not None and id(value) in ids
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    value = flow.value(statement.value)
    return isinstance(statement.targets[0], ast.Name) and value is not None and id(value) in ids


def _with_helpers(gone: list[ast.stmt], flow: Flow) -> list[ast.stmt]:
    """``gone`` with what is made of the scores for them alone, such as ``low = torch.finfo(scores.dtype).min``."""
    names = {name for one in gone for name in _stored(one)}
    given: dict[str, list[ast.stmt]] = {}
    for statement in _statements(flow.function.body):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and statement not in gone:
            given.setdefault(statement.targets[0].id, []).append(statement)
    found = list(gone)
    for name, helpers in given.items():
        nodes = [node for one in helpers for node in ast.walk(one)]
        of_scores = any(isinstance(node, ast.Name) and node.id in names - {name} for node in nodes)
        own = {id(node) for one in (*gone, *helpers) for node in ast.walk(one)}
        uses = [node for node in ast.walk(flow.function) if isinstance(node, ast.Name) and node.id == name]
        if of_scores and all(id(node) in own for node in uses):
            found += helpers
    return sorted(found, key=lambda one: one.lineno)


def _stored(statement: ast.stmt) -> set[str]:
    nodes = ast.walk(statement)
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _with_empty_branches(gone: list[ast.stmt], body: list[ast.stmt]) -> list[ast.stmt]:
    """``if`` statements go with all that they hold.

    Raises:
        Unfit: for a ``with`` or a loop that would be left empty.
    """
    found = list(gone)
    for statement in reversed(list(_statements(body))):
        held = getattr(statement, "body", None)
        if not held or isinstance(statement, ast.FunctionDef) or not any(one in found for one in held):
            continue
        if not all(one in found for one in held):
            continue
        if not isinstance(statement, ast.If) or statement.orelse:
            raise Unfit("a step stands alone in a block")
        found = [one for one in found if one not in held]
        found.append(statement)
    return sorted(found, key=lambda one: one.lineno)


def _check_other_uses(gone: list[ast.stmt], last: ast.stmt, result: ast.expr, flow: Flow) -> None:
    if not gone:
        return
    names = {name for one in gone for name in _stored(one)}
    allowed = {id(node) for one in [*gone, result] for node in ast.walk(one)}
    first = gone[0].lineno
    rebound = {node.id for node in ast.walk(last) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(flow.function):
        if not isinstance(node, ast.Name) or node.id not in names or not isinstance(node.ctx, ast.Load):
            continue
        after = node.lineno > (last.end_lineno or last.lineno)
        if id(node) in allowed or node.lineno < first or (after and node.id in rebound):
            continue
        raise Unfit(f"{node.id} is used further, and a fused call does not give it")


def _check_inputs_stay(steps: Steps, gone: list[ast.stmt], last: ast.stmt, flow: Flow) -> None:
    """What the steps take must be the same where the last one stands."""
    within = {id(node): statement for statement in gone for node in ast.walk(statement)}
    every = [node for node in ast.walk(flow.function) if isinstance(node, ast.Name | ast.Attribute)]
    stored = [node for node in every if isinstance(node.ctx, ast.Store)]
    for step in steps:
        taken = [*_moved(step), *([step.condition] if step.condition is not None else [])]
        if step.condition is not None:
            _check_condition(step.condition, stored, last, flow)
        for node in (node for operand in taken for node in ast.walk(operand)):
            statement = within.get(id(node))
            if statement is None or not isinstance(node, ast.Name | ast.Attribute):
                continue
            path = ast.unparse(node)
            for store in (one for one in stored if ast.unparse(one) == path):
                other = within.get(id(store))
                if other is not None and other.lineno < statement.lineno and step is not steps.result:
                    raise Unfit(f"a step takes {path} once more")
                if other is None and statement.lineno < store.lineno < last.lineno:
                    raise Unfit(f"{path} changes between the steps")


def _check_condition(condition: ast.expr, stored: list[ast.Name | ast.Attribute], last: ast.stmt, flow: Flow) -> None:
    """A test must say the same later, also where its ``if`` stays for other statements; None is not given anew."""
    branch = next(one for one in _statements(flow.function.body) if isinstance(one, ast.If) and one.test is condition)
    is_given = ast.unparse(condition).endswith(" is not None")
    names = {ast.unparse(node) for node in ast.walk(condition) if isinstance(node, ast.Name | ast.Attribute)}
    for store in stored:
        inside = is_given and store.lineno <= (branch.end_lineno or branch.lineno)
        if ast.unparse(store) in names and branch.lineno < store.lineno < last.lineno and not inside:
            raise Unfit(f"{ast.unparse(store)} changes between the steps")


def _moved(step: Step) -> list[ast.expr]:
    """What of a step is an argument of the call, and so is computed later than it was."""
    if step.op in {"cast", "copy", "softmax"}:
        return []
    if step.op in {"masked_fill", "where"}:
        return [*([step.named["mask"]] if "mask" in step.named else step.operands[:1])]
    return [*step.operands, *step.named.values()]
