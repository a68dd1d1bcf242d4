"""Scopes of a Python module and what each binds. Bindings are collected when a scope is first asked, never before."""

from __future__ import annotations

import ast
import enum
import re
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.source.module import Module

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ComprehensionNode = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
DefinitionNode = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
ScopeNode = ast.Module | ast.ClassDef | FunctionNode | ComprehensionNode


class BindingKind(enum.Enum):
    """What gives a name its value."""

    IMPORT = "import"
    VALUE = "value"  # a plain assignment, whose expression is known
    PARAMETER = "parameter"
    DEFINITION = "definition"  # def or class
    OPAQUE = "opaque"  # loop variable, with-target, unpacking, augmented assignment, match capture, …


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that binds a name in ``scope``."""

    kind: BindingKind
    node: ast.AST  # the statement, argument or definition
    scope: Scope
    target: str = ""  # the dotted name an import binds; relative imports keep their leading dots
    value: ast.expr | None = None


class Scope:
    """A module, class, function, lambda or comprehension."""

    __slots__ = ("__dict__", "_module", "meanings", "node", "parent")

    def __init__(self, node: ScopeNode, parent: Scope | None, module: Module) -> None:
        self.node = node
        self.parent = parent
        self._module = weakref.ref(module)  # no cycle: a module's trees go as soon as nobody needs the module
        module.scopes.append(self)
        self.meanings: dict[str, set[Any] | None] = {}  # what the resolver found out about names, as seen from here

    @property
    def module(self) -> Module:
        module = self._module()
        assert module is not None, "whoever holds a scope holds its module"
        return module

    def forget(self) -> None:
        """Drop what was collected, and the way here from the tree; both come again when asked for."""
        self.__dict__.clear()
        self.meanings.clear()
        vars(self.node).pop("npuport_inner", None)

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def is_function(self) -> bool:
        return isinstance(self.node, FunctionNode)

    @cached_property
    def _collected(self) -> _Collector:
        collector = _Collector(self)
        collector.run()
        return collector

    @property
    def bindings(self) -> dict[str, list[Binding]]:
        return self._collected.bindings

    @property
    def star_imports(self) -> list[str]:
        """Modules whose names are all imported here (``from x import *``), dots kept."""
        return self._collected.stars

    @cached_property
    def assigned_on_self(self) -> dict[str, list[tuple[ast.expr | None, Scope]]]:
        """What the methods of a class assign to ``self.name``, with the method's scope; None where no plain value."""
        found: dict[str, list[tuple[ast.expr | None, Scope]]] = {}
        for method in self.node.body if isinstance(self.node, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                scope = Scope.inside(method, self)
                for name, value in _assigned_on_self(method):
                    found.setdefault(name, []).append((value, scope))
        return found

    @staticmethod
    def inside(node: ScopeNode, around: Scope) -> Scope:
        """The scope that a definition or comprehension inside ``around`` opens; always the same one."""
        known: Scope | None = getattr(node, "npuport_inner", None)
        if known is None:
            known = Scope(node, around, around.module)
            node.npuport_inner = known  # type: ignore[union-attr]
        return known

    def root(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def enclosing_class(self) -> Scope | None:
        """The class whose body holds the innermost method around this scope."""
        scope: Scope | None = self
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope

    def lookup(self, name: str) -> list[Binding]:
        """Bindings of ``name`` as seen from this scope by Python's rules; empty for builtins and unknown names."""
        scope: Scope | None = self
        innermost = True
        while scope is not None:
            if innermost or not scope.is_class:
                if name in scope._collected.global_names:
                    scope = scope.root()
                found = scope.bindings.get(name)
                if found:
                    return found
            innermost = False
            scope = scope.parent
        return []


# except* came with Python 3.11
_TRY: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))


_GLOBAL = re.compile(r"^[ \t]+global [ \t\w,]+;?[ \t]*(?:#.*)?\r?$", re.MULTILINE)


class _Collector:
    """Collects the bindings of one scope without entering the scopes inside it."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.bindings: dict[str, list[Binding]] = {}
        self.stars: list[str] = []
        self.global_names: set[str] = set()

    def run(self) -> None:
        node = self.scope.node
        if isinstance(node, FunctionNode):
            for argument in _arguments(node.args):
                self._add(argument.arg, BindingKind.PARAMETER, argument)
        if isinstance(node, ComprehensionNode):
            for generator in node.generators:
                self._opaque(generator.target, node)
        elif isinstance(node, ast.Lambda):
            self._walrus(node.body)
        else:
            self._statements(node.body)
        if isinstance(node, ast.Module) and _GLOBAL.search(self.scope.module.text):
            self._globals_of_functions(node)

    def _add(
        self, name: str, kind: BindingKind, node: ast.AST, target: str = "", value: ast.expr | None = None
    ) -> None:
        self.bindings.setdefault(name, []).append(Binding(kind, node, self.scope, target, value))

    def _opaque(self, target: ast.AST, node: ast.AST) -> None:
        for name in _stored_names(target):
            self._add(name, BindingKind.OPAQUE, node)

    def _walrus(self, expression: ast.expr | ast.stmt) -> None:
        if not self.scope.module.may_hold_walrus(expression):
            return
        for node in ast.walk(expression):
            if isinstance(node, ast.NamedExpr):
                self._add(node.target.id, BindingKind.VALUE, node, value=node.value)

    def _statements(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self._add(alias.asname, BindingKind.IMPORT, node, alias.name)
                else:
                    top = alias.name.partition(".")[0]
                    self._add(top, BindingKind.IMPORT, node, top)
        elif isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    self.stars.append(origin)
                else:
                    joint = "" if origin.endswith(".") or not origin else "."
                    self._add(alias.asname or alias.name, BindingKind.IMPORT, node, f"{origin}{joint}{alias.name}")
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value, node)
            self._walrus(node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, node.value, node)
        elif isinstance(node, ast.AugAssign):
            self._opaque(node.target, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._add(node.name, BindingKind.DEFINITION, node)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._opaque(node.target, node)
            self._statements(node.body)
            self._statements(node.orelse)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if item.optional_vars is not None:
                    self._opaque(item.optional_vars, node)
            self._statements(node.body)
        elif isinstance(node, ast.If | ast.While):
            self._walrus(node.test)
            self._statements(node.body)
            self._statements(node.orelse)
        elif isinstance(node, _TRY):
            self._statements(node.body)
            for handler in node.handlers:
                if handler.name:
                    self._add(handler.name, BindingKind.OPAQUE, handler)
                self._statements(handler.body)
            self._statements(node.orelse)
            self._statements(node.finalbody)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                for pattern in ast.walk(case.pattern):
                    captured = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                    if isinstance(captured, str):
                        self._add(captured, BindingKind.OPAQUE, case)
                self._statements(case.body)
        elif isinstance(node, ast.Global):
            self.global_names.update(node.names)
        else:
            self._walrus(node)

    def _assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self._add(target.id, BindingKind.VALUE, node, value=value)
        elif (
            isinstance(target, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(target.elts) == len(value.elts)
            and not any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        ):
            for part, part_value in zip(target.elts, value.elts, strict=True):
                self._assign(part, part_value, node)
        else:
            self._opaque(target, node)

    def _globals_of_functions(self, tree: ast.Module) -> None:
        """Names that functions assign under a ``global`` statement are bindings of the module."""
        for node in _nested(tree.body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = [part for part in _nested(node.body) if isinstance(part, ast.Global)]
                names = {name for part in inside for name in part.names}
                if names:
                    inner = _Collector(Scope(node, self.scope, self.scope.module))
                    inner._statements(node.body)
                    for name in names & inner.bindings.keys():
                        self.bindings.setdefault(name, []).extend(inner.bindings[name])


def _nested(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements in ``statements``, at every depth. No expression is entered, which makes it many times faster than
    a walk through all nodes."""
    for statement in statements:
        yield statement
        yield from _nested(inner_statements(statement))


def inner_statements(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of the blocks of one statement, not those inside these."""
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(statement, name, ())
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, ()):
            yield from part.body


def _assigned_on_self(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    targets: list[ast.expr]
    value: ast.expr | None
    for node in _nested(method.body):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets, value = [node.target], node.value if isinstance(node, ast.AnnAssign) else None
        else:
            continue
        for target in targets:
            owner = target.value if isinstance(target, ast.Attribute) else None
            if isinstance(target, ast.Attribute) and isinstance(owner, ast.Name) and owner.id in {"self", "cls"}:
                yield target.attr, value


def _stored_names(target: ast.AST) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    if arguments.vararg:
        yield arguments.vararg
    if arguments.kwarg:
        yield arguments.kwarg
