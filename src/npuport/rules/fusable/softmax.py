"""A softmax over scores of which some are left out, outside of attention."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Finding, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.attention import attention_in
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.match import TORCH, FusableRule, Match, cast_back, fusable, is_available, with_fix
from npuport.rules.fusable.rewriting import Write, replacement
from npuport.rules.fusable.values import Value, is_low

_MASKING = {"masked_fill", "where"}


class MaskedSoftmaxInSteps(FusableRule):
    """Masked scores, and their softmax over the last dimension."""

    code = "NP642"
    name = "masked-softmax-in-steps"
    markers = ("softmax", "Softmax")
    words = ("softmax", "Softmax", "Module")
    holds = re.compile(r"masked_fill|where\(")
    needs = (TORCH, ("masked_fill", "where("))
    fuses = True

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:  # noqa: ARG004
        in_attention = {id(step) for match in attention_in(flow) for step in match.steps}
        found = []
        for softmax in flow.of("softmax"):
            match = _masked(softmax) if softmax.inputs and id(softmax) not in in_attention else None
            if match is not None and all(id(step) not in in_attention for step in match.steps):
                found.append(match)
        return found

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:
        if is_available("npu_scaled_masked_softmax", context):
            message = "a mask and a softmax: torch_npu.npu_scaled_masked_softmax computes both in one fused kernel"
            found = fusable(self, [match], context, "npu_scaled_masked_softmax", message)
            yield with_fix(found, context, lambda: _fix(match, flow, context))


# A row that is masked as a whole is left out: the original gives NaN or equal shares, as the low number is chosen.
_CASES = (
    "X=(1, 2, 32, 64), M=(1, 1, 32, 64)",
    "X=(2, 3, 64, 32), M=(2, 1, 1, 32)",
    "X=(3, 1, 32, 96), M=(3, 1, 32, 96)",
)


def _fix(match: Match, flow: Flow, context: Context) -> Fix:
    scores, mask = match.roles["input"], match.roles.get("mask")
    selected = match.roles["kept"] if mask is None else mask
    drawn = "mask(*M)" if mask is not None else "~mask(*M)"
    inputs = [(Input("scores", "tensor(*X)"), scores), (Input("selected", drawn), selected)]

    def call(write: Write) -> str:
        left_out = write(selected) if mask is not None else f"~({write(selected)})"
        return f"torch_npu.npu_scaled_masked_softmax({write(scores)}, {left_out})"

    def fits(write: Write) -> str:
        shape = f"{write(scores)}.shape"
        return f"len({shape}) == 4 and all(size % 32 == 0 and size <= 4096 for size in {shape}[2:])"

    return replacement([(cast_back(match.result, scores), call)], inputs, _CASES, flow, context, when=fits)


def _masked(softmax: Value) -> Match | None:
    if not _is_over_last(softmax):
        return None
    steps = [softmax]
    value = softmax.first
    while value.op in {"cast", "copy"} and value.inputs:
        steps.append(value)
        value = value.first
    if value.op == "choice":
        value = next((one for one in value.inputs if one.op in _MASKING), value)
    if value.op not in _MASKING or len(value.inputs) < 3 or not is_low(value.inputs[2]):
        return None
    if sum(use.op not in {"choice", "attribute"} and use.first is value for use in value.uses) > 1:
        return None  # somebody else wants the masked scores
    mask, scores = value.inputs[1], value.first
    roles = {"input": scores, "mask": mask}
    if value.op == "where":  # (condition, this, that), or this.where(condition, that)
        is_method = isinstance(value.node, ast.Call) and len(value.node.args) == 2
        kept = value.inputs[1] if is_method else value.first
        scores = value.first if is_method else value.inputs[1]
        roles = {"input": scores, "kept": kept}
    if scores.op in {"mul", "div"} and len(scores.inputs) == 2 and scores.inputs[1].op in {"constant", "attribute"}:
        roles["scale"] = scores.inputs[1]
        steps.append(scores)
    return Match(softmax, softmax, (value, *steps), roles)


def _is_over_last(softmax: Value) -> bool:
    axis = softmax.inputs[1] if len(softmax.inputs) > 1 else softmax.named.get("dim", softmax.named.get("axis"))
    if axis is not None:
        return axis.constant == -1
    made = softmax.node.func if isinstance(softmax.node, ast.Call) else None  # nn.Softmax(dim=-1)(scores)
    arguments = [*made.args, *(one.value for one in made.keywords)] if isinstance(made, ast.Call) else []
    return [ast.unparse(one) for one in arguments] == ["-1"]
