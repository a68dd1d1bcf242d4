"""Mixed precision through ``torch.cuda.amp``; the device text that ``torch.amp`` takes is for the device rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import chip, torch_name
from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_chain import CudaUse
from npuport.rules.cuda_names import CudaNameRule
from npuport.rules.settings import Settings
from npuport.source.names import External


class CudaGradScaler(CudaNameRule):
    """CUDA's gradient scaler."""

    code = "NP204"
    name = "cuda-grad-scaler"

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        text = "CUDA's GradScaler disables itself where there is no CUDA, so that float16 gradients underflow"
        yield from self.rename(use, context, f"{text}; use {use.fact.npu_name}")


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
        if isinstance(made, External) and made.name in _SCALERS:
            yield context.finding(
                self,
                node,
                "a state that CUDA's GradScaler saved lacks 'dynamic', and torch_npu's GradScaler raises KeyError"
                " for it: add state['dynamic'] = True when you resume from a GPU's checkpoint",
                basis=Basis("torch_npu.npu.amp.GradScaler.load_state_dict", "measured", "torch_npu 2.13.0"),
            )


_SCALERS = {f"{owner}.amp.GradScaler" for owner in ("torch.cuda", "torch.npu", "torch_npu.npu")}


class UpstreamGradScaler(Rule):
    """PyTorch's own gradient scaler on a chip that saturates."""

    code = "NP211"
    name = "upstream-grad-scaler"
    severity = Severity.WARNING
    markers = (r"\bGradScaler\b",)
    nodes = (ast.Call,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        target = chip(settings.chip)
        return target is not None and target.overflow == "saturation"

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) not in {"torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler"}:
            return
        fact = torch_name("torch.amp.GradScaler")
        yield context.finding(
            self,
            node.func,
            f"{context.settings.chip} clips overflow to the largest number, and this scaler looks for Inf and NaN only;"
            " torch.npu.amp.GradScaler asks the chip",
            basis=fact.basis if fact else None,
            chip=context.settings.chip,
        )


class CudaAutocast(CudaNameRule):
    """CUDA's autocast and what belongs to it."""

    code = "NP205"
    name = "cuda-autocast"

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        text = "autocast of CUDA leaves operators on an NPU in the precision they have"
        yield from self.rename(use, context, f"{text}; use {use.fact.npu_name}")


RULES: tuple[type[Rule], ...] = (CudaGradScaler, CudaAutocast, CudaScalerState, UpstreamGradScaler)
