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
from npuport.rules.synchronization import is_now_and_then, trains
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
            f"{known.name} clips what overflows to the largest number and turns NaN into 0, so that this finds no"
            " overflow: ask torch_npu.npu.get_npu_overflow_flag(), after clear_npu_overflow_flag() before the step, and"
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


class OverflowSoughtAtEveryStep(Rule):
    """A training loop asks at every step, on the host, whether a loss or gradients overflowed."""

    code = "NP424"
    name = "overflow-sought-at-every-step"
    severity = Severity.ADVICE
    agnostic = True
    markers = (r"\bif\b.*\bisinf\(", r"\bif\b.*\bisnan\(", r"\bif\b.*\bisfinite\(")
    needs = ((".backward(",), (".step(",))
    nodes = (ast.If,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        return not saturates(settings)  # such a chip has nothing to find: NP421 says what to ask

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.If)
        tests = [part for part in ast.walk(node.test) if _is_test_on_device(part, context)]
        loops = [around for around in ancestors(node) if isinstance(around, ast.For | ast.While) and trains(around)]
        if not tests or not loops or is_now_and_then(node, loops[0]):
            return
        scaled = any("GradScaler" in text for text in context.project.texts.values())
        skips = "; the gradient scaler skips such a step by itself" if scaled else ""
        one = _as_one_test(node.test, context)
        yield context.finding(
            self,
            node.test,
            "the host waits here for the device at every step, once for each test: keep the answer on the device"
            f" (a sum over steps), and look at it now and then{skips}",
            fix=context.replace_node(node.test, one, title="one test for both") if one else None,
            basis=Basis("a tensor's truth is read on the host, which waits for it", "documented", "torch 2.13.0"),
            waits=len(tests),
        )


def _is_test_on_device(node: ast.AST, context: Context) -> bool:
    return (
        isinstance(node, ast.Call)
        and (context.name_of(node.func) or "").startswith("torch.")
        and _is_test(node, context)
        and not any(isinstance(part, ast.Attribute) and part.attr in {"item", "cpu"} for part in ast.walk(node))
    )


def _as_one_test(test: ast.expr, context: Context) -> str | None:
    """``torch.isnan(x).any() or torch.isinf(x).any()`` as one: ``not torch.isfinite(x).all()``."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.Or) or len(test.values) != 2:
        return None
    halves = [_test_and_whether_any(half) for half in test.values]
    names = {context.name_of(call.func) for call, _ in halves if call is not None}
    subjects = {ast.unparse(call).partition("(")[2] for call, _ in halves if call is not None}
    if names != {"torch.isnan", "torch.isinf"} or len(subjects) != 1 or len({any_ for _, any_ in halves}) != 1:
        return None
    call, with_any = halves[0]
    assert call is not None
    if len(call.args) != 1 or call.keywords or any(isinstance(part, ast.Call) for part in ast.walk(call.args[0])):
        return None  # what is called twice may change twice
    function = context.module.segment(call.func)
    owner = function[: -len(function.rpartition(".")[2])]
    if not owner:
        return None  # a name of its own, and isfinite may not be imported
    return f"not {owner}isfinite({context.module.segment(call.args[0])}){'.all()' if with_any else ''}"


def _test_and_whether_any(half: ast.expr) -> tuple[ast.Call | None, bool]:
    """``torch.isnan(x)`` of itself or of ``torch.isnan(x).any()``."""
    if not isinstance(half, ast.Call):
        return None, False
    if isinstance(half.func, ast.Attribute) and half.func.attr == "any" and isinstance(half.func.value, ast.Call):
        return (half.func.value, True) if not half.args and not half.keywords else (None, False)
    return half, False


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


RULES: tuple[type[Rule], ...] = (OverflowSoughtAsInf, TunedLossScale, OverflowSoughtAtEveryStep)
