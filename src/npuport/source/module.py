"""One parsed Python module: its tree, positions, and the statements that can matter to a rule.

Walking every node of every file costs several times what parsing costs. A rule only looks at statements that contain
one of its marker words, so only those get parent and scope links; the rest of the tree is never touched.
"""

from __future__ import annotations

import ast
import bisect
import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from npuport.source.scopes import ComprehensionNode, DefinitionNode, Scope, inner_statements
from npuport.source.text import LineIndex, line_index


class Module:
    """A Python file that parses.

    ``scopes`` are all scopes made for it so far.

    Raises:
        SyntaxError: when this Python cannot parse the text.
        ValueError: when the text holds a null byte.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not our news
            self.tree = ast.parse(text, path)
        self.scopes: list[Scope] = []
        self.scope = Scope(self.tree, None, self)
        self._linked: list[ast.AST] = []
        self.released = False

    @cached_property
    def lines(self) -> LineIndex:
        return line_index(self.text)

    @cached_property
    def add_argument_calls(self) -> list[ast.Call]:
        """Every ``….add_argument(…)`` of argparse."""
        if "add_argument" not in self.text:
            return []
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"]

    @cached_property
    def _walrus_lines(self) -> list[int]:
        return [self.lines.position(match.start())[0] for match in re.finditer(":=", self.text)]

    def may_hold_walrus(self, node: ast.expr | ast.stmt) -> bool:
        """Whether ``:=`` stands on the lines of ``node``; a look at the lines saves a walk through the node."""
        if not self._walrus_lines:
            return False
        index = bisect.bisect_left(self._walrus_lines, node.lineno)
        return index < len(self._walrus_lines) and self._walrus_lines[index] <= (node.end_lineno or node.lineno)

    def segment(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.lines.span(node)
        return self.text[start:end]

    def nodes(self, hits: Collection[int]) -> list[ast.AST]:
        """Every node, in source order, of the statements that stand on one of the lines; linked to parent and scope."""
        return [node for node, _ in self.placed_nodes(hits)]

    def placed_nodes(self, hits: Collection[int]) -> list[tuple[ast.AST, tuple[int, int]]]:
        """The same, each with the first and the last line of the innermost statement that it is part of."""
        found = _Walk(self, sorted(hits)).found if hits else []
        self._linked += [node for node, _ in found]
        return found

    def release(self) -> None:
        """Cut the links between nodes, which would keep the tree in memory until a long garbage collection."""
        for kept in map(vars, self._linked):
            kept.pop("npuport_parent", None)
            kept.pop("npuport_scope", None)
        self._linked.clear()
        for scope in self.scopes:
            flow = vars(scope.node).pop("npuport_flow", None)
            if flow is not None:
                flow.forget()
            scope.forget()
        self.released = True

    def definition(self, line: int, column: int) -> tuple[DefinitionNode, Scope]:
        """The class or function whose definition begins at this place of the syntax tree, and the scope around it.

        Raises:
            KeyError: when there is none.
        """
        found = _definition(self.tree.body, self.scope, line, column)
        if found is None:
            raise KeyError(f"{self.path}:{line} defines nothing")
        return found

    def uses(self, name: str) -> list[ast.Name]:
        """Every linked node that reads the variable ``name``, in any scope."""
        return [
            node
            for node in self.nodes(self.lines.lines_naming(name))
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]


def parent(node: ast.AST) -> ast.AST | None:
    """The node around a linked node; None for a statement at module level."""
    return getattr(node, "npuport_parent", None)


def scope_of(node: ast.AST, otherwise: Scope) -> Scope:
    """The scope a linked node is evaluated in; ``otherwise`` for a node not linked."""
    return getattr(node, "npuport_scope", otherwise)


def ancestors(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a linked node, innermost first."""
    current = parent(node)
    while current is not None:
        yield current
        current = parent(current)


def in_annotation(node: ast.AST) -> bool:
    """Whether a linked node is (part of) the annotation of a parameter, a variable or a result."""
    top = node
    while isinstance(around := parent(top), ast.Subscript | ast.Tuple | ast.List | ast.BinOp):
        top = around
    return top in (getattr(around, "annotation", None), getattr(around, "returns", None))


def _definition(body: Iterable[ast.stmt], scope: Scope, line: int, column: int) -> tuple[DefinitionNode, Scope] | None:
    for statement in body:
        if not statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            continue
        if isinstance(statement, DefinitionNode):
            if (statement.lineno, statement.col_offset) == (line, column):
                return statement, scope
            return _definition(statement.body, Scope.inside(statement, scope), line, column)
        found = _definition(inner_statements(statement), scope, line, column)
        if found is not None:
            return found
    return None


class _Walk:
    """Links and collects the nodes of statements on the hit lines, which are sorted."""

    def __init__(self, module: Module, hits: list[int]) -> None:
        self.hits = hits
        self.found: list[tuple[ast.AST, tuple[int, int]]] = []
        self._extent = (0, 0)  # of the innermost statement
        self._statements(module.tree.body, None, module.scope)

    def _statements(self, body: list[ast.stmt], around: ast.AST | None, scope: Scope) -> None:
        outside, hits = self._extent, self.hits
        for statement in body:
            first, last = _extent(statement)
            index = bisect.bisect_left(hits, first)
            if index < len(hits) and hits[index] <= last:
                self._extent = first, last
                self._link(statement, around, scope)
        self._extent = outside

    def _link(self, node: ast.AST, around: ast.AST | None, scope: Scope) -> None:
        self._mark(node, around, scope)
        kind = type(node)
        if kind in _WITHOUT_PARTS:  # half of all nodes
            return
        if isinstance(node, _OPENS_SCOPE):
            self._children(node, _HEADER, scope)  # evaluated in the scope around
            inner = Scope.inside(node, scope)
            if isinstance(node, ast.Lambda):
                self._link(node.body, node, inner)
            else:
                self._statements(node.body, node, inner)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node, scope)
        else:
            self._children(node, _PARTS[kind], scope)

    def _mark(self, node: ast.AST, around: ast.AST | None, scope: Scope) -> None:
        node.npuport_parent = around  # type: ignore[attr-defined]
        node.npuport_scope = scope  # type: ignore[attr-defined]
        self.found.append((node, self._extent))

    def _children(self, node: ast.AST, names: Iterable[str], scope: Scope) -> None:
        kept = vars(node)
        for name in names:
            value = kept.get(name)
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    self._statements(value, node, scope)
                else:
                    for item in value:
                        if isinstance(item, ast.AST):
                            self._link(item, node, scope)
            elif isinstance(value, ast.AST):
                self._link(value, node, scope)

    def _comprehension(self, node: ComprehensionNode, scope: Scope) -> None:
        inner = Scope.inside(node, scope)
        for index, generator in enumerate(node.generators):
            self._mark(generator, node, inner)
            # Python evaluates the first iterable outside the comprehension.
            self._link(generator.iter, generator, scope if index == 0 else inner)
            self._children(generator, ("target", "ifs"), inner)
        self._children(node, ("elt", "key", "value"), inner)


_HEADER = ("decorator_list", "type_params", "bases", "keywords", "args", "returns")
# Tuples, for isinstance() takes three times as long with a union.
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OPENS_SCOPE = (*_DEFINITIONS, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WITHOUT_PARTS = frozenset({ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global})
_NO_PARTS = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "conversion", "type_comment", "level"})


# The fields that may hold nodes of their own; contexts and operators are shared by the nodes of all trees.
_PARTS = {
    kind: tuple(name for name in kind._fields if name not in _NO_PARTS)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def _extent(statement: ast.stmt) -> tuple[int, int]:
    first = statement.lineno
    if isinstance(statement, _DEFINITIONS) and statement.decorator_list:
        first = min(first, *(decorator.lineno for decorator in statement.decorator_list))
    return first, statement.end_lineno or first
