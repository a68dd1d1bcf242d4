"""Putting a call in the place of the steps that it computes, with the claim that both are equal."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from npuport.findings import Applicability, Claim, Edit, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Fragment, Unfit
from npuport.rules.fusable.places import Place, Slot, place_of
from npuport.rules.fusable.values import Value

Write = Callable[[Value], str]
"""What to write for a value."""

Call = Callable[[Write], str]
"""The text of a call, given what writes its arguments: once for the claim, and once for the user's code."""


def replacement(
    results: Sequence[tuple[Value, Call]],
    inputs: Sequence[tuple[Input, Value]],
    cases: tuple[str, ...],
    flow: Flow,
    context: Context,
    *,
    when: Call | None = None,
    deviation: float = 0.0,
) -> Fix:
    """A fix that puts calls in the place of ``results`` and of the steps to them, with the claim that it rests on.

    ``inputs`` are the values that the steps begin with; the first is a tensor. The original stays for other devices
    where the target is agnostic, and for inputs of which the condition ``when`` is not true.

    Raises:
        Unfit: the code cannot be cut out, or not be replaced.
    """
    named = {described.name: value for described, value in inputs}
    before, after = (Fragment(named, flow, context) for _ in range(2))
    old = [before.text(value) for value, _ in results]
    new = [_spelled(call(after.text), context) for _, call in results]
    claim = Claim(tuple(described for described, _ in inputs), _body(before, old), _body(after, new), cases, deviation)
    place = place_of([value for value, _ in results], before.used, flow)
    calls = {id(value.node): call for value, call in results}
    written = []
    for slot in place.slots:
        names = {text_of_value(value, slot, context): value for _, value in inputs}
        write = Fragment(names, flow, context, inline=True).text
        written.append((slot, _spelled(calls[id(slot.node)](write), context), write))
    condition = _condition(inputs[0][1], when, written[0][2], context)
    texts = [(slot, text) for slot, text, _ in written]
    edits = _guarded(place, texts, condition, flow, context) if condition else _replaced(place, texts, context)
    title = f"put {texts[0][1]} there"
    needs = None if context.agnostic else "torch_npu"
    return context.fix(edits, Applicability.UNSAFE, title, needs=needs, claim=claim)


def text_of_value(value: Value, slot: Slot, context: Context) -> str:
    """What to write for a value where a last step is.

    Raises:
        Unfit: no name there stands for it.
    """
    names = (name for name, known in slot.names.items() if known is value and name.isidentifier())
    name = next(names, None)
    if name is not None:
        return name
    if value.op == "constant" and value.node is not None:
        return context.module.segment(value.node)
    if value.op == "attribute":
        return f"{text_of_value(value.first, slot, context)}.{value.detail}"
    if value.op == "name" and str(value.detail) not in slot.names:
        return str(value.detail)
    if value.op == "part" and isinstance(value.node, ast.Subscript) and isinstance(value.detail, int):
        return f"{text_of_value(value.first, slot, context)}[{value.detail}]"
    what = value.detail if value.op == "parameter" else ast.unparse(value.node) if value.node else "an input"
    raise Unfit(f"no name stands for {what} where the last step is")


def _spelled(call: str, context: Context) -> str:
    """torch_npu's operators as PyTorch knows them where the code is for other devices too: that needs no import."""
    return re.sub(r"\btorch_npu\.(?=npu_)", "torch.ops.npu.", call) if context.agnostic else call


def _body(fragment: Fragment, results: Sequence[str]) -> str:
    return "\n".join([*fragment.body, f"return {', '.join(results)}"])


def _condition(tensor: Value, when: Call | None, write: Write, context: Context) -> str:
    device = f'{write(tensor)}.device.type == "npu"' if context.agnostic else ""
    return " and ".join(part for part in (device, when(write) if when is not None else "") if part)


def _replaced(place: Place, texts: Sequence[tuple[Slot, str]], context: Context) -> list[Edit]:
    """Edits that put each text in the place of its last step, and take away the steps before."""
    nodes = [Edit(*context.module.lines.span(slot.node), text) for slot, text in texts]
    edits = sorted([*(without(one, context) for one in place.gone), *nodes])
    together = edits[:1]
    for edit in edits[1:]:  # what touches is one change to read
        last = together[-1]
        between = context.module.text[last.end : edit.start]
        if "\n" in between:
            together.append(edit)
        else:
            together[-1] = Edit(last.start, edit.end, last.new + between + edit.new)
    return together


def _guarded(
    place: Place, texts: Sequence[tuple[Slot, str]], condition: str, flow: Flow, context: Context
) -> list[Edit]:
    """Edits that put each text beside its last step, for when the condition is true."""
    slots = [slot.statement for slot, _ in texts]
    moving = [*place.gone, *slots]
    if len(texts) == 1 and not place.gone and not isinstance(slots[0], ast.Return):
        slot, text = texts[0]
        start, end = context.module.lines.span(slot.node)
        whole = slot.node is getattr(slot.statement, "value", None)
        chosen = f"{text} if {condition} else {context.module.text[start:end]}"
        return [Edit(start, end, chosen if whole else f"({chosen})")]
    first, last = (place.body.index(one) for one in (min(moving, key=place.body.index), slots[-1]))
    block = place.body[first : last + 1]
    if any(one not in moving for one in block):
        raise Unfit("other statements stand between its steps")
    lines = [whole_lines(one, context) for one in block]
    start, end = lines[0][0], lines[-1][1]
    text = context.module.text
    indent = text[start : start + block[0].col_offset]
    unit = " " * (flow.function.body[0].col_offset - flow.function.col_offset) if "\t" not in indent else "\t"
    fused = "".join(indent + unit + _with_texts(one, texts, context) + context.newline for one in dict.fromkeys(slots))
    head = f"{indent}if {condition}:{context.newline}{fused}"
    if isinstance(slots[-1], ast.Return):
        return [Edit(start, start, head)]
    old = text[start:end]
    if '"""' in old or "'''" in old:
        raise Unfit("a text of several lines stands between its steps")
    rest = "".join(unit + line if line.strip() else line for line in old.splitlines(keepends=True))
    return [Edit(start, end, f"{head}{indent}else:{context.newline}{rest}")]


def _with_texts(statement: ast.stmt, texts: Sequence[tuple[Slot, str]], context: Context) -> str:
    """The text of a statement with each of its last steps replaced."""
    start, end = context.module.lines.span(statement)
    found = context.module.text[start:end]
    spans = [(context.module.lines.span(slot.node), text) for slot, text in texts if slot.statement is statement]
    for (first, last), text in sorted(spans, reverse=True):
        found = found[: first - start] + text + found[last - start :]
    return found


def without(statement: ast.stmt, context: Context) -> Edit:
    """An edit that takes the lines of a statement, the comment above it, and the empty lines below.

    Raises:
        Unfit: another statement stands on one of them.
    """
    lines, text = context.module.lines, context.module.text
    start, end = whole_lines(statement, context)
    first, last = lines.position(start)[0], lines.position(end - 1)[0]
    while text[_start(first - 1, context) : _start(first, context)].lstrip().startswith("#"):
        first -= 1
    while last < len(lines.starts) and not text[_start(last + 1, context) : _start(last + 2, context)].strip():
        last += 1
    return Edit(_start(first, context), _start(last + 1, context), "")


def whole_lines(statement: ast.stmt, context: Context) -> tuple[int, int]:
    """The offsets of the lines of a statement.

    Raises:
        Unfit: another statement stands on one of them.
    """
    start, end = context.module.lines.span(statement)
    first = _start(context.module.lines.position(start)[0], context)
    last = _start(context.module.lines.position(end)[0] + 1, context)
    rest = context.module.text[end:last].strip()
    if context.module.text[first:start].strip() or (rest and not rest.startswith("#")):
        raise Unfit("a step shares its line with another statement")
    return first, last


def _start(line: int, context: Context) -> int:
    """Where a line begins, from 1; the end of the text for one beyond the last."""
    starts = context.module.lines.starts
    return starts[line - 1] if line <= len(starts) else len(context.module.text)
