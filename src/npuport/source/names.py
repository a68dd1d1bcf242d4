"""What a Python name means.

Names are followed through imports, aliases, plain assignments, ``getattr`` with a known string, class attributes and
the project's own modules. Where Python could give a name two meanings, the answer is "unknown": a wrong one costs more.
"""

from __future__ import annotations

import ast
import builtins
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from npuport.source.module import Module, scope_of
from npuport.source.outline import Defined, Imported
from npuport.source.scopes import Binding, BindingKind, DefinitionNode, Scope

if TYPE_CHECKING:
    from npuport.source.project import Project

DEPTH = 24  # longer chains of aliases are taken as unknown; also ends cycles


@dataclass(frozen=True, slots=True)
class Definition:
    """A class or function of the project itself, by its place.

    It holds no tree: what was learnt about a large project would keep all of it in memory.
    """

    path: str
    line: int
    column: int
    is_class: bool
    _load: Callable[[], Module] = field(compare=False, repr=False)

    @property
    def module(self) -> Module:
        """The module, parsed again where it has been let go."""
        return self._load()

    @property
    def node(self) -> DefinitionNode:
        return self.module.definition(self.line, self.column)[0]

    @property
    def scope(self) -> Scope:
        """The scope that holds the definition."""
        return self.module.definition(self.line, self.column)[1]


@dataclass(frozen=True, slots=True)
class External:
    """A dotted name outside the project, such as ``torch.cuda.synchronize``."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value; strings may contain HOLE where a part is not known."""

    value: object


Meaning = Definition | External | Constant


class NameResolver(ABC):
    """Answers questions about expressions of the modules of one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._members: dict[tuple[str, str], set[Meaning] | None] = {}

    def forget(self) -> None:
        """Forget what was learnt of the names of modules."""
        self._members.clear()

    def name(self, node: ast.expr, scope: Scope) -> str | None:
        """The dotted name outside the project that ``node`` stands for, or None if it has none, or several."""
        kept = vars(node)
        if "npuport_name" not in kept:  # several rules ask the same of a node
            found = self._only(node, scope)
            kept["npuport_name"] = found.name if isinstance(found, External) else None
        name: str | None = kept["npuport_name"]
        return name

    def definition(self, node: ast.expr, scope: Scope) -> Definition | None:
        """The class or function of the project that ``node`` names."""
        found = self._only(node, scope)
        return found if isinstance(found, Definition) else None

    def instance_class(self, node: ast.expr, scope: Scope) -> Definition | External | None:
        """The class of the object ``node``: ``x = Class(...)``, ``Class(...)``, ``self``, ``def f(x: Class)``."""
        for call in self._values(node, scope, DEPTH):
            if isinstance(call[0], ast.Call):
                made = self._only(call[0].func, call[1])
                if isinstance(made, External) or (isinstance(made, Definition) and made.is_class):
                    return made
        if isinstance(node, ast.Name) and node.id in {"self", "cls"}:
            around = scope_of(node, scope).enclosing_class()
            if around is not None and around.parent is not None and isinstance(around.node, ast.ClassDef):
                return self._definition(around.node, around.module)
        annotated = self._annotated_class(node, scope)
        return annotated if isinstance(annotated, Definition | External) else None

    @abstractmethod
    def _constants(self, node: ast.expr, scope: Scope, depth: int) -> set[object] | None:
        """Every constant ``node`` can be, or None; ``getattr`` and ``import_module`` need it."""

    def _only(self, node: ast.expr, scope: Scope) -> Meaning | None:
        meanings = self._meanings(node, scope_of(node, scope), DEPTH)
        if meanings is None:
            return None
        # `try: import x … except ImportError: x = None` still means x.
        real = {found for found in meanings if not (isinstance(found, Constant) and found.value in (None, False))}
        return next(iter(real)) if len(real) == 1 else None

    def _meanings(self, node: ast.expr, scope: Scope, depth: int) -> set[Meaning] | None:
        """Every meaning ``node`` can have; None when one of them is unknown."""
        if depth <= 0:
            return None
        if isinstance(node, ast.Name):
            return self._name_meanings(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute_meanings(node, scope, depth)
        if isinstance(node, ast.Call):
            return self._call_meanings(node, scope, depth)
        if isinstance(node, ast.Constant):
            return {Constant(node.value)}
        if isinstance(node, ast.IfExp):
            return self._union([node.body, node.orelse], scope, depth)
        if isinstance(node, ast.NamedExpr):
            return self._meanings(node.value, scope, depth - 1)
        return None

    def _union(self, nodes: list[ast.expr], scope: Scope, depth: int) -> set[Meaning] | None:
        together: set[Meaning] = set()
        for node in nodes:
            found = self._meanings(node, scope, depth - 1)
            if found is None:
                return None
            together |= found
        return together

    def _name_meanings(self, name: str, scope: Scope, depth: int) -> set[Meaning] | None:
        if name not in scope.meanings:
            scope.meanings[name] = None  # a cycle of aliases ends here
            scope.meanings[name] = self._found_meanings(name, scope, depth)
        return scope.meanings[name]

    def _found_meanings(self, name: str, scope: Scope, depth: int) -> set[Meaning] | None:
        bindings = scope.lookup(name)
        if not bindings:
            return self._unbound(name, scope.root().star_imports, scope.module.path, depth)
        together: set[Meaning] = set()
        for binding in bindings:
            found = self._binding_meanings(binding, depth)
            if found is None:
                return None
            together |= found
        return together

    def _unbound(self, name: str, stars: Sequence[str], importer: str, depth: int) -> set[Meaning] | None:
        for origin in stars:
            located = self.project.locate(origin, importer)
            if located is not None and not located[1]:
                found = self._member(located[0], name, depth - 1)
                if found and not any(isinstance(one, External) and one.name.startswith("builtins.") for one in found):
                    return found
        return {External(f"builtins.{name}")} if hasattr(builtins, name) else None

    def _binding_meanings(self, binding: Binding, depth: int) -> set[Meaning] | None:
        if binding.kind is BindingKind.IMPORT:
            return self._imported(binding.target, binding.scope.module.path, depth)
        if binding.kind is BindingKind.VALUE and binding.value is not None:
            return self._meanings(binding.value, scope_of(binding.value, binding.scope), depth - 1)
        if binding.kind is BindingKind.DEFINITION:
            assert isinstance(binding.node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            return {self._definition(binding.node, binding.scope.module)}
        return None

    def _imported(self, target: str, importer: str, depth: int) -> set[Meaning] | None:
        """What an imported dotted name means: a name of the project's own modules, or an outside name."""
        if depth <= 0:
            return None
        located = self.project.locate(target, importer)
        if located is None:
            return None if target.startswith(".") else {External(target)}
        path, rest = located
        if not rest:
            return {External(f"<{path}>")}
        return self._member(path, rest, depth - 1)

    def _member(self, path: str, dotted: str, depth: int) -> set[Meaning] | None:
        """What ``dotted`` means inside a module of the project."""
        key = (path, dotted)
        if key not in self._members:
            self._members[key] = None  # an import cycle ends here
            first, _, rest = dotted.partition(".")
            found = self._exported(path, first, depth)
            for part in rest.split(".") if rest else ():
                found = self._attributes(found, part, depth)
            self._members[key] = found
        return self._members[key]

    def _exported(self, path: str, name: str, depth: int) -> set[Meaning] | None:
        """What a module of the project calls ``name``, if possible without its tree."""
        outline = self.project.outline(path, name)
        if outline is None:
            return None
        exported = outline.exports.get(name)
        if exported is None:
            return self._unbound(name, outline.stars, path, depth)
        if isinstance(exported, Imported):
            return self._imported(exported.target, path, depth)
        if isinstance(exported, Defined):
            load = self._loader(path, None)
            return {Definition(path, exported.line, exported.column, exported.is_class, load)}
        module = self.project.module(path)
        return self._name_meanings(name, module.scope, depth) if module is not None else None

    def _definition(self, node: DefinitionNode, module: Module) -> Definition:
        load = self._loader(module.path, module)
        return Definition(module.path, node.lineno, node.col_offset, isinstance(node, ast.ClassDef), load)

    def _loader(self, path: str, module: Module | None) -> Callable[[], Module]:
        """Gives the module while it is there, and then the project's one at its path."""
        project = self.project
        kept = weakref.ref(module) if module is not None else None

        def load() -> Module:
            there = kept() if kept is not None else None
            found = there if there is not None and not there.released else project.module(path)
            assert found is not None, "it has been parsed before"
            return found

        return load

    @staticmethod
    def _inside(made: Definition) -> Scope:
        """The scope that the body of a class or function opens."""
        node, scope = made.module.definition(made.line, made.column)
        return Scope.inside(node, scope)

    def _attribute_meanings(self, node: ast.Attribute, scope: Scope, depth: int) -> set[Meaning] | None:
        if isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}:
            around = scope.enclosing_class()
            if around is not None:
                return self._class_attribute(around, node.attr, depth)
        return self._attributes(self._meanings(node.value, scope, depth - 1), node.attr, depth)

    def _attributes(self, meanings: set[Meaning] | None, name: str, depth: int) -> set[Meaning] | None:
        if meanings is None:
            return None
        together: set[Meaning] = set()
        for meaning in meanings:
            found: set[Meaning] | None
            if isinstance(meaning, External) and meaning.name.startswith("<"):
                found = self._module_attribute(meaning.name[1:-1], name, depth - 1)
            elif isinstance(meaning, External):
                found = {External(f"{meaning.name}.{name}")}
            elif isinstance(meaning, Definition) and meaning.is_class:
                found = self._class_attribute(self._inside(meaning), name, depth - 1)
            elif isinstance(meaning, Constant) and meaning.value is None:
                continue
            else:
                found = None
            if found is None:
                return None
            together |= found
        return together or None

    def _module_attribute(self, path: str, name: str, depth: int) -> set[Meaning] | None:
        found = self._member(path, name, depth)
        if found is None:
            inner = self.project.submodule(path, name)
            found = {External(f"<{inner}>")} if inner is not None else None
        return found

    def _class_attribute(self, around: Scope, name: str, depth: int) -> set[Meaning] | None:
        together: set[Meaning] = set()
        for value, scope in self._class_values(around, name):
            found = self._meanings(value, scope, depth - 1) if value is not None else None
            if found is None:
                return None
            together |= found
        for binding in around.bindings.get(name, []):
            if binding.kind is BindingKind.DEFINITION:
                found = self._binding_meanings(binding, depth)
                together |= found or set()
        return together or None

    def _class_values(self, around: Scope, name: str) -> Iterator[tuple[ast.expr | None, Scope]]:
        """Every expression assigned to the class attribute, or to ``self.name`` in a method; None where not plain."""
        for binding in around.bindings.get(name, []):
            if binding.kind is BindingKind.VALUE:
                yield binding.value, binding.scope
            elif binding.kind is not BindingKind.DEFINITION:
                yield None, around
        yield from around.assigned_on_self.get(name, ())

    def _call_meanings(self, node: ast.Call, scope: Scope, depth: int) -> set[Meaning] | None:
        function = self._meanings(node.func, scope, depth - 1)
        if function is None or len(function) != 1:
            return None
        called = next(iter(function))
        if not isinstance(called, External):
            return None
        if called.name == "builtins.getattr" and len(node.args) >= 2:
            names = self._constants(node.args[1], scope, depth - 1)
            if names is not None and len(names) == 1:
                name = next(iter(names))
                if isinstance(name, str) and name.isidentifier():
                    return self._attributes(self._meanings(node.args[0], scope, depth - 1), name, depth)
        if called.name in {"importlib.import_module", "builtins.__import__"} and node.args:
            names = self._constants(node.args[0], scope, depth - 1)
            if names is not None and len(names) == 1:
                name = next(iter(names))
                if isinstance(name, str) and not name.startswith("."):
                    return self._imported(name, scope.module.path, depth - 1)
        return None

    def _values(self, node: ast.expr, scope: Scope, depth: int) -> Iterator[tuple[ast.expr, Scope]]:
        """The expressions a name was assigned from, one step; the node itself when it is no name."""
        if isinstance(node, ast.Name):
            for binding in scope_of(node, scope).lookup(node.id):
                if binding.kind is BindingKind.VALUE and binding.value is not None:
                    yield binding.value, binding.scope
        elif depth > 0:
            yield node, scope_of(node, scope)

    def _annotated_class(self, node: ast.expr, scope: Scope) -> Meaning | None:
        """The class of a parameter ``config: Config``."""
        if isinstance(node, ast.Name):
            for binding in scope_of(node, scope).lookup(node.id):
                annotation = getattr(binding.node, "annotation", None)
                if binding.kind is BindingKind.PARAMETER and isinstance(annotation, ast.expr):
                    return self._only(annotation, binding.scope)
        return None
