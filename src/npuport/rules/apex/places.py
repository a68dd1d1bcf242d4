"""Where statements stand: blocks, lines, indentation, and which of them make a loss."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from npuport.rules.apex.mentions import block_of
from npuport.rules.base import Context
from npuport.source.module import ancestors, parent

Function = ast.FunctionDef | ast.AsyncFunctionDef


def values_of(node: ast.expr, context: Context) -> set[object]:
    """Every constant that an expression can be; empty where one is not known."""
    return set(context.constants_of(node) or ())


def function_around(node: ast.AST) -> ast.AST | None:
    """The function around a node; None at module level."""
    return next((around for around in ancestors(node) if isinstance(around, Function)), None)


def is_method(node: ast.AST | None) -> bool:
    return (
        isinstance(node, Function)
        and isinstance(parent(node), ast.ClassDef)
        and bool(node.args.args)
        and node.args.args[0].arg == "self"
    )


def statement_around(node: ast.AST) -> ast.stmt:
    return next(around for around in ancestors(node) if isinstance(around, ast.stmt))


def first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def margin_of(statement: ast.stmt, text: str) -> str:
    """The indentation of a statement's first line."""
    lines = text.splitlines()
    line = lines[first_line(statement) - 1]
    return line[: len(line) - len(line.lstrip())]


def separator(node: ast.AST, text: str, context: Context) -> str:
    """What parts two statements in the place of one: a line end and the indentation, ``; `` on a shared line."""
    start = context.module.lines.span(node)[0]
    head = text[text.rfind("\n", 0, start) + 1 : start]
    return f"{context.newline}{head}" if not head.strip() else "; "


def after_last_step(statements: Sequence[ast.stmt]) -> int:
    """The place after the last statement that runs a backward pass or a step."""
    ends = [
        place
        for place, statement in enumerate(statements, 1)
        if any(isinstance(part, ast.Attribute) and part.attr in {"backward", "step"} for part in ast.walk(statement))
    ]
    return max(ends, default=0)


def calls_one_of(statement: ast.stmt, models: frozenset[str]) -> bool:
    """Whether a statement calls a model by the name that ``amp.initialize`` knows."""
    return any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Name | ast.Attribute)
        and ast.unparse(part.func) in models
        for part in ast.walk(statement)
    )


def makers_of(statements: Sequence[ast.stmt], words: set[str]) -> list[ast.stmt]:
    """The statements that make the loss out of what other statements make, where a function or module is called."""
    found, wanted = [], set(words)
    for statement in reversed(statements):
        names = [part for part in ast.walk(statement) if isinstance(part, ast.Name)]
        if wanted & {name.id for name in names if isinstance(name.ctx, ast.Store)}:
            wanted |= {name.id for name in names if isinstance(name.ctx, ast.Load)}
            if any(isinstance(part, ast.Call) and not _only_moves(part) for part in ast.walk(statement)):
                found.append(statement)
    return found[::-1]


def speaks_of(statement: ast.stmt, words: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in words for part in ast.walk(statement))


def _only_moves(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in {"cuda", "npu", "to", "long", "float", "items"}


def stands_before(place: ast.stmt, step: ast.Call, context: Context) -> bool:
    """Whether ``place`` is in the block of a step, or in a condition there, before the step."""
    stepping = statement_around(step)
    block = block_of(stepping, context)
    top: ast.AST = place
    while top not in block:
        around = parent(top)
        if not isinstance(around, ast.If):
            return False
        top = around
    return block.index(top) <= block.index(stepping)
