"""How a string is used: as a device or backend, in a comparison with one, as text, or otherwise.

The spelling of a literal says little: 'cuda' may be a device, a key, an option's name or part of a message. Its place
in the program says what it is.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from npuport.rules.base import Context
from npuport.source.module import parent
from npuport.source.names import External
from npuport.source.scopes import Binding


class Use(enum.Enum):
    """What the program does with a string."""

    TAKEN = "reaches a parameter or a variable that holds such a value"
    COMPARED = "compared with such a value"
    COMPARED_UNKNOWN = "compared with something unknown"
    KEY = "key"
    TEXT = "text"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Kind:
    """A kind of value that strings stand for, and how code shows that it means one."""

    names: re.Pattern[str]  # variables, parameters, keys, options and functions that hold one by convention
    parameters: frozenset[tuple[str, int]]  # (qualified name, position) that take one; keywords are told by ``names``
    methods: frozenset[str]  # methods whose first argument is one when it is a string
    makers: frozenset[str]  # classes and functions whose call gives one

    def named(self, name: str) -> bool:
        """Whether a variable, parameter, key or function of this name holds one by convention."""
        return self.names.match(name) is not None

    def named_by(self, node: ast.expr) -> bool:
        """The same for a literal that is such a name, as in ``getattr(args, "device")``."""
        return isinstance(node, ast.Constant) and isinstance(node.value, str) and self.named(node.value.lstrip("-"))


# Functions of torch.cuda and torch.npu by the place of the device they take (signatures of torch 2.13.0).
_OF_A_DEVICE = {
    0: "set_device device device_of synchronize current_stream default_stream Stream can_device_access_peer "
    "get_device_name get_device_properties get_device_capability mem_get_info memory_allocated memory_reserved "
    "memory_cached max_memory_allocated max_memory_reserved max_memory_cached memory_stats memory_summary "
    "memory_stats_as_nested_dict reset_peak_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated "
    "reset_max_memory_cached get_rng_state utilization",
    1: "set_rng_state set_per_process_memory_fraction ExternalStream caching_allocator_alloc",
}
DEVICE = Kind(
    names=re.compile(
        r"(?i)^(?:.*_)?(?:device|devices|dev|device_?type|device_?str|device_?string|device_?id|map_?location"
        r"|accelerator|pin_memory_device)\d*$"
    ),
    parameters=frozenset(
        {
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
    )
    | {
        (f"{module}.{name}", place)
        for place, names in _OF_A_DEVICE.items()
        for name in names.split()
        for module in ("torch.cuda", "torch.npu", "torch_npu.npu")
    },
    methods=frozenset({"to", "cuda", "npu", "to_empty"}),
    makers=frozenset({"torch.device"}),
)
BACKEND = Kind(
    names=re.compile(r"(?i)^(?:.*_)?(?:backend(?:_name)?|backends)\d*$"),
    parameters=frozenset(
        {
            ("torch.distributed.init_process_group", 0),
            ("torch.distributed.distributed_c10d.init_process_group", 0),
            ("torch.distributed.new_group", 2),
            ("torch.distributed.Backend", 0),
            ("torch.distributed.is_backend_available", 0),
            ("deepspeed.init_distributed", 0),
        }
    ),
    methods=frozenset(),
    makers=frozenset({"torch.distributed.get_backend", "torch.distributed.Backend"}),
)

_LOOKUPS = {"get", "pop", "setdefault", "getenv", "getattr"}
_LITERAL_TYPES = {"typing.Literal", "typing_extensions.Literal"}
_KEYED = {"get", "pop", "setdefault"}  # methods whose first argument is a key
_TEXT_CALLS = {
    "print", "debug", "info", "warning", "warn", "error", "critical", "exception", "log", "write", "format_exc", "join",
    "set_description", "set_postfix", "fail", "skip", "exit",
}  # fmt: skip
_TEXT_KEYWORDS = {"help", "description", "epilog", "metavar", "reason", "msg", "message", "title", "label", "name"}


def is_like(node: ast.expr, context: Context, kind: Kind) -> bool:
    """Whether an expression is one, its type or its text: ``x.device.type``, ``str(device)``, ``get_backend()``."""
    if isinstance(node, ast.Name):
        return kind.named(node.id) or is_made(node, context, kind)
    if isinstance(node, ast.Attribute):
        return kind.named(node.attr) or (node.attr == "type" and is_like(node.value, context, kind))
    if isinstance(node, ast.Subscript):
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return kind.named(key.value)
        return is_like(node.value, context, kind)
    if isinstance(node, ast.Call):
        if context.name_of(node.func) in kind.makers:
            return True
        if isinstance(node.func, ast.Name) and node.func.id in {"str", "getattr"} and node.args:
            return any(is_like(argument, context, kind) or kind.named_by(argument) for argument in node.args[:2])
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in {"split", "lower", "upper", "strip", "partition"}:
                return is_like(node.func.value, context, kind)
            if node.func.attr in _LOOKUPS and node.args and kind.named_by(node.args[0]):
                return True
        return kind.named(getattr(node.func, "attr", "") or getattr(node.func, "id", ""))
    return False


def is_made(node: ast.expr, context: Context, kind: Kind) -> bool:
    """Whether a variable holds what a maker of ``kind`` gave, such as a torch.device."""
    made = context.resolver.instance_class(node, context.scope(node))
    return isinstance(made, External) and made.name in kind.makers


def use_of(node: ast.expr, context: Context, kind: Kind = DEVICE, depth: int = 3) -> Use:
    """What the program does with the value of ``node``, a linked expression that may stand for a ``kind``."""
    current: ast.AST = node
    around = parent(current)
    while around is not None:
        use = _step(current, around, context, kind, depth)
        if use is not None:
            return use
        current, around = around, parent(around)
    return Use.UNKNOWN


def _step(node: ast.AST, around: ast.AST, context: Context, kind: Kind, depth: int) -> Use | None:
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
        return _in_dict(node, around, kind)
    if isinstance(around, ast.Compare):
        return _in_comparison(node, around, context, kind, depth)
    if isinstance(around, ast.Attribute):
        return _method_of(around)
    if isinstance(around, ast.Call):
        return _in_call(node, around, context, kind, depth)
    if isinstance(around, ast.keyword):
        return _in_keyword(around, context, kind)
    if isinstance(around, ast.Subscript):
        if node is not around.slice:
            return Use.UNKNOWN
        return None if context.name_of(around.value) in _LITERAL_TYPES else Use.KEY
    if isinstance(around, ast.arg):  # def run(device: Literal["cuda", "cpu"])
        return Use.TAKEN if kind.named(around.arg) else Use.UNKNOWN
    if isinstance(around, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return _assigned(around, context, kind, depth)
    if isinstance(around, ast.arguments):
        return _default(node, around, context, kind, depth)
    if isinstance(around, ast.Return):
        return _returned(around, context, kind)
    if isinstance(around, ast.For | ast.comprehension):
        return _held_by(around.target, context, kind, depth) if node is around.iter else Use.UNKNOWN
    if isinstance(around, ast.Expr | ast.Raise | ast.Assert):
        return Use.TEXT
    if isinstance(around, ast.MatchValue):
        return _matched(around, context, kind)
    if isinstance(around, ast.Lambda):
        return Use.UNKNOWN
    return Use.UNKNOWN if isinstance(around, ast.stmt) else None


def _in_dict(node: ast.AST, around: ast.Dict, kind: Kind) -> Use | None:
    for key, value in zip(around.keys, around.values, strict=True):
        if key is node:
            return Use.KEY
        if value is node and isinstance(key, ast.Constant) and isinstance(key.value, str):
            if kind.named(key.value):
                return Use.TAKEN
            if key.value.startswith("cuda"):  # a map_location table: {"cuda:0": "cuda:1"}
                return Use.TAKEN
    return None


def _in_comparison(node: ast.AST, around: ast.Compare, context: Context, kind: Kind, depth: int) -> Use:
    others = [part for part in (around.left, *around.comparators) if part is not node]
    known = any(is_like(part, context, kind) or _used_as_one(part, context, kind, depth) for part in others)
    return Use.COMPARED if known else Use.COMPARED_UNKNOWN


def _used_as_one(node: ast.expr, context: Context, kind: Kind, depth: int) -> bool:
    """Whether ``node`` is a variable, or its text, that elsewhere in the module is used as such a value."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        node = node.args[0]
    return isinstance(node, ast.Name) and depth > 0 and _held_by(node, context, kind, depth) is Use.TAKEN


def _method_of(around: ast.Attribute) -> Use | None:
    """``"cuda:{}".format(i)`` passes through; other methods of a string do not."""
    call = parent(around)
    if around.attr == "format" and isinstance(call, ast.Call) and call.func is around:
        return None
    return Use.UNKNOWN


def _in_call(node: ast.AST, around: ast.Call, context: Context, kind: Kind, depth: int) -> Use | None:
    function = around.func
    if node is function:  # the result of "…".format(…)
        return None
    position = around.args.index(node) if isinstance(node, ast.expr) and node in around.args else -1
    method = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if position == 0 and method in kind.methods and isinstance(function, ast.Attribute):
        return Use.TAKEN
    if isinstance(parent(around), ast.Raise):
        return Use.TEXT
    if position == 0 and method in _KEYED and isinstance(function, ast.Attribute):
        return Use.KEY
    if method == "startswith" and isinstance(function, ast.Attribute):
        owner = function.value
        known = is_like(owner, context, kind) or _used_as_one(owner, context, kind, depth)
        return Use.COMPARED if known else Use.COMPARED_UNKNOWN
    if method in _LOOKUPS and position >= 1 and any(kind.named_by(arg) for arg in around.args[:position]):
        return Use.TAKEN
    if method == "parametrize" and position == 1 and kind.named_by(around.args[0]):
        return Use.TAKEN
    name = context.name_of(function)
    if name == "builtins.str":
        return None
    if name in {"builtins.getattr", "builtins.hasattr", "builtins.setattr"}:
        return Use.KEY
    if (name, position) in kind.parameters:
        return Use.TAKEN
    own = context.definition_of(function)
    if own is not None and position >= 0:
        parameter = _parameter(own.node, position)
        if parameter is not None and kind.named(parameter):
            return Use.TAKEN
    if method in _TEXT_CALLS or name in {f"builtins.{text}" for text in _TEXT_CALLS}:
        return Use.TEXT
    return Use.UNKNOWN


def _parameter(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, position: int) -> str | None:
    """The name of a positional parameter of a function, or of the constructor of a class."""
    if isinstance(node, ast.ClassDef):
        made = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"]
        if not made:
            fields = [
                item.target.id
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            ]
            return fields[position] if position < len(fields) else None
        arguments = [*made[0].args.posonlyargs, *made[0].args.args][1:]
    else:
        arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[position].arg if position < len(arguments) else None


def _in_keyword(around: ast.keyword, context: Context, kind: Kind) -> Use:
    call = parent(around)
    if around.arg is None or not isinstance(call, ast.Call):
        return Use.UNKNOWN
    method = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if method == "add_argument" and around.arg in {"default", "choices", "const"}:
        return Use.TAKEN if any(kind.named_by(flag) for flag in _flags(call)) else Use.UNKNOWN
    if kind.named(around.arg) or (around.arg == "type" and context.name_of(call.func) in kind.makers):
        return Use.TAKEN
    if around.arg in {"default", "default_value"}:  # dataclasses.field, click.option, typer.Option, …
        return _field(call, context, kind)
    return Use.TEXT if around.arg in _TEXT_KEYWORDS else Use.UNKNOWN


def _flags(call: ast.Call) -> list[ast.expr]:
    flags: list[ast.expr] = [
        ast.Constant(argument.value.lstrip("-").replace("-", "_"))
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return flags + [keyword.value for keyword in call.keywords if keyword.arg == "dest"]


def _field(call: ast.Call, context: Context, kind: Kind) -> Use:
    if any(kind.named_by(flag) for flag in _flags(call)):
        return Use.TAKEN
    around = parent(call)
    if isinstance(around, ast.Assign | ast.AnnAssign):
        return _assigned(around, context, kind, 0)
    return Use.UNKNOWN


def _assigned(around: ast.Assign | ast.AnnAssign | ast.AugAssign, context: Context, kind: Kind, depth: int) -> Use:
    targets = around.targets if isinstance(around, ast.Assign) else [around.target]
    names = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    uses = [_held_by(target, context, kind, depth) for target in names]
    return Use.TAKEN if Use.TAKEN in uses else Use.UNKNOWN


def _held_by(target: ast.expr, context: Context, kind: Kind, depth: int) -> Use:
    """The use of a value that ``target`` is given."""
    if is_like(target, context, kind):
        return Use.TAKEN
    if depth > 0 and isinstance(target, ast.Name):
        bound = context.scope(target).lookup(target.id)
        if bound and _reaches(target.id, lambda other: other.scope is bound[0].scope, context, kind, depth):
            return Use.TAKEN
    return Use.UNKNOWN


def _reaches(name: str, same: Callable[[Binding], bool], context: Context, kind: Kind, depth: int) -> bool:
    """Whether a variable is used as such a value anywhere in its module; ``same`` knows its bindings."""
    for use in context.module.uses(name):
        bound = context.scope(use).lookup(name)
        if bound and same(bound[0]) and use_of(use, context, kind, depth - 1) is Use.TAKEN:
            return True
    return False


def _default(node: ast.AST, around: ast.arguments, context: Context, kind: Kind, depth: int) -> Use:
    positional = [*around.posonlyargs, *around.args]
    pairs = list(zip(positional[len(positional) - len(around.defaults) :], around.defaults, strict=True))
    pairs += [(a, d) for a, d in zip(around.kwonlyargs, around.kw_defaults, strict=True) if d is not None]
    for argument, default in pairs:
        if default is node:
            if kind.named(argument.arg):
                return Use.TAKEN
            if depth > 0 and _reaches(argument.arg, partial(_binds, argument), context, kind, depth):
                return Use.TAKEN
    return Use.UNKNOWN


def _binds(argument: ast.arg, binding: Binding) -> bool:
    return binding.node is argument


def _returned(around: ast.Return, context: Context, kind: Kind) -> Use:
    function = context.scope(around).node
    name = getattr(function, "name", "")
    return Use.TAKEN if kind.named(name) else Use.UNKNOWN


def _matched(around: ast.MatchValue, context: Context, kind: Kind) -> Use:
    outer = parent(around)
    while outer is not None and not isinstance(outer, ast.Match):
        if isinstance(outer, ast.MatchMapping):
            keys = [key.value for key in outer.keys if isinstance(key, ast.Constant)]
            if any(isinstance(key, str) and kind.named(key) for key in keys):
                return Use.COMPARED
        outer = parent(outer)
    if isinstance(outer, ast.Match) and is_like(outer.subject, context, kind):
        return Use.COMPARED
    return Use.COMPARED_UNKNOWN
