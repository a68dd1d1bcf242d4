"""Mixed precision through ``torch.cuda.amp``; the device text that ``torch.amp`` takes is for the device rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import torch_name
from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.agnostic import amp as agnostic
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_chain import CudaUse, cuda_use, npu_fix
from npuport.rules.cuda_imports import scaler_group
from npuport.rules.cuda_names import CudaNameRule
from npuport.rules.grad_scaler import (
    CUDA_NAMES,
    HANDED_ON,
    NPU_NAMES,
    UPSTREAM,
    UPSTREAM_NAMES,
    chain_edits,
    device_edit,
    has_fused_optimizers,
    is_created,
    only_asks,
    prefers_upstream,
    saturates,
)
from npuport.rules.settings import Settings
from npuport.source.module import parent
from npuport.source.names import External


class CudaGradScaler(CudaNameRule):
    """CUDA's gradient scaler, by name or because PyTorch's own is given no device."""

    code = "NP204"
    name = "cuda-grad-scaler"
    agnostic = True
    markers = ("cuda", r"\bGradScaler\b")

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        yield from super().check(node, context)
        assert isinstance(node, ast.Attribute | ast.Name)
        call = parent(node)
        if isinstance(call, ast.Call) and call.func is node and context.name_of(node) in UPSTREAM_NAMES:
            yield from self._without_device(node, call, context)

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        edits, safe = _upstream_edits(use, context)
        if context.agnostic:
            if not isinstance(use.node, ast.Name):  # the import changes together with what uses it
                yield from self.rename(use, context, f"{_DISABLED}; use {UPSTREAM}")
        elif edits is None:
            why = HANDED_ON if prefers_upstream(context.settings) and use.fact.name in CUDA_NAMES else ""
            yield from self.rename(use, context, f"{_DISABLED}; use {use.fact.npu_name}{why}")
        elif edits:
            applicability = Applicability.SAFE if safe else Applicability.UNSAFE
            fix = npu_fix(context, edits, applicability, f"use {UPSTREAM}")
            yield self.at_use(use, context, f'{_DISABLED}; use {UPSTREAM}("npu", …)', fix, counterpart=UPSTREAM)

    def _without_device(self, node: ast.expr, call: ast.Call, context: Context) -> Iterator[Finding]:
        if call.args or any(keyword.arg == "device" for keyword in call.keywords):
            return
        if context.agnostic:
            edits = agnostic.use_edits(node, UPSTREAM, context)
        else:
            edit = device_edit(call, context)
            edits = [edit] if edit is not None else None
        unknown = any(keyword.arg is None for keyword in call.keywords)
        fact = torch_name(UPSTREAM)
        doubtful = context.has_npu_branches or unknown
        yield context.finding(
            self,
            node,
            f"{_DISABLED}, and this one is CUDA's unless {'the dictionary' if unknown else 'it'} names another device",
            fix=npu_fix(context, edits, Applicability.SAFE, "name the device") if edits and not unknown else None,
            basis=fact.basis if fact else None,
            severity=Severity.WARNING if doubtful else self.severity,
        )


_DISABLED = "CUDA's GradScaler disables itself where there is no CUDA, so that float16 gradients underflow"


def _upstream_edits(use: CudaUse, context: Context) -> tuple[list[Edit] | None, bool]:
    """The edits that make a use PyTorch's own scaler, [] where others do, None where there are none; their safety."""
    if not isinstance(use.node, ast.Name) or use.alias is None:
        return chain_edits(use, context), True
    group = scaler_group(use.alias, context)
    if group is None:
        return None, False
    return (group.edits if is_created(use.node, context) else []), group.safe


class CudaScalerState(Rule):
    """Loading a state into torch_npu's gradient scaler."""

    code = "NP207"
    name = "cuda-scaler-state"
    severity = Severity.WARNING
    markers = (r"caler\w*\.load_state_dict\(",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "load_state_dict":
            return
        made = context.resolver.instance_class(function.value, context.scope(node))
        future = frozenset() if prefers_upstream(context.settings) else CUDA_NAMES
        if isinstance(made, External) and made.name in NPU_NAMES | future:
            yield context.finding(
                self,
                node,
                "a state that CUDA's GradScaler saved lacks 'dynamic', and torch_npu's GradScaler raises KeyError"
                " for it: add state['dynamic'] = True when you resume from a GPU's checkpoint",
                basis=Basis("torch_npu.npu.amp.GradScaler.load_state_dict", "measured", "torch_npu 2.13.0"),
            )


class UpstreamGradScaler(Rule):
    """PyTorch's own gradient scaler on a chip that saturates."""

    code = "NP211"
    name = "upstream-grad-scaler"
    severity = Severity.WARNING
    markers = (r"\bGradScaler\b",)
    nodes = (ast.Call,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        return saturates(settings)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) not in UPSTREAM_NAMES:
            return
        fact = torch_name(UPSTREAM)
        yield context.finding(
            self,
            node.func,
            f"{context.settings.chip} clips overflow to the largest number, and this scaler looks for Inf and NaN only;"
            " torch.npu.amp.GradScaler asks the chip",
            basis=fact.basis if fact else None,
            chip=context.settings.chip,
        )


class FusedOptimizerWithNpuScaler(Rule):
    """torch_npu's gradient scaler in a project that creates fused optimizers."""

    code = "NP213"
    name = "fused-optimizer-with-npu-scaler"
    severity = Severity.WARNING
    markers = (r"\bGradScaler\b",)
    nodes = (ast.Attribute, ast.Name)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute | ast.Name)
        around = parent(node)
        name = None if isinstance(around, ast.Attribute) else context.name_of(node)
        if name not in NPU_NAMES | CUDA_NAMES or not isinstance(node.ctx, ast.Load) or only_asks(node, context):
            return
        use = cuda_use(node, context)
        if use is not None and _upstream_edits(use, context)[0] is not None:
            return
        if has_fused_optimizers(context.project):
            yield context.finding(
                self,
                node,
                "torch_npu's GradScaler hands itself to optimizers that unscale by themselves, and step() of torch's"
                " fused ones, of which this project speaks, raises TypeError for it: create them unfused",
                basis=Basis("torch_npu.npu.amp.GradScaler.step", "measured", "torch_npu 2.13.0"),
            )


class CudaAutocast(CudaNameRule):
    """CUDA's autocast and what belongs to it."""

    code = "NP205"
    name = "cuda-autocast"
    agnostic = True

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        if context.agnostic and isinstance(use.node, ast.Name):
            return  # the import changes together with what uses it
        text = "autocast of CUDA leaves operators on an NPU in the precision they have"
        yield from self.rename(use, context, f"{text}; use {use.fact.npu_name}")


RULES: tuple[type[Rule], ...] = (
    CudaGradScaler,
    CudaAutocast,
    CudaScalerState,
    UpstreamGradScaler,
    FusedOptimizerWithNpuScaler,
)
