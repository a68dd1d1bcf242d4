"""Giving the names of one ``from … import …`` statement other modules, with the fewest edits."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.base import Context

_HEAD = re.compile(r"from(\s+)([\w.]+)(\s+)import(?P<open>\s*\(|\s)")


@dataclass(frozen=True, slots=True)
class Target:
    """Where one imported name comes from after the edit, and how it is written there (``x`` or ``x as y``)."""

    module: str
    text: str


def retarget(node: ast.ImportFrom, targets: Sequence[Target], context: Context) -> list[Edit] | None:
    """Edits that import each name of ``node`` from its target; None where the text is too unusual to edit safely.

    Names that keep the statement's module stay in it, and the others move to statements before it; where none keeps it,
    the statement takes the module of the first. Lines are kept where the settings ask for it.
    """
    start, end = context.module.lines.span(node)
    head = _HEAD.match(context.module.text, start, end)
    if head is None or head.group(2) != "." * node.level + (node.module or ""):
        return None
    modules = list(dict.fromkeys(target.module for target in targets))
    kept = head.group(2) if head.group(2) in modules else modules[0]
    edits = [Edit(head.start(2), head.end(2), kept)] if kept != head.group(2) else []
    if len(modules) == 1:
        return edits + _respelled(node, targets, context)
    staying = [place for place, target in enumerate(targets) if target.module == kept]
    cut = _cut(node, targets, staying, context, parenthesised=head["open"].endswith("("))
    if cut is None:
        return None
    moved = [
        f"from {module} import {', '.join(target.text for target in targets if target.module == module)}"
        for module in modules
        if module != kept
    ]
    before = context.module.text[context.module.lines.starts[node.lineno - 1] : start]
    between = "; " if context.settings.keep_lines or before.strip() else context.newline + before
    return [Edit(start, start, "".join(statement + between for statement in moved)), *edits, *cut]


def _respelled(node: ast.ImportFrom, targets: Sequence[Target], context: Context) -> list[Edit]:
    found = []
    for alias, target in zip(node.names, targets, strict=True):
        start, end = context.module.lines.span(alias)
        if context.module.text[start:end] != target.text:
            found.append(Edit(start, end, target.text))
    return found


def _cut(
    node: ast.ImportFrom, targets: Sequence[Target], staying: Sequence[int], context: Context, *, parenthesised: bool
) -> list[Edit] | None:
    """Edits that leave only the names at the places ``staying``."""
    text = context.module.text
    spans = [context.module.lines.span(alias) for alias in node.names]
    if not parenthesised:
        start, end = spans[0][0], spans[-1][1]
        if context.settings.keep_lines and "\\" in text[start:end]:
            return None
        return [Edit(start, end, ", ".join(targets[place].text for place in staying))]
    edits = []
    for place, (start, end) in enumerate(spans):
        if place in staying:
            if text[start:end] != targets[place].text:
                edits.append(Edit(start, end, targets[place].text))
            continue
        comma = re.compile(r"[ \t]*,[ \t]*").match(text, end)
        if comma is None and place + 1 < len(spans):
            return None  # a comment between a name and its comma
        edits.append(_without(start, comma.end() if comma else end, last=comma is None, context=context))
    return edits


def _without(start: int, end: int, *, last: bool, context: Context) -> Edit:
    """The edit that takes a name out of parentheses, with its line where nothing else is on it."""
    text = context.module.text
    line = context.module.lines.position(start)[0]
    first = context.module.lines.starts[line - 1]
    rest = re.compile(r"[ \t]*(\r\n|\r|\n)").match(text, end)
    if rest and not text[first:start].strip() and not context.settings.keep_lines:
        return Edit(first, rest.end(), "")
    while last and text[start - 1] in " \t":
        start -= 1
    return Edit(start, end, "")
