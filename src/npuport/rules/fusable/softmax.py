"""A softmax over scores of which some are left out, outside of attention."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.findings import Finding
from npuport.rules.base import Context
from npuport.rules.fusable.attention import attention_in
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.match import TORCH, FusableRule, Match, fusable, is_available
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

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:  # noqa: ARG004
        in_attention = {id(step) for match in attention_in(flow) for step in match.steps}
        found = []
        for softmax in flow.of("softmax"):
            match = _masked(softmax) if softmax.inputs and id(softmax) not in in_attention else None
            if match is not None and all(id(step) not in in_attention for step in match.steps):
                found.append(match)
        return found

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:  # noqa: ARG002
        if is_available("npu_scaled_masked_softmax", context):
            message = "a mask and a softmax: torch_npu.npu_scaled_masked_softmax computes both in one fused kernel"
            yield fusable(self, [match], context, "npu_scaled_masked_softmax", message)


def _masked(softmax: Value) -> Match | None:
    axis = softmax.inputs[1] if len(softmax.inputs) > 1 else softmax.named.get("dim", softmax.named.get("axis"))
    if axis is None or axis.constant != -1:
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
    if sum(use.op != "choice" for use in value.uses) > 1:
        return None  # somebody else wants the masked scores
    mask, scores = value.inputs[1], value.first
    if value.op == "where" and value.inputs[2].op != "constant":
        mask, scores = value.first, value.inputs[1]
    roles = {"input": scores, "mask": mask}
    if scores.op in {"mul", "div"} and len(scores.inputs) == 2 and scores.inputs[1].op in {"constant", "attribute"}:
        roles["scale"] = scores.inputs[1]
        steps.append(scores)
    return Match(softmax, softmax, (value, *steps), roles)
