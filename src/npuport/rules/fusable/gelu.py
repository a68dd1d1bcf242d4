"""GELU written out with tanh, erf or sigmoid."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from npuport.findings import Finding, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.match import TORCH, FusableRule, Match, cast_back, fusable, is_available, with_fix
from npuport.rules.fusable.rewriting import Write, replacement
from npuport.rules.fusable.values import Value, followed

Number = Callable[[float], float]


@dataclass(frozen=True)
class _Form:
    """One form of GELU: what it computes, and what computes it at once. ``note`` is for the finding."""

    formula: Number
    operator: str
    call: str
    note: str = ""


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# By the function that each is made of. torch.nn.functional.gelu is that with tanh, by default (NP649).
_FORMS = MappingProxyType(
    {
        "tanh": _Form(
            lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
            "gelu",
            'torch.nn.functional.gelu({}, approximate="tanh")',
        ),
        "erf": _Form(
            lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
            "npu_gelu",
            'torch_npu.npu_gelu({}, approximate="none")',
        ),
        "sigmoid": _Form(
            lambda x: x * _sigmoid(1.702 * x),
            "npu_fast_gelu",
            "torch_npu.npu_fast_gelu({})",
            ", by the same formula, which differs from GELU with erf by up to 0.021",
        ),
    }
)
_NAMES = {"tanh": "GELU with tanh", "erf": "GELU with erf", "sigmoid": "quick GELU"}


class GeluInSteps(FusableRule):
    """GELU in steps."""

    code = "NP648"
    name = "gelu-in-steps"
    markers = (r"tanh\(", r"\berf\(", r"sigmoid\(")
    words = ("tanh", "erf", "sigmoid")
    holds = re.compile(r"0\.0447|\berf\(|1\.702")
    needs = (TORCH, ("0.0447", "erf(", "1.702"))
    fuses = True

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:
        found = [_gelu(value, form.formula, flow, context) for op, form in _FORMS.items() for value in flow.of(op)]
        return [match for match in found if match is not None]

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:
        form = _FORMS[match.anchor.op]
        if form.operator == "gelu" or is_available(form.operator, context):
            called = form.call.partition("(")[0]
            message = f"{_NAMES[match.anchor.op]} in steps: {called} computes it in one kernel{form.note}"
            found = fusable(self, [match], context, form.operator, message)
            yield with_fix(found, context, lambda: _fix(match, form, flow, context))


_CASES = ("lead=(3,), D=8, scale=1.0", "lead=(1, 5), D=33, scale=4.0", "lead=(2, 1, 7), D=64, scale=0.01")


def _fix(match: Match, form: _Form, flow: Flow, context: Context) -> Fix:
    x = match.roles["input"]

    def call(write: Write) -> str:
        return form.call.format(write(x))

    inputs = [(Input("x", "tensor(*lead, D, scale=scale)"), x)]
    return replacement([(match.result, call)], inputs, _CASES, flow, context)


# -- what is computed, whatever the spelling ---------------------------------------------------------------------------

# Far enough apart that the three forms differ by more than the digits that people write their constants with.
_POINTS = (-2.2, -0.7, 0.4, 1.3, 2.4)
_DIGITS = 2e-5
_ON_THE_WAY = frozenset({"add", "mul", "div", "cast"})


def _gelu(anchor: Value, formula: Number, flow: Flow, context: Context) -> Match | None:
    """The nearest value computed from ``anchor`` that is the formula of one of the values it is computed from."""
    below = list(followed(anchor, lambda value: value.inputs))
    for result in followed(anchor, lambda value: tuple(use for use in value.uses if use.op in _ON_THE_WAY)):
        if result.op not in {"mul", "div"}:
            continue
        subjects = [one for one in below[1:] if one.op != "constant" and _is(formula, result, one, flow, context)]
        if subjects:
            whole = next((one for one in subjects if cast_back(result, one) is not result), subjects[0])
            last = cast_back(result, whole)
            steps = tuple(one for one in (anchor, result, last) if one.node is not None)
            return Match(anchor, last, steps, {"input": whole})
    return None


def _is(formula: Number, result: Value, subject: Value, flow: Flow, context: Context) -> bool:
    try:
        return all(
            abs(_number(result, subject, x, flow, context) - formula(x)) < _DIGITS * max(1.0, abs(x)) for x in _POINTS
        )
    except (_UnknownError, ArithmeticError, ValueError):
        return False


class _UnknownError(Exception):
    """A value is made of something else than numbers and the one tensor."""


_FUNCTIONS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "pow": lambda a, b: a**b,
        "neg": lambda a: -a,
        "square": lambda a: a * a,
        "sqrt": math.sqrt,
        "rsqrt": lambda a: 1 / math.sqrt(a),
        "tanh": math.tanh,
        "erf": math.erf,
        "sigmoid": _sigmoid,
    }
)
_CALLS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "math.sqrt": math.sqrt,
        "numpy.sqrt": math.sqrt,
        "math.pow": math.pow,
        "torch.tensor": float,
    }
)
_CONSTANTS = {"math.pi": math.pi, "numpy.pi": math.pi, "torch.pi": math.pi}


def _number(value: Value, subject: Value, x: float, flow: Flow, context: Context) -> float:
    """What ``value`` is where ``subject`` is ``x``, computed with Python's numbers.

    Raises:
        _UnknownError: it depends on anything else.
    """
    if value is subject:
        return x
    if isinstance(value.constant, int | float):
        return float(value.constant)
    if value.op == "attribute" and value.node is not None:
        name = flow.name_of(value.node, context)
        if name in _CONSTANTS:
            return _CONSTANTS[name]
    function = _FUNCTIONS.get(value.op)
    inputs = value.inputs
    if value.op == "cast":
        return _number(value.first, subject, x, flow, context)
    if value.op == "call" and isinstance(value.node, ast.Call):
        function = _CALLS.get(flow.name_of(value.node.func, context) or "")
        inputs = value.inputs[:1] if function is float else inputs
    if function is None or (value.named and function is not float):  # alpha= of torch.add
        raise _UnknownError
    try:
        return float(function(*(_number(one, subject, x, flow, context) for one in inputs)))
    except TypeError:  # another number of arguments
        raise _UnknownError from None
