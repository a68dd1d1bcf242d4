"""Loss scales and tests for overflow, which mean something else on a chip that saturates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import chip
from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.grad_scaler import CUDA_NAMES, NPU_NAMES, UPSTREAM_NAMES, saturates
from npuport.rules.settings import Settings
from npuport.source.module import ancestors

_TESTS = {"torch.isinf", "torch.isnan", "torch.isfinite", "math.isinf", "math.isnan", "math.isfinite"}
_OF_TRAINING = re.compile(r"(?i)(?:^|_)(?:grads?|norm|loss|overflow)(?:_|$)|grad_?norm|total_norm")


class OverflowSoughtAsInf(Rule):
    """A loss or gradients are tested for Inf or NaN, for a chip whose overflow gives neither."""

    code = "NP421"
    name = "overflow-sought-as-inf"
    severity = Severity.WARNING
    markers = (r"\bisinf\(", r"\bisnan\(", r"\bisfinite\(", r"float\([\"']inf[\"']\)")
    nodes = (ast.Call, ast.Compare)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        return saturates(settings)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        known = chip(context.settings.chip)
        if known is None or not _is_test(node, context) or not _is_first(node, context):
            return
        yield context.finding(
            self,
            node,
            f"{known.name} clips what overflows to the largest number and turns NaN into 0, so that this is never"
            " true: ask torch_npu.npu.get_npu_overflow_flag(), after clear_npu_overflow_flag() before the step, and"
            " reduce the answer among all processes",
            basis=known.basis,
        )


def _is_test(node: ast.AST, context: Context) -> bool:
    """Whether a loss or gradients are tested for Inf or NaN."""
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        tested = [part for part in parts if not _is_infinity(part, context)]
        return (
            len(parts) == 2
            and len(tested) == 1
            and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn)
            and _is_of_training(tested[0])
        )
    return (
        isinstance(node, ast.Call)
        and context.name_of(node.func) in _TESTS
        and bool(node.args)
        and _is_of_training(node.args[0])
    )


def _is_first(node: ast.AST, context: Context) -> bool:
    """Whether no other test stands before this one in the same expression; an assertion of a test suite has none."""
    top = node
    for around in ancestors(node):
        if isinstance(around, ast.stmt):
            if isinstance(around, ast.Assert):
                return False
            break
        top = around
    tests = (part for part in ast.walk(top) if isinstance(part, ast.Call | ast.Compare) and _is_test(part, context))
    return min(tests, key=lambda test: (test.lineno, test.col_offset)) is node


def _is_infinity(node: ast.expr, context: Context) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_infinity(node.operand, context)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return any(_is_infinity(part, context) for part in node.elts)
    return (
        isinstance(node, ast.Call)
        and context.name_of(node.func) == "builtins.float"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
        and str(node.args[0].value).lower().lstrip("+-") in {"inf", "nan", "infinity"}
    )


def _is_of_training(node: ast.expr) -> bool:
    return any(
        _OF_TRAINING.search(part.id if isinstance(part, ast.Name) else part.attr) is not None
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    )


_POLICY = {"init_scale", "growth_factor", "backoff_factor", "growth_interval"}
_SCALERS = CUDA_NAMES | UPSTREAM_NAMES | NPU_NAMES | {
    "accelerate.GradScalerKwargs",
    "accelerate.utils.GradScalerKwargs",
    "accelerate.utils.dataclasses.GradScalerKwargs",
}  # fmt: skip


class TunedLossScale(Rule):
    """A loss scale with numbers of its own, found on another device."""

    code = "NP422"
    name = "tuned-loss-scale"
    severity = Severity.INFO
    markers = tuple(rf"\b{name}\s*=" for name in sorted(_POLICY))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        given = [keyword for keyword in node.keywords if keyword.arg in _POLICY]
        if given and context.name_of(node.func) in _SCALERS:
            yield context.finding(
                self,
                given[0],
                "these numbers were found on another device: see how often the scale falls in the first steps on the"
                " NPU; torch.npu.amp.GradScaler(dynamic=False) keeps a scale fixed, which ports did where it fell to 1",
                basis=Basis("torch.npu.amp.GradScaler takes dynamic", "measured", "torch_npu 2.13.0"),
            )


RULES: tuple[type[Rule], ...] = (OverflowSoughtAsInf, TunedLossScale)
