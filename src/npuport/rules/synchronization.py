"""Where the host waits for the device in a loop, and operators whose results have a size that only the data decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.mask_index_fix import fix_of
from npuport.rules.usage import DEVICE, is_like
from npuport.source.module import ancestors, parent

_DYNAMIC_FUNCTIONS = {
    "torch.nonzero",
    "torch.argwhere",
    "torch.masked_select",
    "torch.unique",
    "torch.unique_consecutive",
}
_DYNAMIC_METHODS = {"nonzero", "argwhere", "masked_select", "unique_consecutive"}
_BACKWARD = {"backward", "step"}
_WAITS = {"item", "tolist"}


def loop_around(node: ast.AST) -> ast.For | ast.While | None:
    """The innermost loop that runs ``node`` again and again; None where a function or nothing lies between."""
    inner = node
    for around in ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
        if isinstance(around, ast.For | ast.While) and inner is not getattr(around, "iter", None):
            return around
        inner = around
    return None


def trains(loop: ast.For | ast.While) -> bool:
    """Whether a loop makes training steps: it calls ``backward()`` and ``step()``."""
    kept = vars(loop)
    if "npuport_trains" not in kept:  # asked for each node inside
        called = {
            node.func.attr
            for node in ast.walk(loop)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not isinstance(node.func.value, ast.Constant)
        }
        kept["npuport_trains"] = called >= _BACKWARD
    known: bool = kept["npuport_trains"]
    return known


def is_now_and_then(node: ast.AST, loop: ast.For | ast.While) -> bool:
    """Whether a condition lies between the loop and ``node``, such as one on the number of the step."""
    for around in ancestors(node):
        if around is loop:
            return False
        if isinstance(around, ast.If | ast.IfExp):
            return True
    return False


class WaitInTrainingLoop(Rule):
    """A value of a tensor is read at every step of a training loop."""

    code = "NP611"
    name = "wait-in-training-loop"
    severity = Severity.ADVICE
    edits = False
    markers = (r"\.item\(\)", r"\.tolist\(\)")
    needs = ((".backward(",), (".step(",))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in _WAITS or node.args or node.keywords:
            return
        loop = loop_around(node)
        if loop is None or not trains(loop) or is_now_and_then(node, loop) or not _imports_torch(context):
            return
        end = context.module.lines.span(node)[1]
        yield context.finding(
            self,
            (end - len(function.attr) - 2, end),
            f"the host waits here for the device at every step and launches nothing meanwhile: keep the sum there,"
            f" and call {function.attr}() every so many steps",
            basis=Basis("reading a value copies it to the host, which waits for it", "documented", "torch 2.13.0"),
        )


def _imports_torch(context: Context) -> bool:
    return any(
        binding.target.partition(".")[0] == "torch"
        for bindings in context.module.scope.bindings.values()
        for binding in bindings
    )


class SizeFromData(Rule):
    """An operator in a loop or a forward pass whose result has a size that only the data decides."""

    code = "NP612"
    name = "size-from-data"
    severity = Severity.ADVICE
    edits = False
    markers = (r"\bnonzero\(", r"\bargwhere\(", r"\bmasked_select\(", r"\bunique_consecutive\(", r"torch\.unique\(")
    needs = (("def forward", "def loss", "def compute_loss", ".backward("),)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name not in _DYNAMIC_FUNCTIONS:
            if name is not None or method not in _DYNAMIC_METHODS or not _imports_torch(context):
                return
            if _is_numpy(node.func, context):
                return
        if not _in_training(node):
            return
        yield context.finding(
            self,
            node.func,
            f"the size of {method or name} depends on the data: the host waits for it, and what follows is prepared"
            " anew for each size; torch.where or a product with the mask keeps the size",
            basis=Basis("an operator is compiled or tiled for the shape of its inputs", "documented", "CANN"),
            operator=method or name,
        )


class MaskAsIndex(Rule):
    """A tensor is indexed with a mask in a forward pass, so that only the data decides the size of the result."""

    code = "NP618"
    name = "mask-as-index"
    severity = Severity.ADVICE
    edits = False
    fuses = True
    agnostic = True
    markers = (("mask", r"mask\w*\s*=[^=].*(?:[<>]|[=!]=)"),)
    needs = (("def forward", "def loss", "def compute_loss", ".backward("), ("mask]",))
    nodes = (ast.Assign,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not isinstance(target, ast.Name) or not _in_training(node) or not _imports_torch(context):
            return
        scope = context.scope(node)
        values = [binding.value for binding in scope.bindings.get(target.id, [])]
        if not values or values[0] is not node.value or not all(value and _is_mask(value) for value in values):
            return
        for use in context.module.uses(target.id):
            index = parent(use) if isinstance(parent(use), ast.UnaryOp) else use
            around = parent(index) if index is not None else None
            if isinstance(around, ast.Subscript) and around.slice is index and context.scope(use) is scope:
                fix = fix_of(around, node, context) if context.settings.fuse else None
                yield context.finding(self, around, _said(around), fix=fix, basis=_basis(around))


_PREPARED = Basis("an operator is compiled or tiled for the shape of its inputs", "documented", "CANN")
_COUNTED = Basis("op-plugin source (op_plugin/utils/AdvancedIndex.cpp)", "documented", "master")  # it waits for nonzero


def _basis(index: ast.Subscript) -> Basis:
    return _COUNTED if isinstance(index.ctx, ast.Store) else _PREPARED


def _said(node: ast.Subscript) -> str:
    """What an index with a mask costs, where it is read and where it is assigned to."""
    if not isinstance(node.ctx, ast.Store):
        return (
            "the size of the result depends on the data: the host waits for it, and what follows is prepared anew for"
            " each size; torch.where with 0 in the other places keeps it (a product with the mask would keep their NaN)"
        )
    around = parent(node)
    value = around.value if isinstance(around, ast.Assign) else None
    if value is not None and _is_selected(value, node.slice):
        return (
            "assigning through a mask looks for its places first: torch.where computes the same at once, from a value"
            " that is computed for all places and not for those of the mask alone"
        )
    inner = value.operand if isinstance(value, ast.UnaryOp) else value
    plain = isinstance(inner, ast.Constant) or (isinstance(inner, ast.Call) and ast.unparse(inner.func) == "float")
    remedy = "masked_fill" if plain else "torch.where"
    return f"assigning through a mask looks for its places first: {remedy} computes the same at once"


def _is_selected(value: ast.expr, mask: ast.expr) -> bool:
    """Whether a value has the places of a mask only: something in it is indexed with the mask."""
    return any(isinstance(part, ast.Subscript) and ast.dump(part.slice) == ast.dump(mask) for part in ast.walk(value))


def _is_mask(node: ast.expr) -> bool:
    """Whether a value is made by comparisons alone."""
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn | ast.Is | ast.IsNot)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_mask(node.operand)
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.BitAnd | ast.BitOr)
        and (_is_mask(node.left) or _is_mask(node.right))
    )


def _is_numpy(function: ast.expr, context: Context) -> bool:
    """Whether the array is NumPy's as far as the code shows: ``np.abs(x).nonzero()``, ``x.numpy().nonzero()``."""
    owner = function.value if isinstance(function, ast.Attribute) else function
    for part in ast.walk(owner):
        if isinstance(part, ast.Attribute) and part.attr in {"numpy", "values"}:
            return True
        if isinstance(part, ast.Name | ast.Attribute) and (context.name_of(part) or "").startswith(("numpy", "pandas")):
            return True
    return False


def _in_training(node: ast.AST) -> bool:
    """Whether the node stands in a ``forward`` method, or in a loop that makes training steps."""
    for around in ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            owner = parent(around)
            return around.name in {"forward", "loss", "compute_loss"} and isinstance(owner, ast.ClassDef)
        if isinstance(around, ast.For | ast.While) and trains(around):
            return True
    return False


class RoundTripThroughTheHost(Rule):
    """A tensor goes to the host and what is computed there comes back, at every step."""

    code = "NP615"
    name = "round-trip-through-the-host"
    severity = Severity.ADVICE
    edits = False
    markers = tuple((word, rf"{re.escape(word)}.*\.(?:cuda|npu|to)\(") for word in (".cpu()", ".numpy()"))
    needs = (("def forward", "def loss", "def compute_loss", ".backward("), (".cuda(", ".npu(", ".to("))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in {"cuda", "npu", "to"}:
            return
        if function.attr == "to" and not any(is_like(one, context, DEVICE) for one in _arguments(node)):
            return
        there = next((part for part in ast.walk(function.value) if _goes_to_the_host(part)), None)
        if there is None or not _in_training(node) or context.name_of(function) is not None:
            return
        yield context.finding(
            self,
            there,
            "the host waits for this tensor, computes, and sends the result back, at every step: torch's operators do"
            " it on the device; one without a kernel there goes to the CPU by itself",
            basis=Basis("torch_npu copies for operators without a kernel", "measured", "2.13.0"),
        )


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "device")]


def _goes_to_the_host(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"cpu", "numpy"}
        and not node.args
        and isinstance(parent(node), ast.Call | ast.Attribute | ast.BinOp | ast.Subscript)
    )


_LENGTHS = re.compile(r"^(?:\w*_)?cu_seq_?lens?(?:_\w+)?$")


class LengthsOnTheDevice(Rule):
    """Cumulative lengths of sequences are moved to the device, where attention on an NPU takes them from the host."""

    code = "NP617"
    name = "lengths-on-the-device"
    severity = Severity.ADVICE
    edits = False
    markers = tuple(("cu_seq", rf"\bcu_seq_?lens?\w*\.{move}\(") for move in ("to", "cuda", "npu"))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in {"cuda", "npu", "to"}:
            return
        name = getattr(function.value, "id", getattr(function.value, "attr", ""))
        moved = function.attr != "to" or any(is_like(one, context, DEVICE) for one in _arguments(node))
        if moved and _LENGTHS.match(name):
            yield context.finding(
                self,
                node,
                "npu_fusion_attention takes these lengths as a list of Python's integers: on the device, each layer"
                " waits to read them; keep them on the CPU and make the list once for each batch",
                basis=Basis("op-plugin documents on torch_npu.npu_fusion_attention", "documented", "2.13.0"),
            )


RULES: tuple[type[Rule], ...] = (
    WaitInTrainingLoop,
    SizeFromData,
    RoundTripThroughTheHost,
    LengthsOnTheDevice,
    MaskAsIndex,
)
