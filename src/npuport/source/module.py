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
from npuport.source.text import LineIndex

LINKS = ("npuport_parent", "npuport_scope", "npuport_inner", "npuport_name", "npuport_flow")
"""What is kept on nodes: the node around, scope, scope opened, name that the resolver found, and dataflow."""


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
        return LineIndex(self.text)

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
        for node in self._linked:
            for link in LINKS:
                vars(node).pop(link, None)
        self._linked.clear()
        for scope in self.scopes:
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
            for node in self.nodes(self.lines.lines_with(name, rf"(?<!\w){re.escape(name)}(?!\w)"))
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
        outside = self._extent
        for statement in body:
            first, last = _extent(statement)
            index = bisect.bisect_left(self.hits, first)
            if index < len(self.hits) and self.hits[index] <= last:
                self._extent = first, last
                self._link(statement, around, scope)
        self._extent = outside

    def _link(self, node: ast.AST, around: ast.AST | None, scope: Scope) -> None:
        self._mark(node, around, scope)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            self._children(node, _HEADER, scope)  # evaluated in the scope around
            inner = Scope.inside(node, scope)
            if isinstance(node, ast.Lambda):
                self._link(node.body, node, inner)
            else:
                self._statements(node.body, node, inner)
        elif isinstance(node, ComprehensionNode):
            self._comprehension(node, scope)
        else:
            self._children(node, node._fields, scope)

    def _mark(self, node: ast.AST, around: ast.AST | None, scope: Scope) -> None:
        node.npuport_parent = around  # type: ignore[attr-defined]
        node.npuport_scope = scope  # type: ignore[attr-defined]
        self.found.append((node, self._extent))

    def _children(self, node: ast.AST, names: Iterable[str], scope: Scope) -> None:
        for name in names:
            value = getattr(node, name, None)
            if isinstance(value, list):
                if value and isinstance(value[0], ast.stmt):
                    self._statements(value, node, scope)
                else:
                    for item in value:
                        if isinstance(item, ast.AST):
                            self._link(item, node, scope)
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
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
_LEAVES = (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


def _extent(statement: ast.stmt) -> tuple[int, int]:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    return first, statement.end_lineno or statement.lineno
