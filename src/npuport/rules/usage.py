"""How a string is used: as a device, in a comparison with a device, as text, or otherwise.

The spelling of a literal says little: 'cuda' may be a device, a key, an option's name or part of a message. Its place
in the program says what it is.
"""

from __future__ import annotations

import ast
import enum
import re

from npuport.rules.base import Context
from npuport.source.module import parent
from npuport.source.resolver import External


class Use(enum.Enum):
    """What the program does with a string."""

    DEVICE = "device"  # reaches a parameter or a variable that holds a device
    COMPARED = "compared with a device"
    COMPARED_UNKNOWN = "compared with something unknown"
    KEY = "key"
    TEXT = "text"
    UNKNOWN = "unknown"


# Names that hold a device by everybody's convention.
_DEVICE_NAME = re.compile(
    r"(?i)^(?:.*_)?(?:device|devices|dev|device_?type|device_?str|device_?string|device_?id|map_?location|accelerator)\d*$"
)
# (qualified name, position) of parameters that take a device; keywords are told by their name.
_DEVICE_PARAMETERS = {
    ("torch.device", 0),
    ("torch.autocast", 0),
    ("torch.amp.autocast", 0),
    ("torch.amp.autocast_mode.autocast", 0),
    ("torch.amp.GradScaler", 0),
    ("torch.set_default_device", 0),
    ("torch.Generator", 0),
    ("torch.Stream", 0),
    ("torch.Event", 0),
    ("torch.load", 1),
    ("torch.jit.load", 1),
    ("torch.is_autocast_enabled", 0),
    ("torch.get_autocast_dtype", 0),
    ("torch.set_autocast_enabled", 0),
    ("torch.set_autocast_dtype", 0),
    ("torch.get_device_module", 0),
    ("torch.amp.is_autocast_available", 0),
    ("torch.distributed.device_mesh.init_device_mesh", 0),
    ("torch.distributed.init_device_mesh", 0),
    ("torch.distributed.device_mesh.DeviceMesh", 0),
    ("torch.distributed.DeviceMesh", 0),
}
_DEVICE_METHODS = {"to", "cuda", "npu", "to_empty"}  # whose first argument is a device when it is a string
_LOOKUPS = {"get", "pop", "setdefault", "getenv", "getattr"}
_KEYED = {"get", "pop", "setdefault"}  # methods whose first argument is a key
_TEXT_CALLS = {
    "print", "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "write", "format_exc", "join",
    "set_description", "set_postfix", "fail", "skip", "exit",
}  # fmt: skip
_TEXT_KEYWORDS = {"help", "description", "epilog", "metavar", "reason", "msg", "message", "title", "label", "name"}


def is_device_name(name: str) -> bool:
    """Whether a variable, parameter, key or function of this name holds a device by convention."""
    return _DEVICE_NAME.match(name) is not None


def is_device_like(node: ast.expr, context: Context) -> bool:
    """Whether an expression is a device, its type or its text: ``x.device.type``, ``str(device)``, ``args.device``."""
    if isinstance(node, ast.Name):
        return is_device_name(node.id) or _is_device_object(node, context)
    if isinstance(node, ast.Attribute):
        return is_device_name(node.attr) or (node.attr == "type" and is_device_like(node.value, context))
    if isinstance(node, ast.Subscript):
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return is_device_name(key.value)
        return is_device_like(node.value, context)
    if isinstance(node, ast.Call):
        if context.name_of(node.func) == "torch.device":
            return True
        if isinstance(node.func, ast.Name) and node.func.id in {"str", "getattr"} and node.args:
            return any(is_device_like(argument, context) or _names_device(argument) for argument in node.args[:2])
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in {"split", "lower", "strip", "partition"}:
                return is_device_like(node.func.value, context)
            return bool(node.func.attr in _LOOKUPS and node.args and _names_device(node.args[0]))
    return False


def _is_device_object(node: ast.expr, context: Context) -> bool:
    made = context.resolver.instance_class(node, context.scope(node))
    return isinstance(made, External) and made.name == "torch.device"


def use_of(node: ast.expr, context: Context, depth: int = 3) -> Use:
    """What the program does with the value of ``node``, a linked expression."""
    current: ast.AST = node
    around = parent(current)
    while around is not None:
        use = _step(current, around, context, depth)
        if use is not None:
            return use
        current, around = around, parent(around)
    return Use.UNKNOWN


def _step(node: ast.AST, around: ast.AST, context: Context, depth: int) -> Use | None:
    """The use that ``around`` makes of its part ``node``; None when the value just passes through."""
    if isinstance(around, ast.IfExp):
        return Use.UNKNOWN if node is around.test else None
    if isinstance(around, ast.BoolOp | ast.FormattedValue | ast.Starred | ast.NamedExpr):
        return None
    if isinstance(around, ast.JoinedStr):
        return None if around.values and around.values[0] is node else Use.TEXT
    if isinstance(around, ast.BinOp):
        return None if node is around.left else Use.UNKNOWN
    if isinstance(around, ast.List | ast.Tuple | ast.Set):
        return None
    if isinstance(around, ast.Dict):
        return _in_dict(node, around)
    if isinstance(around, ast.Compare):
        return _in_comparison(node, around, context)
    if isinstance(around, ast.Attribute):
        return _method_of(around)
    if isinstance(around, ast.Call):
        return _in_call(node, around, context)
    if isinstance(around, ast.keyword):
        return _in_keyword(around, context)
    if isinstance(around, ast.Subscript):
        return Use.KEY if node is around.slice else Use.UNKNOWN
    if isinstance(around, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return _assigned(around, context, depth)
    if isinstance(around, ast.arguments):
        return _default(node, around)
    if isinstance(around, ast.Return):
        return _returned(around, context)
    if isinstance(around, ast.For | ast.comprehension):
        target = around.target
        return Use.DEVICE if isinstance(target, ast.Name) and is_device_name(target.id) else Use.UNKNOWN
    if isinstance(around, ast.Expr | ast.Raise | ast.Assert):
        return Use.TEXT
    if isinstance(around, ast.MatchValue):
        return _matched(around, context)
    if isinstance(around, ast.Lambda):
        return Use.UNKNOWN
    return Use.UNKNOWN if isinstance(around, ast.stmt) else None


def _names_device(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and is_device_name(node.value.lstrip("-"))


def _in_dict(node: ast.AST, around: ast.Dict) -> Use | None:
    for key, value in zip(around.keys, around.values, strict=True):
        if key is node:
            return Use.KEY
        if value is node and isinstance(key, ast.Constant) and isinstance(key.value, str):
            if is_device_name(key.value):
                return Use.DEVICE
            if key.value.startswith("cuda"):  # a map_location table: {"cuda:0": "cuda:1"}
                return Use.DEVICE
    return None


def _in_comparison(node: ast.AST, around: ast.Compare, context: Context) -> Use:
    others = [part for part in (around.left, *around.comparators) if part is not node]
    if any(is_device_like(part, context) for part in others):
        return Use.COMPARED
    return Use.COMPARED_UNKNOWN


def _method_of(around: ast.Attribute) -> Use | None:
    """``"cuda:{}".format(i)`` passes through; other methods of a string do not."""
    call = parent(around)
    if around.attr == "format" and isinstance(call, ast.Call) and call.func is around:
        return None
    return Use.UNKNOWN


def _in_call(node: ast.AST, around: ast.Call, context: Context) -> Use | None:
    function = around.func
    if node is function:  # the result of "…".format(…)
        return None
    position = around.args.index(node) if isinstance(node, ast.expr) and node in around.args else -1
    method = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if position == 0 and method in _DEVICE_METHODS and isinstance(function, ast.Attribute):
        return Use.DEVICE
    if isinstance(parent(around), ast.Raise):
        return Use.TEXT
    if position == 0 and method in _KEYED and isinstance(function, ast.Attribute):
        return Use.KEY
    if method == "startswith" and isinstance(function, ast.Attribute):
        return Use.COMPARED if is_device_like(function.value, context) else Use.COMPARED_UNKNOWN
    if method in _LOOKUPS and position >= 1 and any(_names_device(arg) for arg in around.args[:position]):
        return Use.DEVICE
    if method == "parametrize" and position == 1 and _names_device(around.args[0]):
        return Use.DEVICE
    name = context.name_of(function)
    if name == "builtins.str":
        return None
    if name in {"builtins.getattr", "builtins.hasattr", "builtins.setattr"}:
        return Use.KEY
    if (name, position) in _DEVICE_PARAMETERS:
        return Use.DEVICE
    own = context.definition_of(function)
    if own is not None and position >= 0:
        parameter = _parameter(own.node, position)
        if parameter is not None and is_device_name(parameter):
            return Use.DEVICE
    if method in _TEXT_CALLS or name in {f"builtins.{text}" for text in _TEXT_CALLS}:
        return Use.TEXT
    return Use.UNKNOWN


def _parameter(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, position: int) -> str | None:
    """The name of a positional parameter of a function, or of the constructor of a class."""
    if isinstance(node, ast.ClassDef):
        made = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
        if not made:
            fields = [item.target.id for item in node.body if _is_field(item)]  # type: ignore[attr-defined]
            return fields[position] if position < len(fields) else None
        arguments = [*made[0].args.posonlyargs, *made[0].args.args][1:]
    else:
        arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[position].arg if position < len(arguments) else None


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def _in_keyword(around: ast.keyword, context: Context) -> Use:
    call = parent(around)
    if around.arg is None or not isinstance(call, ast.Call):
        return Use.UNKNOWN
    method = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if method == "add_argument" and around.arg in {"default", "choices", "const"}:
        return Use.DEVICE if any(_names_device(flag) for flag in _flags(call)) else Use.UNKNOWN
    if is_device_name(around.arg) or around.arg == "pin_memory_device":
        return Use.DEVICE
    if around.arg in {"default", "default_value"}:  # dataclasses.field, click.option, typer.Option, …
        return _field(call, context)
    return Use.TEXT if around.arg in _TEXT_KEYWORDS else Use.UNKNOWN


def _flags(call: ast.Call) -> list[ast.expr]:
    flags: list[ast.expr] = [
        ast.Constant(argument.value.lstrip("-").replace("-", "_"))
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return flags + [keyword.value for keyword in call.keywords if keyword.arg == "dest"]


def _field(call: ast.Call, context: Context) -> Use:
    if any(_names_device(flag) for flag in _flags(call)):
        return Use.DEVICE
    around = parent(call)
    if isinstance(around, ast.Assign | ast.AnnAssign):
        return _assigned(around, context, 0)
    return Use.UNKNOWN


def _assigned(around: ast.Assign | ast.AnnAssign | ast.AugAssign, context: Context, depth: int) -> Use:
    targets = around.targets if isinstance(around, ast.Assign) else [around.target]
    names = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    for target in names:
        if is_device_like(target, context):
            return Use.DEVICE
    if depth > 0:
        for target in names:
            if isinstance(target, ast.Name) and _reaches_device(target, context, depth):
                return Use.DEVICE
    return Use.UNKNOWN


def _reaches_device(target: ast.Name, context: Context, depth: int) -> bool:
    """Whether a variable is used as a device anywhere in its module."""
    binding = context.scope(target).lookup(target.id)
    if not binding:
        return False
    for use in context.module.uses(target.id):
        found = context.scope(use).lookup(target.id)
        if found and found[0].scope is binding[0].scope and use_of(use, context, depth - 1) is Use.DEVICE:
            return True
    return False


def _default(node: ast.AST, around: ast.arguments) -> Use:
    positional = [*around.posonlyargs, *around.args]
    pairs = list(zip(positional[len(positional) - len(around.defaults) :], around.defaults, strict=True))
    pairs += [(a, d) for a, d in zip(around.kwonlyargs, around.kw_defaults, strict=True) if d is not None]
    for argument, default in pairs:
        if default is node:
            return Use.DEVICE if is_device_name(argument.arg) else Use.UNKNOWN
    return Use.UNKNOWN


def _returned(around: ast.Return, context: Context) -> Use:
    function = context.scope(around).node
    name = getattr(function, "name", "")
    return Use.DEVICE if is_device_name(name) else Use.UNKNOWN


def _matched(around: ast.MatchValue, context: Context) -> Use:
    outer = parent(around)
    while outer is not None and not isinstance(outer, ast.Match):
        if isinstance(outer, ast.MatchMapping):
            keys = [key.value for key in outer.keys if isinstance(key, ast.Constant)]
            if any(isinstance(key, str) and is_device_name(key) for key in keys):
                return Use.COMPARED
        outer = parent(outer)
    if isinstance(outer, ast.Match) and is_device_like(outer.subject, context):
        return Use.COMPARED
    return Use.COMPARED_UNKNOWN
