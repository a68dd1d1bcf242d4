"""What a Python expression means: the name it stands for (``names``), and the constants it can take."""

from __future__ import annotations

import ast
import string

from npuport.source.module import scope_of
from npuport.source.names import DEPTH, Definition, External, NameResolver
from npuport.source.outline import Defined
from npuport.source.scopes import Binding, BindingKind, Scope

HOLE = "\ufffc"  # stands for a part of a string that is not known


class Resolver(NameResolver):
    """Answers questions about expressions of the modules of one project."""

    def constants(self, node: ast.expr, scope: Scope) -> frozenset[object] | None:
        """Every constant ``node`` can be, or None when some of its values are not known.

        A string with unknown parts contains HOLE in their place: ``f"cuda:{i}"`` is ``"cuda:\\ufffc"``.
        """
        found = self._constants(node, scope_of(node, scope), DEPTH)
        return frozenset(found) if found is not None else None

    def _constants(self, node: ast.expr, scope: Scope, depth: int) -> set[object] | None:
        if depth <= 0:
            return None
        if isinstance(node, ast.Constant):
            return {node.value}
        if isinstance(node, ast.JoinedStr):
            return self._joined(list(node.values), scope, depth)
        if isinstance(node, ast.FormattedValue):
            return _as_text(self._constants(node.value, scope, depth - 1)) or {HOLE}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._added(node, scope, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return _percent(self._constants(node.left, scope, depth - 1))
        if isinstance(node, ast.IfExp):
            return self._either([node.body, node.orelse], scope, depth)
        if isinstance(node, ast.BoolOp):
            return self._either(node.values, scope, depth)
        if isinstance(node, ast.NamedExpr):
            return self._constants(node.value, scope, depth - 1)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._constants(node.operand, scope, depth - 1)
            return {-value for value in inner if isinstance(value, int | float)} if inner else None
        if isinstance(node, ast.Subscript):
            return self._element(node, scope, depth)
        if isinstance(node, ast.Call):
            return self._called_constants(node, scope, depth)
        if isinstance(node, ast.Name):
            return self._name_constants(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute_constants(node, scope, depth)
        return None

    def _either(self, nodes: list[ast.expr], scope: Scope, depth: int) -> set[object] | None:
        together: set[object] = set()
        for node in nodes:
            found = self._constants(node, scope, depth - 1)
            if found is None:
                return None
            together |= found
        return together

    def _joined(self, parts: list[ast.expr], scope: Scope, depth: int) -> set[object] | None:
        texts: set[str] = {""}
        for part in parts:
            options = _as_text(self._constants(part, scope, depth - 1)) or {HOLE}
            texts = {text + str(option) for text in texts for option in options}
            if len(texts) > 16:
                return None
        return set(texts)

    def _added(self, node: ast.BinOp, scope: Scope, depth: int) -> set[object] | None:
        left = self._constants(node.left, scope, depth - 1)
        right = self._constants(node.right, scope, depth - 1)
        if left is not None and all(isinstance(value, str) for value in left):
            return {f"{a}{b}" for a in left for b in (_as_text(right) or {HOLE})}
        if right is not None and all(isinstance(value, str) for value in right):
            return {f"{HOLE}{value}" for value in right}
        return None

    def _element(self, node: ast.Subscript, scope: Scope, depth: int) -> set[object] | None:
        """``{"device": "cuda"}["device"]`` through names."""
        keys = self._constants(node.slice, scope, depth - 1)
        if keys is None or len(keys) != 1:
            return None
        key = next(iter(keys))
        sources = list(self._values(node.value, scope, depth))
        if len(sources) != 1:
            return None
        container, inner = sources[0]
        if isinstance(container, ast.Dict):
            for name, value in zip(container.keys, container.values, strict=True):
                if isinstance(name, ast.Constant) and name.value == key:
                    return self._constants(value, inner, depth - 1)
        if isinstance(container, ast.List | ast.Tuple) and isinstance(key, int):
            known = -len(container.elts) <= key < len(container.elts)
            return self._constants(container.elts[key], inner, depth - 1) if known else None
        return None

    def _called_constants(self, node: ast.Call, scope: Scope, depth: int) -> set[object] | None:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "format":
            return _braces(self._constants(function.value, scope, depth - 1))
        name = self.name(function, scope)
        if name == "builtins.str" and len(node.args) == 1:
            return _as_text(self._constants(node.args[0], scope, depth - 1)) or {HOLE}
        if name in {"os.environ.get", "os.getenv"} and len(node.args) == 2:
            default = self._constants(node.args[1], scope, depth - 1)
            return {*default, HOLE} if default is not None else None
        return None

    def _name_constants(self, name: str, scope: Scope, depth: int) -> set[object] | None:
        bindings = scope.lookup(name)
        together: set[object] = set()
        for binding in bindings:
            found = self._binding_constants(binding, depth)
            if found is None:
                return None
            together |= found
        return together if bindings else None

    def _binding_constants(self, binding: Binding, depth: int) -> set[object] | None:
        if binding.kind is BindingKind.VALUE and binding.value is not None:
            return self._constants(binding.value, scope_of(binding.value, binding.scope), depth - 1)
        if binding.kind is BindingKind.IMPORT:
            located = self.project.locate(binding.target, binding.scope.module.path)
            if located is not None and located[1] and "." not in located[1]:
                return self._exported_constants(*located, depth - 1)
        return None

    def _exported_constants(self, path: str, name: str, depth: int) -> set[object] | None:
        """The constants of a name of another module, if possible without its tree."""
        outline = self.project.outline(path, name)
        exported = outline.exports.get(name) if outline is not None else None
        if exported is None or isinstance(exported, Defined) or depth <= 0:
            return None
        module = self.project.module(path)
        return self._name_constants(name, module.scope, depth) if module is not None else None

    def _attribute_constants(self, node: ast.Attribute, scope: Scope, depth: int) -> set[object] | None:
        if isinstance(node.value, ast.Name):
            if node.value.id in {"self", "cls"}:
                around = scope.enclosing_class()
                return self._class_constants(around, node.attr, depth) if around is not None else None
            argument = self._argparse_default(node.value, node.attr, scope, depth)
            if argument is not None:
                return argument
        made = self.instance_class(node.value, scope)
        if isinstance(made, Definition) and made.is_class:
            return self._class_constants(self._inside(made), node.attr, depth)
        meanings = self._meanings(node.value, scope, depth - 1)
        if meanings is not None and len(meanings) == 1:
            owner = next(iter(meanings))
            if isinstance(owner, External) and owner.name.startswith("<"):
                return self._exported_constants(owner.name[1:-1], node.attr, depth - 1)
            if isinstance(owner, Definition) and owner.is_class:
                return self._class_constants(self._inside(owner), node.attr, depth)
        return None

    def _class_constants(self, around: Scope, name: str, depth: int) -> set[object] | None:
        together: set[object] = set()
        seen = False
        for value, scope in self._class_values(around, name):
            found = self._constants(value, scope, depth - 1) if value is not None else None
            if found is None:
                return None
            together |= found
            seen = True
        return together if seen else None

    def _argparse_default(self, node: ast.Name, name: str, scope: Scope, depth: int) -> set[object] | None:
        """The default of ``args.name`` after ``args = parser.parse_args()``; HOLE stands for what the user may give."""
        parsed = any(
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in {"parse_args", "parse_known_args"}
            for value, _ in self._values(node, scope, depth)
        )
        if not parsed:
            return None
        for call in scope.module.add_argument_calls:
            if _destination(call) == name:
                for keyword in call.keywords:
                    if keyword.arg == "default":
                        found = self._constants(keyword.value, scope_of(call, scope.root()), depth - 1)
                        return {*found, HOLE} if found is not None else None
        return None


def _destination(call: ast.Call) -> str | None:
    """The attribute that argparse stores an ``add_argument`` call under."""
    for keyword in call.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    chosen = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    return chosen.lstrip("-").replace("-", "_") or None


def _as_text(values: set[object] | None) -> set[object] | None:
    return {str(value) for value in values} if values is not None else None


def _percent(values: set[object] | None) -> set[object] | None:
    """The strings a ``%`` format gives, unknown parts as HOLE."""
    if values is None or not all(isinstance(value, str) for value in values):
        return None
    parts = [str(value) for value in values]
    for mark in ("%d", "%s", "%i", "%r"):
        parts = [part.replace(mark, HOLE) for part in parts]
    return set(parts)


def _braces(values: set[object] | None) -> set[object] | None:
    """The strings ``str.format`` gives, unknown parts as HOLE."""
    if values is None or not all(isinstance(value, str) for value in values):
        return None
    texts: set[object] = set()
    for value in values:
        try:
            pieces = list(string.Formatter().parse(str(value)))
        except ValueError:
            return None
        texts.add("".join(text + (HOLE if field is not None else "") for text, field, _, _ in pieces))
    return texts
