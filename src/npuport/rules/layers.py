"""Layers and functions of PyTorch that behave otherwise on an NPU, some of them with some versions only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import all_torch_names, operator_status, torch_name
from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors, parent

_CONV = {"torch.nn.Conv3d", "torch.nn.LazyConv3d", "torch.nn.functional.conv3d"}
_TRANSPOSED = {"torch.nn.ConvTranspose3d", "torch.nn.LazyConvTranspose3d", "torch.nn.functional.conv_transpose3d"}


class ConvolutionOfVolumes(Rule):
    """The first convolution over three dimensions in a class or function: a layer, a function, or a base class."""

    code = "NP453"
    name = "convolution-of-volumes"
    severity = Severity.INFO
    edits = False
    markers = (r"\bConv3d\b", r"\bconv3d\b", r"\bConvTranspose3d\b", r"\bconv_transpose3d\b", r"\bLazyConv\w*3d\b")
    nodes = (ast.Call, ast.ClassDef)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call | ast.ClassDef)
        for place in node.bases if isinstance(node, ast.ClassDef) else [node.func]:
            name = context.name_of(place)
            if name in _TRANSPOSED:
                yield self._transposed(place, context)
            elif name in _CONV and _is_first(place, context):
                yield context.finding(
                    self,
                    place,
                    "documented for float16, bfloat16 and float32, yet older CANN releases refuse bfloat16 here:"
                    " should it fail, compute it in float16 or float32, or update CANN; a convolution whose stride is"
                    " its kernel is a linear layer over patches",
                    basis=_CONV_BASIS,
                )

    def _transposed(self, place: ast.expr, context: Context) -> Finding:
        missing = not context.settings.torch_at_least("2.7")
        return context.finding(
            self,
            place,
            "its kernel for shapes known only at run time is missing from older releases (documented as unsupported"
            " with torch 2.6): should it fail, call torch.npu.set_compile_mode(jit_compile=True) before it",
            basis=_TRANSPOSED_BASIS,
            severity=Severity.WARNING if missing else Severity.INFO,
        )


def _is_first(place: ast.expr, context: Context) -> bool:
    """Whether no convolution of volumes stands above in the same class or function: one word on each is enough."""
    outermost = [one for one in ancestors(place) if isinstance(one, ast.ClassDef | ast.FunctionDef)]
    if not outermost:
        return True
    before = (place.lineno, place.col_offset)
    return not any(
        isinstance(part, ast.Name | ast.Attribute)
        and (part.lineno, part.col_offset) < before
        and (part.id if isinstance(part, ast.Name) else part.attr).lower().endswith("conv3d")
        and isinstance(around := parent(part), ast.Call | ast.ClassDef)
        and (part in around.bases if isinstance(around, ast.ClassDef) else part is around.func)
        and context.name_of(part) in _CONV
        for part in ast.walk(outermost[-1])
    )


_CONV_BASIS = Basis("torch_npu documents on native APIs; hiyouga/LlamaFactory issue 6694", "documented", "2.13.0")
_TRANSPOSED_BASIS = Basis("torch_npu documents on native APIs; Ascend/pytorch issue 52", "documented", "2.6.0")


class EncoderFastPath(Rule):
    """A ``TransformerEncoderLayer``, whose fast path for inference runs on the CPU."""

    code = "NP454"
    name = "encoder-fast-path"
    severity = Severity.WARNING
    markers = (r"\bTransformerEncoderLayer\b",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) != "torch.nn.TransformerEncoderLayer":
            return
        if "set_fastpath_enabled" in context.module.text:
            return
        known = operator_status("_transformer_encoder_layer_fwd")
        if known is None or known.status != "cpu_fallback":
            return
        yield context.finding(
            self,
            node.func,
            "in eval mode without gradients this layer is one operator that has no NPU kernel and runs on the CPU:"
            " torch.backends.mha.set_fastpath_enabled(False) keeps it on the device",
            basis=known.basis,
            operator=known.name,
        )


class ScriptedFunction(Rule):
    """A function or a model compiled by ``torch.jit.script``."""

    code = "NP463"
    name = "scripted-function"
    severity = Severity.INFO
    edits = False
    markers = (r"\bjit\.script", ("script", r"\bimport script\b"), r"torch\.jit import")
    nodes = (ast.Call, ast.FunctionDef, ast.ClassDef)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            places = [one for one in node.decorator_list if not isinstance(one, ast.Call)]
        else:
            assert isinstance(node, ast.Call)
            places = [node.func]
        for place in places:
            if context.name_of(place) in {"torch.jit.script", "torch.jit.script_if_tracing", "torch.jit.script_method"}:
                yield context.finding(
                    self,
                    place,
                    "transfer_to_npu turns torch.jit.script off, and older torch_npu releases fail in what it makes:"
                    " without it the same code runs eagerly, with the same results",
                    basis=_SCRIPT,
                )


_SCRIPT = Basis(
    "torch_npu source (contrib/transfer_to_npu.py); hiyouga/LlamaFactory issue 3788", "documented", "2.13.0"
)


class ConstantOnTheCpu(Rule):
    """``torch.where`` with a tensor made on the spot, on the CPU, in a function that minds devices."""

    code = "NP457"
    name = "constant-on-the-cpu"
    severity = Severity.INFO
    edits = False
    markers = (("where", r"\bwhere\(.*\b(?:as_)?tensor\("),)
    needs = (("where(",),)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if len(node.args) < 2 or context.name_of(node.func) != "torch.where" or not _minds_devices(node):
            return
        for argument in node.args[1:]:
            if (
                isinstance(argument, ast.Call)
                and context.name_of(argument.func) in {"torch.tensor", "torch.as_tensor"}
                and argument.args
                and not any(keyword.arg in {"device", None} for keyword in argument.keywords)
                and not isinstance(argument.args[0], ast.Attribute)
            ):
                yield context.finding(
                    self,
                    argument,
                    "this tensor is made on the CPU: one with dimensions is refused beside tensors of an NPU, and some"
                    " releases refuse a single number too: give it device=, that of the others",
                    basis=_WHERE,
                )


_WHERE = Basis("torch_npu on a simulated CANN; huggingface/diffusers issue 13015", "measured", "2.13.0")


def _minds_devices(node: ast.AST) -> bool:
    """Whether the function around a node reads the device of something."""
    function = next((one for one in ancestors(node) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)), None)
    return function is not None and any(
        isinstance(part, ast.Attribute) and part.attr == "device" for part in ast.walk(function)
    )


_NAMESPACES = ("torch.sparse", "torch.func.", "torch.nested.", "torch.smm", "torch.hspmm", "torch.sspaddmm")
_IN_NAMESPACES = [name for name in all_torch_names() if name.name.startswith(_NAMESPACES)]


def _namespace_markers() -> tuple[tuple[str, str], ...]:
    """For each name its last part, with the module before it or in an import."""
    parts = sorted({tuple(one.name.rsplit(".", 2)[-2:]) for one in _IN_NAMESPACES})
    return tuple((last, rf"(?:\b{owner}\.|\bimport\b.*\b){last}\b") for owner, last in parts)


class DocumentedAsUnsupported(Rule):
    """Sparse and nested tensors, and transforms of functions, that torch_npu refuses or does not claim to support."""

    code = "NP467"
    name = "sparse-nested-or-transformed"
    severity = Severity.INFO
    edits = False
    markers = _namespace_markers()
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func)
        known = torch_name(name) if name is not None and name.startswith(_NAMESPACES) else None
        if known is not None:
            yield context.finding(
                self,
                node.func,
                f"{known.name}: {known.note[0].lower()}{known.note[1:].rstrip('.')}",
                basis=known.basis,
                severity=Severity.ERROR if known.status == "missing" else Severity.INFO,
                symbol=known.name,
            )


RULES: tuple[type[Rule], ...] = (
    ConvolutionOfVolumes,
    EncoderFastPath,
    ScriptedFunction,
    ConstantOnTheCpu,
    DocumentedAsUnsupported,
)
