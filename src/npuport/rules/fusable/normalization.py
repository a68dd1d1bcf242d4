"""Norms written out: the root of the mean square, and a residual that is added before a layer norm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.findings import Finding, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.match import TORCH, FusableRule, Match, cast_back, fusable, is_available, with_fix
from npuport.rules.fusable.rewriting import Write, replacement
from npuport.rules.fusable.values import SAME_NUMBERS, Value, alternatives, bare, followed, same

_TO_ROOT = SAME_NUMBERS | {"add", "choice", "clamp"}
# (x**2).mean(, x.pow(2).mean(, torch.square(x).mean(, (x * x).mean(, and the same as torch.mean(…)
_MEAN_SQUARE = (
    r"(?:\*\*\s*2\)|pow\(2\)|square\(\w*\)|(\w+) \* \1\))\)?\.mean\("
    r"|\bmean\(.*(?:\*\*|square|pow|(\w+) \* \2\b)"
)


class RmsNormInSteps(FusableRule):
    """A tensor is divided by the root of its mean square."""

    code = "NP643"
    name = "rms-norm-in-steps"
    markers = ("rsqrt", ("mean(", _MEAN_SQUARE))
    words = ("rsqrt", "mean")
    holds = re.compile(r"mean\(")
    needs = (TORCH, ("mean(",))
    fuses = True

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:  # noqa: ARG004
        return [match for mean in flow.of("mean") if (match := _rms_norm(mean, flow)) is not None]

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:
        if is_available("npu_rms_norm", context):
            message = "RMSNorm in steps: torch_npu.npu_rms_norm computes it in one fused kernel"
            message += "" if "weight" in match.roles else ", with a weight of ones where it has none"
            found = fusable(self, [match], context, "npu_rms_norm", message)
            yield with_fix(found, context, lambda: _rms_norm_fix(match, flow, context))


class ResidualAndNormInSteps(FusableRule):
    """A residual is added, and the sum goes through a layer norm."""

    code = "NP646"
    name = "residual-and-norm-in-steps"
    markers = (("orm(", r"[nN]orm\([^#]*[\w)\]] \+ "),)
    words = ("norm", "Norm")
    holds = re.compile(r"[nN]orm\(")
    needs = (TORCH, ("LayerNorm", "layer_norm"))

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:  # noqa: ARG004
        return [match for norm in flow.of("layer_norm") if (match := _residual(norm)) is not None]

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:  # noqa: ARG002
        if is_available("npu_add_layer_norm", context):
            message = "a sum and its layer norm: torch_npu.npu_add_layer_norm computes both in one fused kernel"
            yield fusable(self, [match], context, "npu_add_layer_norm", message)


_RMS_NORM_CASES = (
    "lead=(3,), D=8, eps=0.1, scale=1.0",
    "lead=(1, 5), D=33, eps=1e-6, scale=1.0",
    "lead=(2, 1, 7), D=64, eps=1e-5, scale=1e-3",
)


def _rms_norm_fix(match: Match, flow: Flow, context: Context) -> Fix:
    roles = match.roles
    subject, weight, eps = roles["input"], roles.get("weight"), roles.get("epsilon")
    inputs = [(Input("x", "tensor(*lead, D, scale=scale)"), subject)]
    if weight is not None:
        inputs.append((Input("weight", "tensor(D)"), _parameter(weight)))
    if eps is not None:
        inputs.append((Input("eps", "eps"), eps))

    def call(write: Write) -> str:
        x = write(subject)
        scale = write(weight) if weight is not None else f"{x}.new_ones({x}.shape[-1])"
        return f"torch_npu.npu_rms_norm({x}, {scale}, epsilon={write(eps) if eps is not None else 0.0})[0]"

    return replacement([(cast_back(match.result, subject), call)], inputs, _RMS_NORM_CASES, flow, context)


def _parameter(weight: Value) -> Value:
    """The tensor in a weight such as ``1.0 + self.weight.float()``."""
    while weight.op in SAME_NUMBERS or (weight.op in {"add", "mul"} and any(_is_number(one) for one in weight.inputs)):
        weight = next(one for one in weight.inputs if not _is_number(one))
    return weight


def _is_number(value: Value) -> bool:
    return isinstance(value.constant, int | float)


def _residual(norm: Value) -> Match | None:
    """``norm(x + y)`` of two tensors; a number or a parameter is no residual."""
    total = norm.first
    if total.op != "add" or len(total.inputs) != 2 or any(one.op in {"constant", "attribute"} for one in total.inputs):
        return None
    return Match(norm, norm, (total, norm), {"input": total.inputs[0], "residual": total.inputs[1]})


def _rms_norm(mean: Value, flow: Flow) -> Match | None:
    square = bare(mean.first)
    subject = _squared(square)
    if subject is None or not _is_over_last(mean) or _is_centred(subject):
        return None
    for root in followed(mean, lambda one: tuple(use for use in one.uses if use.op in _TO_ROOT or one is mean)):
        if root.op not in _TO_ROOT and root is not mean:
            continue
        for use in root.uses:
            scaled = _scaled(use, subject)
            if scaled is not None:
                return _match(mean, square, use, scaled, subject, flow)
    return None


def _scaled(root: Value, subject: Value) -> Value | None:
    """What divides ``subject`` by a root: x * rsqrt(m), x / sqrt(m), x * m ** -0.5, x * (1 / sqrt(m))."""
    if root.op == "rsqrt" or (root.op == "pow" and len(root.inputs) == 2 and root.inputs[1].constant == -0.5):
        return _times(root, subject)
    if root.op == "sqrt" or (root.op == "pow" and len(root.inputs) == 2 and root.inputs[1].constant == 0.5):
        for one in followed(root, lambda value: tuple(use for use in value.uses if use.op in {"add", *SAME_NUMBERS})):
            for use in one.uses:
                if use.op == "div" and len(use.inputs) == 2 and use.inputs[1] is one:
                    if same(use.first, subject):
                        return use
                    if use.first.constant in (1, 1.0):
                        return _times(use, subject)
    return None


def _times(root: Value, subject: Value) -> Value | None:
    for one in followed(root, lambda value: tuple(use for use in value.uses if use.op in SAME_NUMBERS)):
        for use in one.uses:
            if use.op == "mul" and any(_holds(other, subject) for other in use.inputs if other is not one):
                return use
    return None


def _holds(value: Value, subject: Value) -> bool:
    """``x``, or ``weight * x``."""
    return same(value, subject) or (value.op == "mul" and any(same(one, subject) for one in value.inputs))


def _match(mean: Value, square: Value, root: Value, scaled: Value, subject: Value, flow: Flow) -> Match:
    roles = {"input": subject}
    eps = _added_to(mean) or _added_to(root)
    if eps is not None:
        roles["epsilon"] = eps
    weighted = next((bare(one) for one in scaled.inputs if one.op == "mul" and not same(one, subject)), None)
    if weighted is not None:
        roles["weight"] = next(one for one in weighted.inputs if not same(one, subject))
    result, last = scaled, scaled
    for one in followed(scaled, lambda value: tuple(use for use in value.uses if use.op in {"cast", "choice"})):
        for use in one.uses:
            if use.op == "mul" and "weight" not in roles:
                others = [other for other in use.inputs if other is not one]
                if others:
                    roles["weight"], result = others[0], use
        last = one if one.op == "cast" else last
    steps = tuple(one for one in (square, mean, root, scaled, last, result) if one in flow.values)
    anchor = root if root.op == "rsqrt" else mean
    return Match(anchor, result, steps, roles)


def _added_to(value: Value) -> Value | None:
    return next((one for use in value.uses if use.op == "add" for one in use.inputs if one is not value), None)


def _squared(value: Value) -> Value | None:
    """What a value is the square of."""
    if value.op == "square" or (value.op == "pow" and len(value.inputs) == 2 and value.inputs[1].constant in (2, 2.0)):
        return bare(value.first)
    if value.op == "mul" and len(value.inputs) == 2 and same(*value.inputs):
        return bare(value.first)
    return None


def _is_over_last(mean: Value) -> bool:
    """Whether a mean is over the last dimension, and the code says so."""
    axis = mean.inputs[1] if len(mean.inputs) > 1 else mean.named.get("dim", mean.named.get("axis"))
    if axis is None:
        return False
    if axis.op == "tuple" and axis.inputs:
        axis = axis.inputs[-1]
    return axis.constant == -1


def _is_centred(subject: Value) -> bool:
    """Whether the mean was taken away before: a layer norm then, and no RMSNorm."""
    return any(one.op == "sub" for one in alternatives(subject))
