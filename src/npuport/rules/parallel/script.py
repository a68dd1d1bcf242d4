"""A training script read as a whole: its nodes, functions and calls, and how to put statements into it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from functools import cached_property
from typing import TypeVar

from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.source.module import ancestors, parent

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)


class Script:
    """One file, every node of it linked to its parent and scope."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.module = context.module
        self.nodes = self.module.nodes(range(1, len(self.module.lines.starts) + 1))
        self._callees: dict[ast.Call, Function | None] = {}
        self._calls_in: dict[ast.AST, list[ast.Call]] = {}

    def all(self, kind: type[Node]) -> Iterator[Node]:
        return (node for node in self.nodes if isinstance(node, kind))

    @cached_property
    def calls(self) -> list[ast.Call]:
        return list(self.all(ast.Call))

    def calls_in(self, node: ast.AST) -> list[ast.Call]:
        """The calls inside ``node``, itself among them, the outer ones first."""
        if node not in self._calls_in:
            self._calls_in[node] = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
        return self._calls_in[node]

    def name_of_call(self, call: ast.Call) -> str:
        return self.context.name_of(call.func) or ""

    def text(self, node: ast.AST) -> str:
        return self.module.segment(node)

    def before(self, one: ast.AST, other: ast.AST) -> bool:
        return self.module.lines.span(one)[0] < self.module.lines.span(other)[0]

    def mentions(self, names: Set[str]) -> list[ast.Name | ast.Attribute]:
        """The variables and attributes that stand for one of ``names``, which are dotted.

        Only those are resolved that are spelled like one, or that the file binds to something spelled so.
        """
        words = {name.rpartition(".")[2] for name in names}
        while more := self._bound_to_any(words) - words:
            words |= more
        spelled = (
            node for node in self.nodes if isinstance(node, ast.Name | ast.Attribute) and _spelling(node) in words
        )
        return [node for node in spelled if self.context.name_of(node) in names]

    def calls_of(self, names: Set[str]) -> list[ast.Call]:
        """The calls of one of ``names``."""
        around = ((parent(node), node) for node in self.mentions(names))
        return [call for call, node in around if isinstance(call, ast.Call) and call.func is node]

    def _bound_to_any(self, words: Set[str]) -> set[str]:
        """The variables and attributes that an import or assignment of the file makes stand for one of ``words``."""
        bound: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.alias) and node.asname and node.name.rpartition(".")[2] in words:
                bound.add(node.asname)
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if not words.isdisjoint(_stands_for(node.value)):
                    bound.update(word for target in targets for word in _stands_for(target))
        return bound

    # -- functions -------------------------------------------------------------------------------------------------

    def callee(self, call: ast.Call) -> Function | None:
        """The function of this file that a call runs: ``train(…)`` or, inside a class, ``self.train(…)``."""
        if call not in self._callees:
            self._callees[call] = self._callee(call)
        return self._callees[call]

    def _callee(self, call: ast.Call) -> Function | None:
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            around = class_of(call) if call.func.value.id == "self" else None
            for method in around.body if around is not None else ():
                if isinstance(method, Function) and method.name == call.func.attr:
                    return method
        found = self.context.definition_of(call.func)
        if found is None or found.is_class or found.path != self.module.path:
            return None
        node = found.node
        return node if isinstance(node, Function) and self._holds(node) else None

    def _holds(self, function: Function) -> bool:
        return function in self._functions

    @cached_property
    def _functions(self) -> set[ast.AST]:
        return {node for node in self.nodes if isinstance(node, Function)}

    def call_sites(self, function: Function) -> list[ast.Call]:
        return [call for call in self.calls if self.callee(call) is function]

    def argument(self, call: ast.Call, function: Function, name: str) -> ast.expr | None:
        """What a call gives for the parameter ``name``; None where that is its default, or cannot be told."""
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        given = call.args
        if isinstance(call.func, ast.Attribute) and names[:1] == ["self"]:
            names = names[1:]
        if name not in names or any(isinstance(argument, ast.Starred) for argument in given):
            return None
        index = names.index(name)
        return given[index] if index < len(given) else None

    # -- words of the file -----------------------------------------------------------------------------------------

    def bound_to(self, target: str) -> str | None:
        """The name at module level that stands for ``target`` and nothing else, such as dist for torch.distributed."""
        for name, bindings in self.module.scope.bindings.items():
            if all(binding.target == target for binding in bindings):
                return name
        return None

    def free_name(self, *wishes: str) -> str:
        """The first of ``wishes`` that the file does not use."""
        used = {node.id for node in self.all(ast.Name)} | {node.arg for node in self.all(ast.arg)}
        used |= self.module.scope.bindings.keys()
        for wish in wishes:
            if wish not in used:
                return wish
        return next(f"{wishes[0]}_{number}" for number in range(2, 99) if f"{wishes[0]}_{number}" not in used)

    # -- placing statements ----------------------------------------------------------------------------------------

    def indent_of(self, statement: ast.stmt) -> str | None:
        """The white space before a statement; None where another one stands before it on its line."""
        start = self.module.lines.span(statement)[0]
        line = self.module.lines.starts[self.module.lines.position(start)[0] - 1]
        indent = self.module.text[line:start]
        return indent if not indent.strip() else None

    def insert_before(self, statement: ast.stmt, lines: Iterable[str]) -> Edit | None:
        """New statements before one; None where that does not begin a line."""
        indent = self.indent_of(statement)
        if indent is None:
            return None
        place = self.module.lines.span(statement)[0] - len(indent)
        return Edit(place, place, self._block(indent, lines))

    def insert_after(self, statement: ast.stmt, lines: Iterable[str]) -> Edit | None:
        """New statements after one, at its indentation; None where another statement shares a line with it."""
        indent, starts, text = self.indent_of(statement), self.module.lines.starts, self.module.text
        end = self.module.lines.span(statement)[1]
        line = self.module.lines.position(end)[0]
        place = starts[line] if line < len(starts) else len(text)
        rest = text[end:place].strip()
        if indent is None or (rest and not rest.startswith("#")):
            return None
        missing = self.context.newline if text[place - 1 : place] not in ("\n", "\r") else ""
        return Edit(place, place, missing + self._block(indent, lines))

    def _block(self, indent: str, lines: Iterable[str]) -> str:
        newline = self.context.newline
        return "".join(f"{indent}{line}{newline}" if line else newline for line in lines)


def _spelling(node: ast.AST) -> str:
    """The last word of a variable or an attribute; "" for any other node."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _stands_for(value: ast.expr) -> Iterator[str]:
    """The last words of what an expression may stand for: ``a.B``, ``B if c else D``, ``getattr(a, "B")``."""
    if isinstance(value, ast.Name | ast.Attribute):
        yield _spelling(value)
    elif isinstance(value, ast.Call):
        yield from (one.value for one in value.args if isinstance(one, ast.Constant) and isinstance(one.value, str))
    elif isinstance(value, ast.IfExp | ast.NamedExpr | ast.Tuple | ast.List | ast.Starred):
        for part in ast.iter_child_nodes(value):
            if isinstance(part, ast.expr):
                yield from _stands_for(part)


def function_of(node: ast.AST) -> Function | None:
    """The innermost function around a node."""
    return next((around for around in ancestors(node) if isinstance(around, Function)), None)


def class_of(node: ast.AST) -> ast.ClassDef | None:
    """The innermost class around a node."""
    return next((around for around in ancestors(node) if isinstance(around, ast.ClassDef)), None)


def statement_of(node: ast.AST) -> ast.stmt:
    """The innermost statement that holds a node, or the node itself."""
    found = next((one for one in (node, *ancestors(node)) if isinstance(one, ast.stmt)), None)
    assert found is not None, "every expression stands in a statement"
    return found


def block_of(statement: ast.stmt, script: Script) -> list[ast.stmt]:
    """The statements beside a statement, itself among them."""
    around = parent(statement)
    holder: ast.AST = script.module.tree if around is None else around
    for field in ("body", "orelse", "finalbody"):
        block = getattr(holder, field, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def merged(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Insertions at one place made one: the deeper statements first, then as they come, indentation of a line last."""
    together: dict[tuple[int, int], list[str]] = {}
    for edit in edits:
        texts = together.setdefault((edit.start, edit.end), [])
        if edit.new not in texts or edit.start == edit.end:
            texts.append(edit.new)
    return tuple(
        Edit(*place, texts[0] if len(texts) == 1 else "".join(sorted(texts, key=_depth)))
        for place, texts in sorted(together.items())
    )


def _depth(text: str) -> tuple[bool, int]:
    line = text.lstrip("\r\n")
    return "\n" not in text, len(line.lstrip()) - len(line)
