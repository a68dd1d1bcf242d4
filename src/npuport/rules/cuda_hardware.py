"""Where an NPU is another machine than a GPU: compute capability, captured graphs, raw handles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import torch_name
from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_chain import CudaUse, npu_fix
from npuport.rules.cuda_names import CudaNameRule, missing_message
from npuport.source.module import ancestors, parent
from npuport.source.names import External


class CudaRawHandle(Rule):
    """The raw handle of a stream or an event."""

    code = "NP208"
    name = "cuda-raw-handle"
    severity = Severity.WARNING
    markers = (r"\.cuda_stream\b", r"\.cuda_event\b")
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        kind = _HANDLES.get(node.attr)
        if kind is None or not isinstance(node.ctx, ast.Load) or context.name_of(node) is not None:
            return
        end = context.module.lines.span(node)[1]
        new = node.attr.replace("cuda", "npu")
        yield context.finding(
            self,
            node,
            f"a stream or event of an NPU has {new}, an {kind}, which only CANN's own functions take",
            fix=npu_fix(context, [Edit(end - len(node.attr), end, new)], Applicability.UNSAFE, f"use {new}"),
            basis=Basis(f"torch.npu has {new}", "measured", "torch_npu 2.13.0"),
        )


_HANDLES = {"cuda_stream": "aclrtStream", "cuda_event": "aclrtEvent"}


class CudaGraph(CudaNameRule):
    """Capture into a CUDA graph."""

    code = "NP210"
    name = "cuda-graph"
    severity = Severity.WARNING

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        text = "capture of a graph is documented on NPUs for inference only"
        if use.fact.status == "missing":
            yield self.at_use(use, context, missing_message(use.name, use), None, Severity.ERROR)
            return
        found = list(self.rename(use, context, f"{text}; {use.fact.npu_name} is the counterpart", Applicability.UNSAFE))
        yield from found or [self.at_use(use, context, text, None)]


class CudaDeviceCapability(CudaNameRule):
    """CUDA's compute capability, which no NPU has."""

    code = "NP209"
    name = "cuda-device-capability"
    markers = ("get_device_capability", r"\.major\b", r"\.minor\b")

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        yield from super().check(node, context)
        if isinstance(node, ast.Attribute) and node.attr in {"major", "minor"}:
            made = context.resolver.instance_class(node.value, context.scope(node))
            if isinstance(made, External) and made.name in _PROPERTIES:
                yield context.finding(
                    self,
                    node,
                    f"{node.attr} of an NPU's properties is None, so that comparing or formatting it fails",
                    basis=Basis("torch.npu.get_device_properties", "measured", "torch_npu 2.13.0"),
                )

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        message = "an NPU has no compute capability: torch.npu.get_device_capability returns None; decide by"
        message += " torch.npu.get_device_name(), or ask for the feature, such as torch.npu.is_bf16_supported()"
        test = _asks_for_ampere(use.node)
        fix: Fix | None = None
        if test is not None and use.token is not None:
            torch = context.module.segment(use.token.value)
            start, end = context.module.lines.span(test)
            edits = [Edit(start, end, f"{torch}.npu.is_bf16_supported()")]
            fix = npu_fix(context, edits, Applicability.UNSAFE, "ask whether bfloat16 is supported")
        yield self.at_use(use, context, message, fix)


_PROPERTIES = {f"{owner}.get_device_properties" for owner in ("torch.cuda", "torch.npu", "torch_npu.npu")}


def _asks_for_ampere(node: ast.expr) -> ast.Compare | None:
    """``get_device_capability(…)[0] >= 8``, by which programs decide on bfloat16."""
    call = parent(node)
    element = parent(call) if isinstance(call, ast.Call) and call.func is node else None
    if not (
        isinstance(element, ast.Subscript) and isinstance(element.slice, ast.Constant) and element.slice.value == 0
    ):
        return None
    test = parent(element)
    if not (isinstance(test, ast.Compare) and test.left is element and isinstance(test.ops[0], ast.GtE)):
        return None
    bound = test.comparators[0]
    return test if len(test.ops) == 1 and isinstance(bound, ast.Constant) and bound.value == 8 else None


class PrivateCudaBinding(Rule):
    """A private binding of torch to CUDA: ``torch._C._cuda_getCurrentRawStream``."""

    code = "NP214"
    name = "private-cuda-binding"
    severity = Severity.ERROR
    markers = (r"\b_cuda_\w+",)
    needs = (("_C",),)
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        name = context.name_of(node) if node.attr.startswith("_cuda_") else None
        if name != f"torch._C.{node.attr}" or not isinstance(node.ctx, ast.Load) or _is_tried(node):
            return
        known = torch_name(name)
        if known is None or known.npu_name is None:
            message = "torch without CUDA has no such binding, and no counterpart in torch_npu is known"
            yield context.finding(self, node, message, symbol=name)
            return
        yield context.finding(
            self,
            node,
            f"torch without CUDA has no such binding; torch_npu's is {known.npu_name}, as private as this one",
            fix=npu_fix(
                context,
                context.fix([Edit(*context.module.lines.span(node), known.npu_name)], needs="torch_npu").edits,
                Applicability.UNSAFE,
                "call torch_npu's binding",
            ),
            basis=known.basis,
            symbol=name,
        )


def _is_tried(node: ast.AST) -> bool:
    """Whether the program asks for the name first."""
    return any(
        isinstance(around, ast.If | ast.IfExp) and "hasattr" in ast.dump(around.test) for around in ancestors(node)
    )


_MODELS = re.compile(r"(?<![A-Za-z0-9])(?:[AHVPTBL]\d{2,3}|RTX|GTX|Tesla|Quadro|GeForce|GH200|GB200|TITAN)(?![a-z])")
_ASKS_FOR_NAME = {f"{owner}.get_device_name" for owner in ("torch.cuda", "torch.npu", "torch_npu.npu")}


class GpuModelName(Rule):
    """The device's name is compared with that of a GPU."""

    code = "NP215"
    name = "gpu-model-name"
    severity = Severity.WARNING
    agnostic = True
    markers = ("get_device_name", r"get_device_properties\(.*\.name\b")
    nodes = (ast.Compare,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Compare)
        parts = [node.left, *node.comparators]
        models = [part.value for part in parts if isinstance(part, ast.Constant) and _is_model(part.value)]
        if len(parts) != 2 or not models or not any(_is_device_name(part, context) for part in parts):
            return
        yield context.finding(
            self,
            node,
            f"an NPU is called Ascend910B3 or the like, so that {models[0]!r} never is its name: say what"
            " holds for an NPU",
            basis=Basis("torch.npu.get_device_name", "measured", "torch_npu 2.13.0"),
        )


def _is_model(value: object) -> bool:
    return isinstance(value, str) and _MODELS.search(value) is not None


def _is_device_name(node: ast.expr, context: Context) -> bool:
    """``torch.cuda.get_device_name(0)``, its lower case, or ``get_device_properties(0).name``."""
    if isinstance(node, ast.Attribute) and node.attr == "name":
        made = context.resolver.instance_class(node.value, context.scope(node))
        return isinstance(made, External) and made.name in _PROPERTIES
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in {"lower", "upper", "strip"}:
        return _is_device_name(node.func.value, context)
    return context.name_of(node.func) in _ASKS_FOR_NAME


RULES: tuple[type[Rule], ...] = (CudaRawHandle, CudaDeviceCapability, CudaGraph, PrivateCudaBinding, GpuModelName)
