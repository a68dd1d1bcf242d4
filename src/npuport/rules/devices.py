"""Devices: strings, comparisons, ``.cuda()``, ``is_cuda``, names of tensor types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.agnostic import devices as agnostic
from npuport.rules.base import Context, Rule, with_applicability
from npuport.rules.cuda_only import asks_for_capability
from npuport.rules.library_calls import is_lightnings
from npuport.rules.usage import Use, use_of
from npuport.source.module import parent
from npuport.source.names import Definition

# A device string, whole or with its index still to be formatted in: "cuda", "cuda:0", "cuda:%d", "cuda:{}", "cuda:".
_DEVICE = re.compile(r"cuda(?::(?:\d+|%[dsi]|\{[^{}]*\})?)?")
_OPENING = re.compile(r"(?i)^[rbfu]*(\"\"\"|'''|\"|')")
_PRIVATE_USE = Basis("PyTorch registers the Ascend backend as device type npu", "documented", "torch_npu 2.13.0")
_KNOWS_NPU = "this is for CUDA; the file tells NPUs apart already: read which way an NPU takes"
_NO_CUDA = "this names a CUDA device, which no Ascend build of PyTorch has"


def _device_literal(node: ast.AST) -> bool:
    """Whether a string expression spells a CUDA device, whole or up to its index."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _DEVICE.fullmatch(node.value) is not None
    if isinstance(node, ast.JoinedStr) and node.values:
        first = node.values[0]
        return (
            isinstance(first, ast.Constant)
            and isinstance(first.value, str)
            and re.match(r"cuda(?::|$)", first.value) is not None
        )
    return False


def _respell(node: ast.AST, context: Context) -> Edit | None:
    """The edit that turns the leading ``cuda`` of a literal into ``npu``; None where the source does not show it."""
    start, end = context.module.lines.span(node)
    text = context.module.text[start:end]
    opening = _OPENING.match(text)
    if opening is None or not text.endswith(opening.group(1)):
        return None
    begin = opening.end()
    if text.startswith("cuda", begin):
        return Edit(start + begin, start + begin + 4, "npu")
    if isinstance(node, ast.Constant) and node.value == "cuda":  # "cu" "da"
        return Edit(start, end, '"npu"')
    return None


def _respelled(node: ast.expr, context: Context) -> list[Edit]:
    edit = _respell(node, context)
    return [edit] if edit is not None else []


class CudaDeviceString(Rule):
    """A string that names a CUDA device and reaches something that takes a device."""

    code = "NP101"
    name = "cuda-device-string"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\bcuda\b", ('cu" "da', 'cu" "da'), ("cu' 'da", "cu' 'da"))
    nodes = (ast.Constant, ast.JoinedStr)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.expr)
        if not _device_literal(node) or isinstance(parent(node), ast.JoinedStr):
            return
        use = use_of(node, context)
        if use in (Use.COMPARED, Use.COMPARED_UNKNOWN, Use.TEXT, Use.KEY):
            return
        if use is Use.UNKNOWN and _has_index(node) and context.project.imports_torch:
            use = Use.TAKEN
        if _chosen_against_npu(node, context) or is_lightnings(node, context):
            return
        if _stands_in_for_accelerator(node, context):
            message = "only a torch without torch.accelerator, which is older than 2.6, gets here: it may stay"
            yield context.finding(self, node, message, severity=Severity.INFO)
            return
        edits = agnostic.device_string(node, context) if context.agnostic else _respelled(node, context)
        title = "name the device type at hand" if context.agnostic else "name the NPU"
        if use is Use.TAKEN and not context.has_npu_branches:
            fix = context.fix(edits, title=title) if edits else None
            yield context.finding(self, node, _NO_CUDA, fix=fix, basis=_PRIVATE_USE, value=context.module.segment(node))
        else:
            fix = context.fix(edits, Applicability.UNSAFE, title) if edits else None
            yield context.finding(
                self,
                node,
                _KNOWS_NPU
                if use is Use.TAKEN
                else "this looks like a CUDA device, but nothing shows that it is used as one",
                fix=fix,
                severity=Severity.WARNING,
                value=context.module.segment(node),
            )


def _stands_in_for_accelerator(node: ast.expr, context: Context) -> bool:
    """Whether a literal is the "cuda" of ``torch.accelerator.current_accelerator().type if … else "cuda"``."""
    around = parent(node)
    if not isinstance(around, ast.IfExp) or around.orelse is not node or not context.settings.torch_at_least("2.6"):
        return False
    calls = (part.func for part in ast.walk(around.body) if isinstance(part, ast.Call))
    asks = isinstance(around.test, ast.Call) and context.name_of(around.test.func) == "torch.accelerator.is_available"
    return not asks and any((context.name_of(call) or "").startswith("torch.accelerator.") for call in calls)


def _has_index(node: ast.expr) -> bool:
    """Whether a device is spelt up to its index and no further: in a program of torch, "cuda:0" is nothing else."""
    if isinstance(node, ast.JoinedStr):
        first = node.values[0]
        return len(node.values) == 2 and isinstance(first, ast.Constant) and first.value == "cuda:"
    return isinstance(node, ast.Constant) and ":" in str(node.value) and not _continued(node)


def _continued(node: ast.expr) -> bool:
    """Whether more text follows: ``"cuda:" + version + "-devel"``."""
    around = parent(node)
    return isinstance(around, ast.BinOp) and isinstance(parent(around), ast.BinOp)


def _chosen_against_npu(node: ast.expr, context: Context) -> bool:
    """Whether the literal stands beside 'npu' in one choice: the code already knows both."""
    if not context.has_npu_branches and not context.agnostic:
        return False
    around = parent(node)
    while around is not None and not isinstance(around, ast.stmt):
        if isinstance(around, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.IfExp | ast.MatchOr):
            texts = [part.value for part in ast.walk(around) if isinstance(part, ast.Constant)]
            if any(isinstance(text, str) and text.startswith("npu") for text in texts):
                return True
        around = parent(around)
    if isinstance(around, ast.Assign | ast.AnnAssign):
        owner = context.scope(around).node
        if isinstance(owner, ast.ClassDef):  # class DeviceType(Enum): CUDA = "cuda"; NPU = "npu"
            values = [item.value for item in owner.body if isinstance(item, ast.Assign | ast.AnnAssign) and item.value]
            return any(isinstance(value, ast.Constant) and value.value == "npu" for value in values)
    return False


class CudaDeviceComparison(Rule):
    """A device, its type or its text compared with 'cuda'."""

    code = "NP102"
    name = "cuda-device-comparison"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\bcuda\b",)
    nodes = (ast.Constant, ast.JoinedStr)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.expr)
        if not _device_literal(node) or isinstance(parent(node), ast.JoinedStr):
            return
        use = use_of(node, context)
        if use not in (Use.COMPARED, Use.COMPARED_UNKNOWN) or _chosen_against_npu(node, context):
            return
        if asks_for_capability(node, context):
            yield context.finding(
                self,
                node,
                "what follows asks for CUDA's compute capability, which an NPU has not: it must not get there",
                severity=Severity.INFO,
                value=context.module.segment(node),
            )
            return
        edits = agnostic.comparison(node, context) if context.agnostic else _respelled(node, context)
        certain = use is Use.COMPARED and not context.has_npu_branches
        fix = context.fix(edits, Applicability.SAFE if certain else Applicability.UNSAFE) if edits else None
        if use is Use.COMPARED and context.has_npu_branches:
            message = "this branch is for CUDA; the file has branches for NPUs too: read which of them an NPU takes"
        elif use is Use.COMPARED:
            message = "an NPU's device type is 'npu', so this comparison takes the other branch"
        else:
            message = "if this compares a device, an NPU takes the other branch"
        yield context.finding(
            self,
            node,
            message,
            fix=fix,
            basis=_PRIVATE_USE if use is Use.COMPARED else None,
            severity=Severity.ERROR if certain else Severity.WARNING,
            value=context.module.segment(node),
        )


class CudaMapLocationKey(Rule):
    """A map_location table whose keys name CUDA devices only."""

    code = "NP103"
    name = "cuda-map-location-key"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\bcuda\b",)
    nodes = (ast.Dict,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Dict)
        keys = [key for key in node.keys if key is not None]
        if not any(_is_indexed_key(key) for key in keys):
            return
        if any(isinstance(key, ast.Constant) and str(key.value).startswith("npu") for key in ast.walk(node)):
            return
        if use_of(node, context) is not Use.TAKEN and not all(_is_location(value) for value in node.values):
            return  # a table of something else, such as memory limits
        additions = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None or not _is_indexed_key(key):
                return
            texts = [_respelled_text(part, context) for part in (key, value)]
            if None in texts:
                return
            additions.append(": ".join(text for text in texts if text is not None))
        end = context.module.lines.span(node.values[-1])[1]
        yield context.finding(
            self,
            node,
            "checkpoints saved on an NPU carry npu locations, which this table does not map",
            fix=context.fix([Edit(end, end, ", " + ", ".join(additions))], title="map both"),
            basis=Basis("torch.save records each storage's device type and index", "documented", "torch 2.13.0"),
        )


def _is_indexed_key(node: ast.expr) -> bool:
    text = node.left if isinstance(node, ast.BinOp) else node
    text = text.func.value if isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute) else text
    if isinstance(text, ast.Constant):
        return isinstance(text.value, str) and re.fullmatch(_DEVICE, text.value) is not None and ":" in text.value
    return _device_literal(text)


def _is_location(node: ast.expr) -> bool:
    return _is_indexed_key(node) or _device_literal(node) or (isinstance(node, ast.Constant) and node.value == "cpu")


def _respelled_text(node: ast.expr, context: Context) -> str | None:
    text = context.module.segment(node)
    return text.replace("cuda", "npu", 1) if text.count("cuda") == 1 else (text if "cuda" not in text else None)


class CudaMethodCall(Rule):
    """``tensor.cuda()`` and ``module.cuda()``."""

    code = "NP104"
    name = "cuda-method-call"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\.cuda\b",)
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        if node.attr != "cuda" or not isinstance(node.ctx, ast.Load):
            return
        called = isinstance(around := parent(node), ast.Call) and around.func is node
        if not called or context.name_of(node) is not None or _is_torch_namespace(node.value, context):
            return
        owner = context.resolver.instance_class(node.value, context.scope(node))
        if isinstance(owner, Definition) and _defines(owner, "cuda"):
            return
        own = owner is None and any(name in context.module.text for name in context.project.classes_with_own_cuda)
        both = context.has_npu_branches
        applicability = Applicability.UNSAFE if own or both else Applicability.SAFE
        end = context.module.lines.span(node)[1]
        edits = agnostic.cuda_method(node, context) if context.agnostic else [Edit(end - 4, end, "npu")]
        yield context.finding(
            self,
            (end - 4, end),
            "a class of this project has a cuda() of its own: if this is it, leave it"
            if own
            else _KNOWS_NPU
            if both
            else "cuda() moves to a CUDA device; npu() is its counterpart",
            fix=context.fix(edits, applicability) if edits else None,
            basis=Basis("Tensor.npu and Module.npu", "measured", "torch_npu 2.13.0"),
            severity=Severity.WARNING if own or both else Severity.ERROR,
        )


def _is_torch_namespace(node: ast.expr, context: Context) -> bool:
    name = context.name_of(node)
    return name is not None and name.split(".")[0] in {"torch", "numba", "cupy"} and not isinstance(node, ast.Call)


def _defines(owner: Definition, method: str) -> bool:
    return any(isinstance(item, ast.FunctionDef) and item.name == method for item in getattr(owner.node, "body", []))


class IsCudaAttribute(Rule):
    """``tensor.is_cuda``."""

    code = "NP105"
    name = "is-cuda-attribute"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\bis_cuda\b",)
    nodes = (ast.Attribute, ast.Call)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Attribute):
            if node.attr != "is_cuda" or not isinstance(node.ctx, ast.Load):
                return
            around = parent(node)
            if isinstance(around, ast.Call) and around.func is node:
                return  # a method of the project's own: a tensor's is_cuda is no function
            end = context.module.lines.span(node)[1]
            where = (end - 7, end)
            edits = agnostic.is_cuda(node, context) if context.agnostic else [Edit(end - 7, end, "is_npu")]
        else:
            assert isinstance(node, ast.Call)
            name = context.name_of(node.func)
            if name not in {"builtins.getattr", "builtins.hasattr"} or len(node.args) < 2:
                return
            literal = node.args[1]
            if not (isinstance(literal, ast.Constant) and literal.value == "is_cuda"):
                return
            start, stop = context.module.lines.span(literal)
            offset = context.module.text[start:stop].find("is_cuda")
            if offset < 0:
                return
            where = (start, stop)
            edits = [] if context.agnostic else [Edit(start + offset, start + offset + 7, "is_npu")]
        own = re.search(r"def is_cuda\b|\.is_cuda\s*=[^=]", context.module.text) is not None
        both = context.has_npu_branches
        applicability = Applicability.UNSAFE if own or both else Applicability.SAFE
        yield context.finding(
            self,
            where,
            "is_cuda is False for a tensor on an NPU",
            fix=context.fix(edits, applicability) if edits else None,
            basis=Basis("Tensor.is_npu", "measured", "torch_npu 2.13.0"),
            severity=Severity.WARNING if own or both else Severity.ERROR,
        )


class CudaTypedTensor(Rule):
    """The text 'torch.cuda.FloatTensor' and its siblings; the classes themselves are names of torch.cuda."""

    code = "NP107"
    name = "cuda-typed-tensor"
    severity = Severity.ERROR
    markers = (r"torch\.cuda\.\w+Tensor",)
    nodes = (ast.Constant,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Constant)
        if not isinstance(node.value, str) or not re.fullmatch(r"torch\.cuda\.\w+Tensor", node.value):
            return
        if use_of(node, context) is Use.TEXT:
            return
        fix = context.replace_word(node, "cuda", "npu")
        both = context.has_npu_branches
        yield context.finding(
            self,
            node,
            "this names a tensor type of CUDA; a tensor on an NPU has a torch.npu type",
            fix=with_applicability(fix, Applicability.UNSAFE) if both else fix,
            basis=Basis("Tensor.type() of npu tensors", "measured", "torch_npu 2.13.0"),
        )


class CudaNameLookup(Rule):
    """``getattr(torch, "cuda")`` and ``hasattr(torch, "cuda")``."""

    code = "NP108"
    name = "cuda-name-lookup"
    severity = Severity.ERROR
    markers = (r"[\"']cuda[\"']",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if len(node.args) < 2 or context.name_of(node.func) not in {"builtins.getattr", "builtins.hasattr"}:
            return
        literal = node.args[1]
        if not (isinstance(literal, ast.Constant) and literal.value == "cuda"):
            return
        owner = context.name_of(node.args[0])
        edit = _respell(literal, context)
        if owner != "torch" or edit is None:
            return
        fix: Fix = context.fix([edit], Applicability.UNSAFE if context.has_npu_branches else Applicability.SAFE)
        yield context.finding(
            self,
            literal,
            "this looks up torch.cuda by name; the Ascend namespace is torch.npu",
            fix=fix,
            basis=Basis("torch.npu", "measured", "torch_npu 2.13.0"),
        )


RULES: tuple[type[Rule], ...] = (
    CudaDeviceString,
    CudaDeviceComparison,
    CudaMapLocationKey,
    CudaMethodCall,
    IsCudaAttribute,
    CudaTypedTensor,
    CudaNameLookup,
)
