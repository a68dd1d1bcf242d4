"""What one expression computes, given what the names in it stand for."""

from __future__ import annotations

import ast

from npuport.rules.base import Context
from npuport.rules.fusable.spellings import (
    may_be_operation,
    operation_by_name,
    operation_of_function,
    operation_of_member,
    operation_of_method,
    operation_of_object,
)
from npuport.rules.fusable.values import Value
from npuport.source.scopes import Scope

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
_TENSOR_LISTS = {"cat", "stack"}
_PARTS = {"chunk", "split", "unbind"}


class Evaluator:
    """Turns expressions into values; ``names`` is what names stand for at this point of the function."""

    def __init__(self, scope: Scope, context: Context) -> None:
        self.names: dict[str, Value] = {}
        self.values: list[Value] = []
        self.read: dict[int, Value] = {}  # by the id of each name and attribute that is read, what it stood for
        self._free: dict[tuple[int, str], Value] = {}  # names and attributes that the function does not assign
        self._scope = scope
        self._context = context

    # -- names -----------------------------------------------------------------------------------------------------

    def parameters(self, arguments: ast.arguments) -> None:
        """Give each parameter a value of its own."""
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in (*every, *(one for one in (arguments.vararg, arguments.kwarg) if one is not None)):
            self.names[argument.arg] = self._new("parameter", detail=argument.arg)

    def assign(self, targets: list[ast.expr], expression: ast.expr) -> None:
        """``a = b = expression``, ``a, b = expression``."""
        value = self.value(expression)
        for target in targets:
            self._bind(target, value)

    def augment(self, node: ast.AugAssign) -> None:
        """``a += expression``."""
        left = self._load(node.target)
        right = self.value(node.value)
        op = _BINARY.get(type(node.op), "other")
        self._bind(node.target, self._new(op, (left, right), _located(node)))

    def loop(self, node: ast.For | ast.AsyncFor) -> None:
        """``for target in iterable``."""
        self.value(node.iter)
        self.forget(node.target)

    def forget(self, target: ast.expr) -> None:
        """Nothing is known of what ``target`` is given."""
        self._bind(target, self._new("other"))

    def merged(self, ends: list[dict[str, Value]], test: Value | None = None) -> dict[str, Value]:
        """What names stand for after branches that end with ``ends``; of two, ``test`` chooses the first."""
        if len(ends) == 1:
            return ends[0]
        together: dict[str, Value] = {}
        for end in ends:
            for name, value in end.items():
                known = together.get(name)
                if known is None:
                    together[name] = value
                elif known is not value:
                    parts = (*known.inputs, value) if known.op == "choice" and known not in end.values() else None
                    together[name] = self._new("choice", parts or (known, value))
                    if test is not None and parts is None:
                        together[name].named = {"test": test}
        return together

    def _bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Attribute):
            path = _path(target)
            if path is not None:
                self.names[path] = value
        elif isinstance(target, ast.Tuple | ast.List):
            whole = value.inputs if value.op == "tuple" and len(value.inputs) == len(target.elts) else None
            for index, element in enumerate(target.elts):
                part = whole[index] if whole is not None else self._part(value, index, len(target.elts), element)
                self._bind(element, part)
        elif isinstance(target, ast.Starred):
            self.forget(target.value)
        elif isinstance(target, ast.Subscript):
            self._written_into(target, value)

    def _written_into(self, target: ast.Subscript, value: Value) -> None:
        """``x[…] = value`` makes another tensor of the name."""
        if isinstance(target.value, ast.Name):
            self.names[target.value.id] = self._new("other", (self._load(target.value), value))

    def _load(self, node: ast.expr) -> Value:
        """A name or attribute; what is not assigned here is one and the same value at every use."""
        found = self.read[id(node)] = self._loaded(node)
        return found

    def _loaded(self, node: ast.expr) -> Value:
        path = _path(node)
        if path is not None and path in self.names:
            return self.names[path]
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return self._shared("attribute", (owner,), node, node.attr)
        if isinstance(node, ast.Name):
            return self._shared("name", (), node, node.id)
        return self.value(node)

    def _shared(self, op: str, inputs: tuple[Value, ...], node: ast.expr, detail: str) -> Value:
        key = (id(inputs[0]) if inputs else 0, detail)
        if key not in self._free:
            self._free[key] = self._new(op, inputs, node, detail)
        return self._free[key]

    # -- expressions -----------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        """What ``node`` computes."""
        if isinstance(node, ast.Name):
            return self._load(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Constant):
            return self._new("constant", (), node, node.value)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            op = _BINARY.get(type(node.op), "other")
            return self._new(op, (self.value(node.left), self.value(node.right)), node)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Tuple | ast.List):
            return self._new("tuple", tuple(self.value(element) for element in node.elts), node)
        if isinstance(node, ast.IfExp):
            test = self.value(node.test)
            made = self._new("choice", (self.value(node.body), self.value(node.orelse)), node)
            made.named = {"test": test}
            return made
        if isinstance(node, ast.NamedExpr):
            found = self.value(node.value)
            self._bind(node.target, found)
            return found
        if isinstance(node, ast.Starred):
            return self._new("other", (self.value(node.value),), node)
        if isinstance(node, ast.Compare | ast.BoolOp | ast.Dict | ast.JoinedStr | ast.Await):
            inputs = [self.value(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            return self._new("other", tuple(inputs), node)
        return self._new("other", (), node)

    def _new(
        self, op: str, inputs: tuple[Value, ...] = (), node: ast.expr | None = None, detail: object = None
    ) -> Value:
        made = Value(op, inputs, node, detail)
        self.values.append(made)
        for one in inputs:
            one.uses.append(made)
        return made

    def _attribute(self, node: ast.Attribute) -> Value:
        if node.attr in {"T", "mT", "H", "mH"} and _path(node) not in self.names:
            return self._new("layout", (self.value(node.value),), node, "transpose")
        return self._load(node)

    def _unary(self, node: ast.UnaryOp) -> Value:
        inner = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            if isinstance(inner.constant, int | float):
                return self._new("constant", (), node, -inner.constant)
            return self._new("neg", (inner,), node)
        return self._new("not" if isinstance(node.op, ast.Invert | ast.Not) else "other", (inner,), node)

    def _subscript(self, node: ast.Subscript) -> Value:
        inner = self.value(node.value)
        index = node.slice
        last = index.elts[-1] if isinstance(index, ast.Tuple) and index.elts else index
        if isinstance(last, ast.Slice):
            for bound in (last.lower, last.upper, last.step):
                if bound is not None and not isinstance(bound, ast.Constant):
                    self.value(bound)
            return self._slice(inner, last, node)
        if isinstance(index, ast.Constant) and isinstance(index.value, int):
            if inner.op == "tuple" and -len(inner.inputs) <= index.value < len(inner.inputs):
                return inner.inputs[index.value]
            return self._part(inner, index.value, None, node)
        if isinstance(index, ast.Tuple) and isinstance(last, ast.Constant) and isinstance(last.value, int):
            return self._new("part", (inner,), node, f"[…, {last.value}]")
        if not isinstance(index, ast.Tuple):
            self.value(index)
        return self._new("layout", (inner,), node, "index")

    def _slice(self, inner: Value, last: ast.Slice, node: ast.Subscript) -> Value:
        """``x[…, :d]`` and ``x[…, d:]`` are halves if both are taken; ``x[…, 0::2]`` and ``x[…, 1::2]`` are pairs."""
        step = last.step.value if isinstance(last.step, ast.Constant) else None
        lower = last.lower.value if isinstance(last.lower, ast.Constant) else None
        if step == 2 and last.upper is None and (last.lower is None or lower in {0, 1}):
            return self._new("pair", (inner,), node, lower or 0)
        if last.step is None and (last.lower is None or lower == 0) and last.upper is not None:
            return self._new("half", (inner,), node, (0, ast.unparse(last.upper)))
        if last.step is None and last.lower is not None:
            if last.upper is None:
                return self._new("half", (inner,), node, (1, ast.unparse(last.lower)))
            width = ast.unparse(last.lower)  # x[…, d : 2 * d]
            if ast.unparse(last.upper) in {f"2 * {width}", f"{width} * 2"}:
                return self._new("half", (inner,), node, (1, width))
        return self._new("layout", (inner,), node, "slice")

    def _part(self, value: Value, index: int, count: int | None, node: ast.expr | None) -> Value:
        """Element ``index`` of what gives several: half of a tensor where ``chunk`` made two."""
        if value.op == "chunk" and (count == 2 or (count is None and value.detail == 2)):
            part = self._new("half", (value.first,), node, (index % 2, "chunk"))
        elif value.op in _PARTS and count == 2:
            part = self._new("half", (value.first,), node, (index % 2, value.op))
        else:
            return self._new("part", (value,), node, index)
        part.named = {"of": value}
        return part

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        op, owner = self._operation_called(node.func)
        arguments = [self.value(argument) for argument in node.args]
        if owner is not None:
            arguments.insert(0, self.value(owner))
        named = {keyword.arg or "": self.value(keyword.value) for keyword in node.keywords}
        if op is not None and not arguments and named:
            arguments = [next(iter(named.values()))]
        if op is None or not arguments:
            return self._unknown_call(node, arguments, named)
        made = self._operation(op, node, arguments, named)
        function = node.func
        in_place = isinstance(function, ast.Attribute) and function.attr.endswith("_")
        if in_place and isinstance(owner, ast.Name):
            self.names[owner.id] = made
        return made

    def _operation_called(self, function: ast.expr) -> tuple[str | None, ast.expr | None]:
        """The operation that a call of ``function`` is, and the tensor whose method it is."""
        if isinstance(function, ast.Call):  # nn.Softmax(dim=-1)(x)
            return operation_of_object(function, self._scope, self._context), None
        if not isinstance(function, ast.Name | ast.Attribute):
            return None, None
        name = self._qualified(function)
        if name is not None and not name.startswith("torch.Tensor."):
            return operation_of_function(name), None
        if isinstance(function, ast.Name):
            return operation_by_name(function.id), None
        owner = function.value
        if isinstance(owner, ast.Name) and owner.id in {"self", "cls"}:
            return operation_of_member(function.attr, self._scope, self._context), None
        if isinstance(owner, ast.Name) and owner.id not in self.names:  # a module of the project
            return operation_by_name(function.attr), None
        method = operation_of_method(function.attr)
        return (method, owner) if method is not None else (operation_by_name(function.attr), None)

    def _qualified(self, function: ast.Name | ast.Attribute) -> str | None:
        """The qualified name of a function that may be one of those known; to ask for each would take long."""
        if isinstance(function, ast.Attribute):
            known = may_be_operation(function.attr) and _path(function) is not None
        else:
            bound = () if function.id in self.names else self._scope.lookup(function.id)
            known = any(may_be_operation(one.target.rpartition(".")[2] or function.id) for one in bound)
        return self._context.resolver.name(function, self._scope) if known else None

    def _unknown_call(self, node: ast.Call, arguments: list[Value], named: dict[str, Value]) -> Value:
        function = node.func
        if isinstance(function, ast.Attribute) and self._is_local(function.value):
            arguments.insert(0, self.value(function.value))
        made = self._new("call", (*arguments, *named.values()), node, _path(function))
        made.named = named
        return made

    def _is_local(self, owner: ast.expr) -> bool:
        """Whether the owner of a method is computed in this function."""
        return owner.id in self.names and owner.id != "self" if isinstance(owner, ast.Name) else _path(owner) is None

    def _operation(self, op: str, node: ast.Call, arguments: list[Value], named: dict[str, Value]) -> Value:
        if op in _TENSOR_LISTS and arguments and arguments[0].op == "tuple":
            arguments = list(arguments[0].inputs)
        inputs = tuple(arguments)
        detail: object = None
        if op == "einsum":
            detail = next((one.constant for one in inputs if isinstance(one.constant, str)), None)
            listed = inputs[-1].inputs if inputs and inputs[-1].op == "tuple" else inputs
            inputs = tuple(one for one in listed if one.op != "constant")
        elif op == "chunk":
            parts = inputs[1] if len(inputs) > 1 else named.get("chunks")
            detail = parts.constant if parts is not None else None
        elif op in {"masked_fill", "where"}:
            inputs = (*inputs, *(named[key] for key in ("mask", "value", "input", "other") if key in named))
        elif op == "dropout" and len(inputs) > 1:
            named = {"p": inputs[1], **named}
            inputs = inputs[:1]
        made = self._new(op, inputs, node, detail)
        made.named = named
        for key, one in named.items():
            if one not in inputs and key in {"other", "mat2", "batch1", "batch2", "tensor2"}:
                made.inputs = (*made.inputs, one)
                one.uses.append(made)
        return made


def _path(node: ast.expr) -> str | None:
    """``self.attn.scale`` as text; None for anything but names and attributes of them."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _located(node: ast.AugAssign) -> ast.expr:
    """An expression at the place of ``a += b``."""
    made = ast.BinOp(node.target, node.op, node.value)
    return ast.copy_location(made, node)
