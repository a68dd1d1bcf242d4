"""Where an NPU is another machine than a GPU: compute capability, captured graphs, raw handles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_chain import CudaUse, npu_fix
from npuport.rules.cuda_names import CudaNameRule, missing_message
from npuport.source.module import parent
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


RULES: tuple[type[Rule], ...] = (CudaRawHandle, CudaDeviceCapability, CudaGraph)
