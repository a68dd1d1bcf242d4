"""Gated linear units written out: one half, or one of two projections, through an activation and times the other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.findings import Finding
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.gated_fix import gated_fix
from npuport.rules.fusable.match import TORCH, FusableRule, Match, fusable, is_available, with_fix
from npuport.rules.fusable.values import SAME_NUMBERS, Value, bare, followed, same

_ACTIVATIONS = ("silu", "gelu", "activation")
_CALLS = ("silu", "gelu", "swish", "act", "act_fn", "activation_fn", "activation_func", "activation", "nonlinearity")


class GatedUnitInSteps(FusableRule):
    """SwiGLU or GEGLU in steps."""

    code = "NP645"
    name = "gated-unit-in-steps"
    markers = tuple((f"{name}(", rf"(?<![a-zA-Z]){name}\(") for name in _CALLS)
    words = ("silu", "gelu", "swish", "act", "nonlinearity")
    holds = re.compile(r"\*")
    needs = (TORCH, (" * ",))
    fuses = True

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:  # noqa: ARG004
        found = [_gated(value, flow) for op in _ACTIVATIONS for value in flow.of(op)]
        return [match for match in found if match is not None]

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:
        operator = "npu_geglu" if match.anchor.op == "gelu" else "npu_swiglu"
        if not is_available(operator, context):
            return
        name = "GEGLU" if operator == "npu_geglu" else "SwiGLU"
        message = f"{name} in steps: torch_npu.{operator} computes it in one fused kernel"
        if match.anchor.op == "activation":
            message = (
                f"a gated unit: where its activation is silu, torch_npu.{operator} computes it in one fused kernel"
            )
        if match.roles["gate"].op not in {"half", "part"}:
            message += ", once both projections are one, or their results"
        found = fusable(self, [match], context, operator, message)
        yield with_fix(found, context, lambda: gated_fix(match, flow, context))


def _gated(activated: Value, flow: Flow) -> Match | None:
    gate = bare(activated.first)
    for one in followed(activated, lambda value: tuple(use for use in value.uses if use.op in SAME_NUMBERS)):
        for use in one.uses:
            if use.op != "mul" or len(use.inputs) != 2:
                continue
            other = bare(next((value for value in use.inputs if value is not one), one))
            if other is not one and _belong_together(gate, other, activated, flow):
                return Match(activated, use, (activated, use), {"gate": gate, "up": other})
    return None


def _belong_together(gate: Value, other: Value, activated: Value, flow: Flow) -> bool:
    """Whether two values are one tensor's halves, two projections of one input, or all that a small function takes."""
    if gate.op == other.op == "half":
        return same(gate.first, other.first) and _are_halves(gate, other)
    if gate.op == other.op == "part" and bare(gate.first) is bare(other.first):
        source = bare(gate.first)
        return gate.detail != other.detail and source.op in {"chunk", "split", "unbind", "tensor_split"}
    if gate.op == other.op == "parameter":
        return activated.op != "activation" and gate is not other and len(flow.function.body) <= 2
    return _is_projection(gate) and _is_projection(other) and gate is not other and same(gate.first, other.first)


def _is_projection(value: Value) -> bool:
    """``self.w1(x)`` with one input; with other arguments it is no plain layer."""
    if value.op == "linear":
        return True
    return value.op == "call" and str(value.detail).startswith("self.") and len(value.inputs) == 1


def _are_halves(first: Value, second: Value) -> bool:
    """``x[…, :d]`` and ``x[…, d:]``: the same width, and not the same half."""
    if not isinstance(first.detail, tuple) or not isinstance(second.detail, tuple):
        return False
    return bool(first.detail[0] != second.detail[0] and first.detail[1] == second.detail[1])
