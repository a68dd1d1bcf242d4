"""Code cut out of a function: what computes one value, as a function of a few others, free of all other names."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow, flow_of
from npuport.rules.fusable.values import Value
from npuport.source.module import Module

_BUILTINS = {"float", "int", "len", "max", "min", "abs", "tuple", "list", "bool"}
_PLAIN = {f"torch.nn.{name}" for name in ("GELU", "Sigmoid", "SiLU", "Softmax", "Tanh")}  # modules without a state
_FRESH = {"add", "sub", "mul", "div", "pow", "square", "mean", "matmul", "neg", "sqrt", "rsqrt", "where", "masked_fill"}
_MODULES = ("torch.", "math.", "einops.", "numpy.")


class Unfit(Exception):
    """Code that cannot be cut out, or not be replaced. The message says why, as the end of a sentence."""


class Fragment:
    """The code between ``inputs`` (values, with what is written for them) and what is asked for.

    ``body`` is the beginning of a function's body, one step a line, as far as it was asked for; ``used`` are the ids of
    the values computed in it. ``inline`` writes everything as one expression. ``assumed`` names, by the id of a value,
    the function of one tensor that computes it.
    """

    def __init__(
        self,
        inputs: Mapping[str, Value],
        flow: Flow,
        context: Context,
        *,
        inline: bool = False,
        assumed: Mapping[int, str] | None = None,
    ) -> None:
        self.body: list[str] = []
        self.used: set[int] = set()
        self._flow = flow
        self._context = context
        self._inline = inline
        self._assumed = assumed or {}
        self._inputs = {id(value) for value in inputs.values()}
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
        if id(value) in self._assumed:
            return ast.Call(_parsed(self._assumed[id(value)]), [self._expression(value.first)], [])
        if value.op == "choice":
            if "test" not in value.named or len(value.inputs) != 2:
                raise Unfit("the code goes several ways")
            one, other = (self._expression(way) for way in value.inputs)
            return ast.IfExp(self._expression(value.named["test"]), one, other)
        if value.op in {"half", "part"} and "of" in value.named:
            assert isinstance(value.detail, tuple)
            return ast.Subscript(self._expression(value.named["of"]), ast.Constant(value.detail[0]))
        if value.op == "part" and isinstance(value.detail, int) and not isinstance(value.node, ast.Subscript):
            return ast.Subscript(self._expression(value.first), ast.Constant(value.detail))  # a, b = x.shape
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
        if value.op == "attribute" and (id(value.first) in self._known or value.first.op not in {"name", "parameter"}):
            return ast.Attribute(self._expression(value.first), str(value.detail))
        raise Unfit(f"it depends on {ast.unparse(value.node)}")

    def _full_name(self, node: ast.expr) -> ast.expr | None:
        name = self._context.resolver.name(node, self._flow.scope)
        return _parsed(name) if name is not None and name.startswith(_MODULES) else None

    def _child(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            return ast.Starred(self._child(node.value))
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
        own = self._context.resolver.definition(node.func, self._flow.scope)
        if own is not None and isinstance(own.node, ast.FunctionDef):
            return self._inlined(node, own.node, own.module)
        arguments = [self._child(one) for one in node.args]
        named = [ast.keyword(one.arg, self._child(one.value)) for one in node.keywords]
        return ast.Call(self._called(node.func), arguments, named)

    def _inlined(self, call: ast.Call, function: ast.FunctionDef, module: Module) -> ast.expr:
        """What a function of the project's own gives, of its arguments: its body takes the place of the call."""
        last = function.body[-1]
        returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
        if function.decorator_list or len(returns) != 1 or returns[0] is not last or returns[0].value is None:
            raise Unfit(f"it calls {function.name}, which does not end in one plain return")
        context = Context(module, self._context.project, self._context.settings)
        flow = flow_of(function, context)
        inner = Fragment({}, flow, context, inline=self._inline)
        inner.body = self.body
        arguments = self._arguments(call, function)
        inner._known = {id(flow.parameter(name)): self._child(value) for name, value in arguments.items()}
        result = flow.value(returns[0].value)
        if result is None:
            raise Unfit(f"it calls {function.name}")
        return inner._expression(result)

    def _arguments(self, call: ast.Call, function: ast.FunctionDef) -> dict[str, ast.expr]:
        """What each parameter of a function is given; a default is a constant."""
        taken = function.args
        names = [one.arg for one in (*taken.posonlyargs, *taken.args)]
        defaults = dict(zip(names[len(names) - len(taken.defaults) :], taken.defaults, strict=True))
        defaults |= {one.arg: value for one, value in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if value}
        given = {
            **defaults,
            **dict(zip(names, call.args, strict=False)),
            **{k.arg or "": k.value for k in call.keywords},
        }
        every = {*names, *(one.arg for one in taken.kwonlyargs)}
        plain = not (taken.vararg or taken.kwarg or any(isinstance(one, ast.Starred) for one in call.args))
        if not plain or given.keys() != every or len(call.args) > len(names):
            raise Unfit(f"the arguments of {function.name} are not plain")
        return given

    def _called(self, function: ast.expr) -> ast.expr:
        if isinstance(function, ast.Call) and self._context.resolver.name(function.func, self._flow.scope) in _PLAIN:
            return self._call(function)
        if isinstance(function, ast.Name) and function.id in _BUILTINS:
            return function
        if isinstance(function, ast.Name | ast.Attribute):
            full = self._full_name(function)
            if full is not None:
                return full
        if isinstance(function, ast.Attribute) and self._flow.value(function.value) is not None:
            owner = self._flow.value(function.value)
            name = function.attr
            if name.endswith("_"):
                if owner is None or id(owner) in self._inputs or owner.op not in _FRESH or len(owner.uses) != 1:
                    raise Unfit(f"{name} writes into a tensor")
                name = name.removesuffix("_")  # into one that nobody else sees
            return ast.Attribute(self._child(function.value), name)
        raise Unfit(f"it calls {ast.unparse(function)}")


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
