"""Names of torch_npu that moved, went, or belong to one version; arguments that its operators refuse."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import DeprecatedName, all_deprecated_names, custom_operator, deprecated_name
from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors, parent


class OldTransferModule(Rule):
    """``transfer_to_npu`` is imported from an old CANN toolkit, not from torch_npu."""

    code = "NP452"
    name = "old-transfer-module"
    severity = Severity.ERROR
    markers = (r"\btransfer_to_npu\b",)
    nodes = (ast.Import, ast.ImportFrom)
    follows_names = False

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        names = _imported_modules(node)
        if names != ["transfer_to_npu"] or context.project.locate("transfer_to_npu", context.module.path) is not None:
            return
        plain = isinstance(node, ast.Import) and len(node.names) == 1 and node.names[0].asname is None
        yield context.finding(
            self,
            node,
            "this is the copy of an old CANN toolkit, which fails with a newer torch_npu: import the one of the"
            " installed torch_npu, `from torch_npu.contrib import transfer_to_npu`",
            basis=_TRANSFER,
            fix=context.replace_node(node, "from torch_npu.contrib import transfer_to_npu") if plain else None,
        )


_TRANSFER = Basis("torch_npu documents on transfer_to_npu; Ascend/pytorch issue 9", "documented", "2.13.0")


def _imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert isinstance(node, ast.ImportFrom)
    return [node.module or ""] if not node.level else []


class ArgumentOfFusedOperator(Rule):
    """An argument that a fused operator of torch_npu refuses, though what it replaces takes it."""

    code = "NP455"
    name = "argument-of-fused-operator"
    severity = Severity.ERROR
    markers = (r"\bnpu_rotary_mul\b", r"\bnpu_rms_norm\b", r"\bnpu_fusion_attention\b")
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func)
        if name == "torch_npu.npu_rotary_mul":
            for argument in _arguments(node, 1, ("r1",)) + _arguments(node, 2, ("r2",)):
                if _is_half(argument, context):
                    yield self._finding(argument, _ROTARY, "torch_npu.npu_rotary_mul", context)
        elif name == "torch_npu.npu_rms_norm":
            for argument in _arguments(node, 1, ("gamma",)):
                if _may_be_none(argument):
                    yield self._finding(argument, _NORM, "torch_npu.npu_rms_norm", context)
        elif name == "torch_npu.npu_fusion_attention":
            masks = _arguments(node, None, ("atten_mask",))
            for argument in masks:
                if _has_one_row(argument, context):
                    yield self._finding(argument, _MASK, "torch_npu.npu_fusion_attention", context)
            left_out = None if masks else _mask_left_out(node)
            if left_out is not None:
                message = _LEFT_OUT.format(left_out)
                yield self._finding(node.func, message, "torch_npu.npu_fusion_attention", context, Severity.WARNING)

    def _finding(
        self, at: ast.expr, message: str, operator: str, context: Context, severity: Severity = Severity.ERROR
    ) -> Finding:
        basis = Basis(f"op-plugin documents on {operator}", "documented", "2.13.0")
        return context.finding(self, at, message, basis=basis, severity=severity)


_ROTARY = (
    "npu_rotary_mul takes cos and sin of 3 or 4 dimensions and of the whole width of a head, where flash-attn takes"
    " halves of 2 dimensions: repeat them to the full width and add the missing dimensions"
)
_NORM = "npu_rms_norm refuses a weight of None: pass torch.ones of the normalised size, or take torch's rms_norm there"
_MASK = (
    "npu_fusion_attention takes no mask of one row for all queries: expand it to (batch, 1, queries, keys), True where"
    " attention is to be left out"
)

_LEFT_OUT = (
    "the mask {} of this function does not reach npu_fusion_attention: hand it on as atten_mask, which is True where"
    " attention is left out (the other way round than scaled_dot_product_attention's) and has the shape (queries, keys)"
    " or (batch, 1 or heads, queries, keys)"
)
_MASKS = {"attn_mask", "atten_mask", "attention_mask"}


def _mask_left_out(node: ast.Call) -> str | None:
    """The parameter of the function around that is a mask and no argument of the call; None if all is handed on."""
    if any(keyword.arg is None for keyword in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    for around in ancestors(node):
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            named = [one.arg for one in (*around.args.posonlyargs, *around.args.args, *around.args.kwonlyargs)]
            mask = next((name for name in named if name in _MASKS), None)
            handed = {part.id for argument in node.args for part in ast.walk(argument) if isinstance(part, ast.Name)}
            return None if mask in handed or any(k.arg in {"sparse_mode", "pse"} for k in _given(node)) else mask
    return None


def _given(node: ast.Call) -> list[ast.keyword]:
    """The keyword arguments that are not None."""
    return [k for k in node.keywords if not (isinstance(k.value, ast.Constant) and k.value.value is None)]


def _arguments(node: ast.Call, position: int | None, names: tuple[str, ...]) -> list[ast.expr]:
    found = [keyword.value for keyword in node.keywords if keyword.arg in names]
    if position is not None and len(node.args) > position:
        found.append(node.args[position])
    return found


def _value(node: ast.expr, context: Context) -> ast.expr:
    """What a name was given, where it was given something once."""
    if isinstance(node, ast.Name):
        bound = context.scope(node).lookup(node.id)
        if len(bound) == 1 and bound[0].value is not None:
            return bound[0].value
    return node


def _is_half(node: ast.expr, context: Context) -> bool:
    """``x.chunk(2, …)[0]``, or ``x[..., : n // 2]``."""
    value = _value(node, context)
    if not isinstance(value, ast.Subscript):
        return False
    if isinstance(value.value, ast.Call) and isinstance(value.value.func, ast.Attribute):
        arguments = value.value.args
        first = arguments[0] if arguments else None
        return value.value.func.attr == "chunk" and isinstance(first, ast.Constant) and first.value == 2
    last = value.slice.elts[-1] if isinstance(value.slice, ast.Tuple) and value.slice.elts else value.slice
    return (
        isinstance(last, ast.Slice)
        and last.step is None
        and any(
            isinstance(part, ast.BinOp)
            and isinstance(part.op, ast.FloorDiv)
            and isinstance(part.right, ast.Constant)
            and part.right.value == 2
            for part in (last.lower, last.upper)
        )
    )


def _may_be_none(node: ast.expr) -> bool:
    """None, or an attribute of self that a method sets to None, unless the code around asks for that."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"):
        return False
    for around in ancestors(node):
        if isinstance(around, ast.If | ast.IfExp) and node.attr in ast.dump(around.test):
            return False
        if isinstance(around, ast.ClassDef):
            return any(_sets_none(part, node.attr) for part in ast.walk(around))
    return False


def _sets_none(node: ast.AST, attribute: str) -> bool:
    if isinstance(node, ast.Assign):
        ours = any(isinstance(target, ast.Attribute) and target.attr == attribute for target in node.targets)
        return ours and any(
            isinstance(part, ast.Constant) and part.value is None
            for part in ([node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value])
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register_parameter":
        given = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        return given == [attribute, None]
    return False


def _has_one_row(node: ast.expr, context: Context) -> bool:
    """``mask[:, None, None, :]``, or ``mask.unsqueeze(1).unsqueeze(2)``."""
    value = _value(node, context)
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Tuple):
        added = [isinstance(part, ast.Constant) and part.value is None for part in value.slice.elts]
        return len(added) == 4 and added[1:3] == [True, True]
    inner = _unsqueezed(value, {1, 2, -2})
    return inner is not None and _unsqueezed(inner, {1}) is not None


def _unsqueezed(node: ast.expr, dimensions: set[int]) -> ast.expr | None:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "unsqueeze"):
        return None
    try:
        dimension = ast.literal_eval(node.args[0]) if node.args else None
    except ValueError:
        return None
    return node.func.value if dimension in dimensions else None


class NameOfOtherVersion(Rule):
    """An operator of torch_npu that the version of the port may lack."""

    code = "NP456"
    name = "name-of-other-torch-npu"
    severity = Severity.ERROR
    markers = (r"\btorch_npu\.",)
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        if not node.attr.startswith(("npu_", "_npu_")) or isinstance(parent(node), ast.Attribute):
            return
        if context.name_of(node) != f"torch_npu.{node.attr}" or _is_asked_for(node):
            return
        torch = context.settings.torch_version
        if node.attr.startswith("_npu_"):
            message = (
                "this name is torch_npu's own and changes with its version: a torch_npu without it raises"
                " AttributeError, so require the version that this was written for, or compute it with plain operators"
            )
            yield context.finding(self, node, message, basis=_PRIVATE, severity=Severity.WARNING)
            return
        known = custom_operator(node.attr)
        if known is not None and not known.is_in(torch):
            message = (
                f"torch_npu for torch {torch} does not have {node.attr}: {known.range_in_words}; use another version of"
                " torch_npu, or plain operators"
            )
            yield context.finding(self, node, message, basis=known.basis)


_PRIVATE = Basis("Ascend/pytorch issue 60", "inferred")


def _is_asked_for(node: ast.Attribute) -> bool:
    """Whether the code around asks whether torch_npu has the name, or goes on without it."""
    for around in ancestors(node):
        if isinstance(around, ast.If | ast.IfExp) and node.attr in ast.dump(around.test):
            return True
        if isinstance(around, ast.Try) and any(
            isinstance(handler.type, ast.Name) and handler.type.id == "AttributeError" for handler in around.handlers
        ):
            return True
    return False


class OldProfiler(Rule):
    """The profiler that torch_npu had before ``torch_npu.profiler``."""

    code = "NP605"
    name = "old-npu-profiler"
    severity = Severity.ERROR
    markers = (r"\bnpu\.profile\b",)
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        if context.name_of(node) in {"torch.npu.profile", "torch_npu.npu.profile"}:
            yield context.finding(
                self,
                node,
                "torch_npu 2.x has no torch.npu.profile: use torch_npu.profiler.profile, which is written as"
                " torch.profiler.profile",
                basis=Basis("torch_npu namespace; Ascend/pytorch issue 53", "measured", "2.13.0"),
            )


class DeprecatedTorchNpuName(Rule):
    """A name of torch_npu that torch_npu itself advises against."""

    code = "NP468"
    name = "deprecated-torch-npu-name"
    severity = Severity.ADVICE
    edits = False
    markers = tuple((end, rf"\b{end}\b") for end in sorted({n.name.rpartition(".")[2] for n in all_deprecated_names()}))
    needs = (("torch_npu", "torch.npu"),)
    nodes = (ast.Attribute, ast.ImportFrom)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        named: list[tuple[str, ast.AST]]
        if isinstance(node, ast.ImportFrom):
            named = [(f"{node.module}.{alias.name}", alias) for alias in node.names if not node.level]
        else:
            assert isinstance(node, ast.Attribute)
            read = isinstance(node.ctx, ast.Load) and not _is_asked_for(node)
            named = [(context.name_of(node) or "", node)] if read else []
        for name, place in named:
            known = deprecated_name(name)
            if known is not None:
                yield context.finding(
                    self, place, _advice(known), basis=known.basis, symbol=known.name, replacement=known.replacement
                )


def _advice(known: DeprecatedName) -> str:
    why = "" if known.maintained else "; its kernel is not kept up, precision and speed are not warranted"
    instead = f"use {known.replacement}" if known.replacement else "compute it with torch's own operators"
    return f"{known.name} is deprecated{why}: {instead}"


RULES: tuple[type[Rule], ...] = (
    OldTransferModule,
    ArgumentOfFusedOperator,
    NameOfOtherVersion,
    OldProfiler,
    DeprecatedTorchNpuName,
)
