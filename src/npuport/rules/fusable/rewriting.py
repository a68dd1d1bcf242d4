"""Putting one call in the place of the steps that it computes: what goes, what stays, and what the names then mean."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from npuport.findings import Applicability, Claim, Edit, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Fragment, Unfit
from npuport.rules.fusable.values import Value

_Body = list[ast.stmt]

Write = Callable[[Value], str]
"""What to write for a value."""


def replacement(
    result: Value,
    inputs: Sequence[tuple[Input, Value]],
    call: Callable[[Write], str],
    cases: tuple[str, ...],
    flow: Flow,
    context: Context,
) -> Fix:
    """A fix that puts ``call`` in the place of ``result`` and of the steps to it, with the claim that it rests on.

    ``call`` is given what writes a value, once for the claim and once for the user's code. ``inputs`` are the values
    that the steps begin with.

    Raises:
        Unfit: the code cannot be cut out, or not be replaced.
    """
    named = {described.name: value for described, value in inputs}
    before, after = (Fragment(named, flow, context) for _ in range(2))
    sides = _body(before, before.text(result)), _body(after, call(after.text))
    claim = Claim(tuple(described for described, _ in inputs), *sides, cases)
    place = place_of(result, before.used, flow)
    written = {text_of_value(value, place, flow, context): value for _, value in inputs}
    new = call(Fragment(written, flow, context, inline=True).text)
    return context.fix(
        replacing(place, new, context), Applicability.UNSAFE, f"put {new} there", needs="torch_npu", claim=claim
    )


def _body(fragment: Fragment, result: str) -> str:
    return "\n".join([*fragment.body, f"return {result}"])


@dataclass(frozen=True)
class Place:
    """The statement that holds the last step, and those before it that go, for only the steps need them."""

    body: _Body
    statement: ast.stmt
    node: ast.expr  # the last step
    gone: tuple[ast.stmt, ...]
    names: Mapping[str, Value]  # what names stand for at ``statement`` once ``gone`` is gone


def place_of(result: Value, used: Collection[int], flow: Flow) -> Place:
    """Where the steps stand that compute ``result``; ``used`` are the ids of all their values.

    Raises:
        Unfit: there is no one place to put a call.
    """
    node = result.node
    found = next((one for one in _expressions(flow.function.body) if one[2] is node), None)
    if found is None or node is None:
        raise Unfit("its last step is no expression of its own")
    body, statement, _ = found
    before = body[: body.index(statement)]
    gone = _unneeded(before, statement, node, used, flow)
    return Place(body, statement, node, tuple(gone), _names(before, statement, gone, flow))


def text_of_value(value: Value, place: Place, flow: Flow, context: Context) -> str:
    """What to write for a value at a place.

    Raises:
        Unfit: no name there stands for it.
    """
    names = (name for name, known in place.names.items() if known is value and name.isidentifier())
    name = next(names, None)
    if name is not None:
        return name
    if value.op == "constant" and value.node is not None:
        return context.module.segment(value.node)
    if value.op == "attribute":
        return f"{text_of_value(value.first, place, flow, context)}.{value.detail}"
    if value.op == "name" and str(value.detail) not in place.names:
        return str(value.detail)
    what = value.detail if value.op == "parameter" else ast.unparse(value.node) if value.node else "an input"
    raise Unfit(f"no name stands for {what} where the last step is")


def replacing(place: Place, new: str, context: Context) -> list[Edit]:
    """Edits that put ``new`` in the place of the last step, and take away the steps before it.

    Raises:
        Unfit: a step shares its line with another statement.
    """
    start, end = context.module.lines.span(place.node)
    edits = [*(_without(one, context) for one in place.gone), Edit(start, end, new)]
    together = edits[:1]
    for edit in edits[1:]:  # what touches is one change to read
        last = together[-1]
        between = context.module.text[last.end : edit.start]
        if "\n" in between:
            together.append(edit)
        else:
            together[-1] = Edit(last.start, edit.end, last.new + between + edit.new)
    return together


def _without(statement: ast.stmt, context: Context) -> Edit:
    """An edit that takes the lines of a statement, the comment above it, and the empty lines below."""
    lines, text = context.module.lines, context.module.text
    start, end = lines.span(statement)
    first, last = lines.position(start)[0], lines.position(end)[0]
    rest = text[end : _start(last + 1, context)].strip()
    if text[_start(first, context) : start].strip() or (rest and not rest.startswith("#")):
        raise Unfit("a step shares its line with another statement")
    while text[_start(first - 1, context) : _start(first, context)].lstrip().startswith("#"):
        first -= 1
    while last < len(lines.starts) and not text[_start(last + 1, context) : _start(last + 2, context)].strip():
        last += 1
    return Edit(_start(first, context), _start(last + 1, context), "")


def _start(line: int, context: Context) -> int:
    """Where a line begins, from 1; the end of the text for one beyond the last."""
    starts = context.module.lines.starts
    return starts[line - 1] if line <= len(starts) else len(context.module.text)


def _expressions(body: _Body) -> Iterator[tuple[_Body, ast.stmt, ast.expr]]:
    """Every expression, with the innermost statement that holds it and the body that this is part of."""
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


def _unneeded(
    before: _Body, statement: ast.stmt, result: ast.expr, used: Collection[int], flow: Flow
) -> list[ast.stmt]:
    """The statements among ``before`` that serve the steps only."""
    gone = [one for one in before if _is_step(one, used, flow)]
    in_loop = _is_in_loop(statement, flow)
    while True:
        inside = {id(node) for one in (*gone, result) for node in ast.walk(one)}
        others = [node for node in ast.walk(flow.function) if isinstance(node, ast.Name) and id(node) not in inside]
        kept = [one for one in gone if not _is_needed(one, others, flow, in_loop)]
        if len(kept) == len(gone):
            return gone
        gone = kept


def _is_step(statement: ast.stmt, used: Collection[int], flow: Flow) -> bool:
    """Whether a statement only gives a name to a value that the steps compute."""
    if isinstance(statement, ast.If):
        return all(_is_step(one, used, flow) for one in (*statement.body, *statement.orelse))
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    value, target = flow.value(statement.value), statement.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    return value is not None and id(value) in used and all(isinstance(name, ast.Name) for name in names)


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


def _is_in_loop(statement: ast.stmt, flow: Flow) -> bool:
    loops = (node for node in ast.walk(flow.function) if isinstance(node, ast.For | ast.AsyncFor | ast.While))
    return any(inner is statement for loop in loops for inner in ast.walk(loop))


def _names(before: _Body, statement: ast.stmt, gone: Collection[ast.stmt], flow: Flow) -> dict[str, Value]:
    """What names stand for at ``statement`` without the statements that are gone."""
    names = dict(flow.names_before[id((before or [statement])[0])])
    for one in before:
        if one not in gone:
            old, new = flow.names_before[id(one)], flow.names_after[id(one)]
            names.update({name: value for name, value in new.items() if old.get(name) is not value})
    return names
