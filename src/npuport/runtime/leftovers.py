"""What conversion of source leaves to run time, met where it is used.

A device that comes from a command line, a name of torch.cuda fetched with getattr, a CUDA function without a
counterpart: source shows that something of the kind is used, but not what. In the syntax tree of a converted module
such places call ``npuport.runtime.on_npu``. Lines stay where they are, and code that spells its device pays nothing.
"""

from __future__ import annotations

import ast
import re
from typing import TypeVar

from npuport.rules.base import Context
from npuport.rules.settings import Settings
from npuport.rules.usage import BACKEND, DEVICE, Kind, is_made
from npuport.source.module import Module
from npuport.source.project import Project

HELPERS = "__npuport__"
"""The name under which a converted module holds ``npuport.runtime.on_npu``."""

_WORD = re.compile(r"(?:cuda|npu)(?::\d*)?|nccl|hccl")
_Node = TypeVar("_Node", bound=ast.expr)
_METHODS = DEVICE.methods | {"pin_memory", "is_pinned"}
_FACADES = {
    "torch.cuda": "cuda",
    "torch.npu.get_device_properties": "cuda.get_device_properties",  # CUDA's have a capability
    "torch_npu.npu.get_device_properties": "cuda.get_device_properties",
    "torch.version.cuda": "cuda.VERSION",
    "torch.backends.cudnn": "cuda.cudnn",
    "torch._C._cuda_getDeviceCount": "cuda.device_count",
}
_PARAMETERS = DEVICE.parameters | BACKEND.parameters
_TAKING = sorted({name.rpartition(".")[2] for name, _ in _PARAMETERS} | _METHODS | {"set_default_tensor_type"})
# Lines that can hold any of it.
_PLACES = re.compile(
    rf"cuda|cudnn|nccl|device|map_location|memory_format|\b(?:dev|npu|hccl|double|accelerator|backends?|{'|'.join(_TAKING)})\b"
)


def meet(module: Module, project: Project, settings: Settings) -> tuple[ast.Module, list[tuple[int, str]]]:
    """The tree of a converted module with calls at what only run time shows: their lines, and what they call.

    The tree of ``module`` is used up.
    """
    meeting = _Meeting(Context(module, project, settings))
    lines = _lines(module, _PLACES)
    aliases = _aliases(module.nodes(lines))
    if aliases:
        lines |= _lines(module, re.compile(rf"\b(?:{'|'.join(aliases)})\b"))
    for node in module.nodes(lines):
        meeting.look_at(node)
    if meeting.called:
        _Replacing(meeting.instead).visit(module.tree)
        _import_helpers(module.tree)
    return ast.fix_missing_locations(module.tree), meeting.called


def _lines(module: Module, pattern: re.Pattern[str]) -> set[int]:
    return {module.lines.position(found.start())[0] for found in pattern.finditer(module.text)}


def _aliases(nodes: list[ast.AST]) -> list[str]:
    """Names under which a module imports torch.cuda or what is in it."""
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module is not None)
    named = [alias for node in imports if f"{node.module}.".startswith("torch.") for alias in node.names]
    named += [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names if alias.asname]
    return sorted({re.escape(alias.asname or alias.name) for alias in named if alias.name != "*"})


class _Meeting:
    """Looks at the linked nodes of one module, outer ones first, and changes its tree."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.called: list[tuple[int, str]] = []  # line, and the name in ``on_npu``
        self.instead: dict[int, ast.expr] = {}  # what stands for a node, by the node's id

    def look_at(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Compare) and not self.context.has_npu_branches:
            self._compare(node)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            self._name(node)

    # -- calls -----------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> None:
        name = self.context.name_of(node.func)
        if isinstance(node.func, ast.Attribute) and self._method(node, node.func):
            return
        for kind, helper in ((DEVICE, "device"), (BACKEND, "backend")):
            for place, argument in enumerate(node.args):
                if _takes(kind, name, node.func, place) and self._is_open(argument, kind):
                    node.args[place] = self._call_of(helper, argument)
            for keyword in node.keywords:
                if keyword.arg is not None and kind.named(keyword.arg) and self._is_open(keyword.value, kind):
                    keyword.value = self._call_of(helper, keyword.value)
        for keyword in node.keywords:
            if keyword.arg == "memory_format":
                keyword.value = self._call_of("memory_format", keyword.value)
        if name == "torch.set_default_tensor_type":
            node.func = self._helper("set_default_tensor_type", node.func)

    def _is_open(self, node: ast.expr, kind: Kind) -> bool:
        return _is_open(node) and not (isinstance(node, ast.Name | ast.Attribute) and is_made(node, self.context, kind))

    def _method(self, node: ast.Call, method: ast.Attribute) -> bool:
        """Whether the call is one of a method that has a function of its own here."""
        to_double = method.attr == "to" and len(node.args) == 1 and self._is_double(node.args[0])
        if node.keywords:
            return False
        if (method.attr == "double" and not node.args) or to_double:
            node.args, node.func = [method.value], self._helper("double", method)
        elif method.attr == "startswith" and node.args and not self.context.has_npu_branches and _is_word(node.args[0]):
            node.args, node.func = [method.value, *node.args], self._helper("starts", method)
        else:
            return False
        return True

    def _is_double(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Attribute) and self.context.name_of(node) in ("torch.float64", "torch.double")

    # -- comparisons -----------------------------------------------------------------------------------------------

    def _compare(self, node: ast.Compare) -> None:
        if len(node.ops) != 1:
            return
        (operator,), (right,) = node.ops, node.comparators
        if isinstance(operator, ast.Eq | ast.NotEq) and (_is_word(node.left) or _is_word(right)):
            node.left, node.comparators = self._word(node.left), [self._word(right)]
        elif not isinstance(operator, ast.In | ast.NotIn):
            return
        elif isinstance(right, ast.List | ast.Tuple | ast.Set):
            if any(map(_is_word, right.elts)):
                node.left = self._word(node.left)
                right.elts = [self._word(each) for each in right.elts]
        elif _is_word(node.left):
            held: ast.expr = self._call_of("holds", node.left, right)
            self.instead[id(node)] = held if isinstance(operator, ast.In) else _at(ast.UnaryOp(ast.Not(), held), node)

    def _word(self, node: ast.expr) -> ast.expr:
        of_device = isinstance(node, ast.Attribute) and node.attr == "type"  # of a torch.device, which is the NPU's
        return node if of_device or not _is_open(node) else self._call_of("word", node)

    # -- names -----------------------------------------------------------------------------------------------------

    def _name(self, node: ast.Attribute | ast.Name) -> None:
        path = _facade(self.context.name_of(node), whole=isinstance(node, ast.Attribute))
        if path is not None:
            self.instead[id(node)] = self._helper(path, node)

    # -- new nodes -------------------------------------------------------------------------------------------------

    def _call_of(self, helper: str, *arguments: ast.expr) -> ast.Call:
        return _at(ast.Call(self._helper(helper, arguments[0]), list(arguments), []), arguments[0])

    def _helper(self, path: str, at: ast.expr) -> ast.expr:
        self.called.append((at.lineno, path))
        found: ast.expr = _at(ast.Name(HELPERS, ast.Load()), at)
        for part in path.split("."):
            found = _at(ast.Attribute(found, part, ast.Load()), at)
        return found


class _Replacing(ast.NodeTransformer):
    def __init__(self, instead: dict[int, ast.expr]) -> None:
        self.instead = instead

    def visit(self, node: ast.AST) -> ast.AST:
        new = self.instead.pop(id(node), None)
        changed: ast.AST = self.generic_visit(node if new is None else new)
        return changed


def _at(node: _Node, place: ast.expr) -> _Node:
    return ast.copy_location(node, place)


def _takes(kind: Kind, name: str | None, function: ast.expr, place: int) -> bool:
    """Whether the argument at ``place`` is one of ``kind``."""
    if name is not None and (name, place) in kind.parameters:
        return True
    return kind is DEVICE and place == 0 and isinstance(function, ast.Attribute) and function.attr in _METHODS


def _is_open(node: ast.expr) -> bool:
    """Whether source does not show the value; or shows one of CUDA that conversion was not sure of."""
    return not isinstance(node, ast.Constant) or (isinstance(node.value, str) and _names_cuda(node.value))


def _is_word(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _WORD.fullmatch(node.value) is not None


def _names_cuda(text: str) -> bool:
    return _WORD.fullmatch(text) is not None and text.startswith(("cuda", "nccl"))


def _facade(name: str | None, *, whole: bool) -> str | None:
    """The path in ``on_npu`` that stands for a name of CUDA; ``whole``: the name itself, not what lies below it."""
    if name is None or name in _FACADES:
        return _FACADES.get(name or "")
    return f"cuda.{name.removeprefix('torch.cuda.')}" if not whole and name.startswith("torch.cuda.") else None


def _import_helpers(tree: ast.Module) -> None:
    """``import npuport.runtime.on_npu as __npuport__`` after the docstring and the imports from __future__."""
    place = 0
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and place == 0
        if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        place += 1
    line = tree.body[place - 1].end_lineno or 1 if place else 1
    place_of = {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}
    tree.body.insert(place, ast.Import([ast.alias("npuport.runtime.on_npu", HELPERS, **place_of)], **place_of))
