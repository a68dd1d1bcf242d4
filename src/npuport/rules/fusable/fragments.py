"""Code cut out of a function: what computes one value, as a function of a few others, free of all other names."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.values import Value

_BUILTINS = {"float", "int", "len", "max", "min", "abs", "tuple", "list", "bool"}
_MODULES = ("torch.", "math.")


class Unfit(Exception):
    """Code that cannot be cut out, or not be replaced. The message says why, as the end of a sentence."""


class Fragment:
    """The code between ``inputs`` (values, with what is written for them) and what is asked for.

    ``body`` is the beginning of a function's body, one step a line, as far as it was asked for; ``used`` are the ids of
    the values computed in it. ``inline`` writes everything as one expression.
    """

    def __init__(self, inputs: Mapping[str, Value], flow: Flow, context: Context, inline: bool = False) -> None:
        self.body: list[str] = []
        self.used: set[int] = set()
        self._flow = flow
        self._context = context
        self._inline = inline
        self._known: dict[int, ast.expr] = {id(value): ast.Name(text) for text, value in inputs.items()}

    def text(self, value: Value) -> str:
        """An expression for a value, of the inputs and of the names that ``body`` gives.

        Raises:
            Unfit: it depends on something else.
        """
        return ast.unparse(self._expression(value))

    def _expression(self, value: Value) -> ast.expr:
        if id(value) not in self._known:
            found = self._made(value)
            self.used.add(id(value))
            if not (self._inline or isinstance(found, ast.Constant | ast.Name | ast.Attribute)):
                name = f"step{len(self.body)}"
                self.body.append(f"{name} = {ast.unparse(found)}")
                found = ast.Name(name)
            self._known[id(value)] = found
        return self._known[id(value)]

    def _made(self, value: Value) -> ast.expr:
        if value.op == "choice":
            if "test" not in value.named or len(value.inputs) != 2:
                raise Unfit("the code goes several ways")
            one, other = (self._expression(way) for way in value.inputs)
            return ast.IfExp(self._expression(value.named["test"]), one, other)
        if value.op in {"half", "part"} and "of" in value.named:
            assert isinstance(value.detail, tuple)
            return ast.Subscript(self._expression(value.named["of"]), ast.Constant(value.detail[0]))
        if value.op == "tuple" and value.node is None:
            return ast.Tuple([self._expression(one) for one in value.inputs])
        if value.node is None or value.op == "parameter":
            raise Unfit(f"it depends on {value.detail or 'what is not known'}")
        if value.op in {"name", "attribute"}:
            return self._name(value)
        return self._rebuilt(value.node)

    def _name(self, value: Value) -> ast.expr:
        assert isinstance(value.node, ast.expr)
        full = self._full_name(value.node)
        if full is not None:
            return full
        if value.op == "attribute" and value.first.op != "name":
            return ast.Attribute(self._expression(value.first), str(value.detail))
        raise Unfit(f"it depends on {ast.unparse(value.node)}")

    def _full_name(self, node: ast.expr) -> ast.expr | None:
        name = self._context.resolver.name(node, self._flow.scope)
        return _parsed(name) if name is not None and name.startswith(_MODULES) else None

    def _child(self, node: ast.expr) -> ast.expr:
        value = self._flow.value(node)
        if value is not None:
            return self._expression(value)
        if isinstance(node, ast.Name):
            if node.id in _BUILTINS:
                return node
            raise Unfit(f"it depends on {node.id}")
        return self._rebuilt(node)

    def _rebuilt(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.NamedExpr):
            return self._child(node.value)
        if isinstance(node, ast.Lambda | ast.Await | ast.Yield | ast.YieldFrom | ast.ListComp | ast.GeneratorExp):
            raise Unfit(f"it holds {ast.unparse(node)}")
        made = copy.copy(node)
        for name, part in ast.iter_fields(node):
            if isinstance(part, ast.expr):
                setattr(made, name, self._child(part))
            elif isinstance(part, list):
                setattr(made, name, [self._child(one) if isinstance(one, ast.expr) else one for one in part])
        return made

    def _call(self, node: ast.Call) -> ast.expr:
        arguments = [self._child(one) for one in node.args]
        named = [ast.keyword(one.arg, self._child(one.value)) for one in node.keywords]
        return ast.Call(self._called(node.func), arguments, named)

    def _called(self, function: ast.expr) -> ast.expr:
        if isinstance(function, ast.Name) and function.id in _BUILTINS:
            return function
        if isinstance(function, ast.Name | ast.Attribute):
            full = self._full_name(function)
            if full is not None:
                return full
        if isinstance(function, ast.Attribute) and self._flow.value(function.value) is not None:
            if function.attr.endswith("_"):
                raise Unfit(f"{function.attr} writes into a tensor")
            return ast.Attribute(self._child(function.value), function.attr)
        raise Unfit(f"it calls {ast.unparse(function)}")


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
