"""Putting a call in the place of the steps that it computes, with the claim that both are equal."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence

from npuport.findings import Applicability, Claim, Edit, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Fragment, Unfit
from npuport.rules.fusable.match import name_in_scope
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
    assumed: Mapping[int, str] | None = None,
    deviation: float = 0.0,
) -> Fix:
    """A fix that puts calls in the place of ``results`` and of the steps to them, with the claim that it rests on.

    ``inputs`` are the values that the steps begin with; the first is a tensor. The original stays for other devices
    where the target is agnostic, and for inputs of which the condition ``when`` is not true. ``assumed`` names, by the
    id of a value, the function that the module which computes it is known to be.

    Raises:
        Unfit: the code cannot be cut out, or not be replaced.
    """
    if any("jit" in ast.unparse(one) for one in flow.function.decorator_list):
        raise Unfit("the function is scripted, and scripts know only what is registered when they are made")
    named = {described.name: value for described, value in inputs}
    before, after = (Fragment(named, flow, context, assumed=assumed) for _ in range(2))
    old = [before.text(value) for value, _ in results]
    new = [_spelled(call(after.text), context) for _, call in results]
    claim = Claim(tuple(described for described, _ in inputs), _body(before, old), _body(after, new), cases, deviation)
    place = place_of([value for value, _ in results], before.used, flow)
    calls = {id(value.node): call for value, call in results}
    texts: list[tuple[Slot, str]] = []
    condition = ""
    for slot in place.slots:
        write = _writer([value for _, value in inputs], slot, place, flow, context)
        texts.append((slot, _in_scope(_spelled(calls[id(slot.node)](write), context), slot.node, context)))
        condition = condition if len(texts) > 1 else _condition(inputs, texts[0][1], when, write, context)
    written = [*(text for _, text in texts), condition]
    _check(written)
    edits = _guarded(place, texts, condition, flow, context) if condition else _replaced(place, texts, context)
    title = f"put {texts[0][1]} there"
    needs = tuple(name for name in ("torch", "torch_npu") if any(re.search(rf"\b{name}\.", text) for text in written))
    return context.fix(edits, Applicability.UNSAFE, title, needs=needs, claim=claim)


def _writer(inputs: Sequence[Value], slot: Slot, place: Place, flow: Flow, context: Context) -> Write:
    """What writes values where a last step is. An input that is not at hand there matters only to whom needs it."""
    texts: dict[str, Value] = {}
    missing: dict[int, Unfit] = {}
    for value in inputs:
        try:
            texts[text_of_value(value, slot, place, flow, context)] = value
        except Unfit as why:  # noqa: PERF203 - each has a reason of its own
            missing[id(value)] = why
    fragment = Fragment(texts, flow, context, inline=True)

    def write(value: Value) -> str:
        if id(value) in missing:
            raise missing[id(value)]
        return fragment.text(value)

    return write


def text_of_value(value: Value, slot: Slot, place: Place, flow: Flow, context: Context) -> str:
    """What to write for a value where a last step is.

    Raises:
        Unfit: it is not at hand there.
    """
    names = (name for name, known in slot.names.items() if known is value and name.isidentifier())
    name = next(names, None)
    if name is not None:
        return name
    if value.op == "name" and str(value.detail) not in slot.names:
        return str(value.detail)
    if value.node is not None and (value.op == "constant" or _may_move(value.node, slot, place, flow)):
        return context.module.segment(value.node)
    at_hand = {name: known for name, known in slot.names.items() if name.isidentifier()}
    try:
        return Fragment(at_hand, flow, context, inline=True).text(value)
    except Unfit as why:
        what = value.detail if value.op == "parameter" else ast.unparse(value.node) if value.node else "an input"
        raise Unfit(f"{what} is not at hand where the last step is: {why}") from why


def _may_move(node: ast.expr, slot: Slot, place: Place, flow: Flow) -> bool:
    """Whether an expression may be written where a last step is: it stands there, or nothing between minds."""
    if not any(one is node for one in ast.walk(slot.node)):
        before = place.body[: place.body.index(slot.statement)]
        holder = next((one for one in before if any(inner is node for inner in ast.walk(one))), None)
        if holder not in place.gone:
            return False
        between = (one for one in before[before.index(holder) :] if one not in place.gone)
        if not all(_is_other_module(one, node) for one in between):
            return False
    read = ((flow.value(one), slot.names.get(one.id)) for one in ast.walk(node) if isinstance(one, ast.Name))
    # The owner of a method is not followed; a parameter that is one still has not been given anew.
    return all(now is None or now is then or (then is None and now.op == "parameter") for then, now in read)


def _spelled(call: str, context: Context) -> str:
    """torch_npu's operators as PyTorch knows them where the code is for other devices too: that needs no import."""
    return re.sub(r"\btorch_npu\.(?=npu_)", "torch.ops.npu.", call) if context.agnostic else call


def _in_scope(call: str, at: ast.expr, context: Context) -> str:
    """PyTorch's functions by the name that they go by at a node."""
    module = "torch.nn.functional"
    return re.sub(rf"\b{re.escape(module)}\b", name_in_scope(module, at, context), call) if module in call else call


def _is_other_module(statement: ast.stmt, node: ast.expr) -> bool:
    """Whether a statement only calls a module, and another one than ``node`` does."""
    called = [one.func if isinstance(one, ast.Call) else None for one in (getattr(statement, "value", None), node)]
    return (
        isinstance(statement, ast.Assign)
        and all(one is not None and ast.unparse(one).startswith("self.") for one in called)
        and len({ast.unparse(one) for one in called if one is not None}) == len(called)
    )


def _check(texts: Sequence[str]) -> None:
    """Refuse texts that compute something twice."""
    calls = (text[one.start() :] for text in texts for one in re.finditer(r"\bself[\w.]*\(", text))
    again = next((call for call in map(_first_call, calls) if any(text.count(call) > 1 for text in texts)), None)
    if again is not None:
        raise Unfit(f"{again} would be computed twice")


def _first_call(text: str) -> str:
    """``text`` up to the end of the call that it begins with."""
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == ")" and depth == 0:
            return text[: place + 1]
    return text


def _body(fragment: Fragment, results: Sequence[str]) -> str:
    return "\n".join([*fragment.body, f"return {', '.join(results)}"])


def _condition(
    inputs: Sequence[tuple[Input, Value]], text: str, when: Call | None, write: Write, context: Context
) -> str:
    """When a call is right: on an NPU, where it is one of torch_npu's and the code is for other devices too."""
    is_of_npu = context.agnostic and "torch.ops.npu." in text
    device = f'{_on_device(inputs, write)}.device.type == "npu"' if is_of_npu else ""
    return " and ".join(part for part in (device, when(write) if when is not None else "") if part)


def _on_device(inputs: Sequence[tuple[Input, Value]], write: Write) -> str:
    """A tensor that stands on the device of all of them, by a plain name: an input, or what one is computed from."""
    for _, value in inputs:
        for one in (value, *value.inputs[:1]):
            text = str(one.detail) if one.op == "parameter" else write(one) if one is value else ""
            if re.fullmatch(r"[\w.]*[A-Za-z_]\w*", text):
                return text
    raise Unfit("none of its tensors has a name")


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
        around = context.module.text[start - 1 : start] + context.module.text[end : end + 1]
        whole = slot.node is getattr(slot.statement, "value", None) or around == "()"
        chosen = f"{text} if {condition} else {context.module.text[start:end]}"
        return [Edit(start, end, chosen if whole else f"({chosen})")]
    first, last = (place.body.index(one) for one in (min(moving, key=place.body.index), slots[-1]))
    block = place.body[first : last + 1]
    kept = [one for one in block if one not in moving]
    given = {node.id for one in kept for node in ast.walk(one) if isinstance(node, ast.Name) and _is_stored(node)}
    if not all(isinstance(one, ast.Assign) for one in kept) or any(
        re.search(rf"\b{name}\b", condition) for name in given
    ):
        raise Unfit("other statements stand between its steps")
    lines = [whole_lines(one, context) for one in block]
    start, end = lines[0][0], lines[-1][1]
    text = context.module.text
    indent = text[start : start + block[0].col_offset]
    unit = " " * (flow.function.body[0].col_offset - flow.function.col_offset) if "\t" not in indent else "\t"
    fused = "".join(
        indent + unit + _with_texts(one, texts, context) + context.newline for one in block if one not in place.gone
    )
    head = f"{indent}if {condition}:{context.newline}{fused}"
    if isinstance(slots[-1], ast.Return):
        return [Edit(start, start, head)]
    old = text[start:end]
    if '"""' in old or "'''" in old:
        raise Unfit("a text of several lines stands between its steps")
    rest = "".join(unit + line if line.strip() else line for line in old.splitlines(keepends=True))
    return [Edit(start, end, f"{head}{indent}else:{context.newline}{rest}")]


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


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
