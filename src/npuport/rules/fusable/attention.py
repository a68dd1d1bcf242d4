"""Attention written out: a product of query and key, a softmax, and a product with the value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.findings import Applicability, Finding, Fix
from npuport.rules.base import Context
from npuport.rules.fusable.attention_claim import claim_of
from npuport.rules.fusable.attention_rewrite import edits_of, rewriting
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import TORCH, FusableRule, Match, fusable, name_in_scope, with_fix
from npuport.rules.fusable.values import Value, bare

_PRODUCTS = {"matmul", "einsum", "baddbmm"}
_BEFORE = {
    "cast", "layout", "copy", "add", "sub", "mul", "div", "masked_fill", "where", "clamp", "choice", "dropout", "cat",
    "part", "half", "other", "tanh",
}  # fmt: skip
_AFTER = {"cast", "layout", "copy", "dropout", "choice", "mul", "div", "masked_fill", "where", "half", "part"}
# Functions that a matrix of scores, or of probabilities, may pass through and still be one.
_ON_SCORES = re.compile(r"(?i)mask|bias|alibi|max|min|pos|tanh|nan_to_num|cap$|clip|scale")
_ON_WEIGHTS = re.compile(r"(?i)drop|mask|nan_to_num|quant")


class AttentionByHand(FusableRule):
    """Attention in separate steps."""

    code = "NP641"
    name = "attention-in-steps"
    markers = ("softmax", "Softmax")
    words = ("softmax", "Softmax", "Module")
    holds = re.compile(r"matmul|bmm\b|einsum|@|\.mm\(")
    needs = (TORCH, ("matmul", "bmm", "einsum", " @ ", ".mm("))
    fuses = True

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:  # noqa: ARG004
        return attention_in(flow)

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:
        steps = ", ".join(step for step in ("scale", "mask", "bias", "softcap", "dropout") if step in match.roles)
        message = f"attention in steps{f' (with {steps})' if steps else ''}: "
        fused = "sdpa" in flow.operations
        if fused:
            message += "the other branch calls scaled_dot_product_attention, the fused kernel: take it on an NPU"
        elif "ALL_ATTENTION_FUNCTIONS" in context.module.text:
            message += 'attn_implementation="sdpa" takes the fused kernel of scaled_dot_product_attention instead'
        else:
            message += "torch.nn.functional.scaled_dot_product_attention computes it in one fused kernel"
        if "scale" not in match.roles:
            message += ", with scale=1.0, for none is seen here"
        if "bias" in match.roles:
            message += ", or torch_npu.npu_fusion_attention, which takes an added bias as pse"
        found = fusable(self, [match], context, "scaled_dot_product_attention", message, kept=_kept(match))
        yield found if fused else with_fix(found, context, lambda: _fix(match, flow, context))


def _fix(match: Match, flow: Flow, context: Context) -> Fix:
    """One call in place of the steps.

    Raises:
        Unfit: saying why there is none.
    """
    if not context.settings.torch_at_least("2.1"):
        raise Unfit("scaled_dot_product_attention takes no scale before torch 2.1")
    found = rewriting(match, flow, context)
    functional = name_in_scope("torch.nn.functional", found.region.last, context)
    function = f"{functional}.scaled_dot_product_attention"
    claim = claim_of(found, function, flow, context)
    needs = "torch" if functional == "torch.nn.functional" else None
    title = f"call {function}" if found.fused_on_npu else f"call {function}, fused on an NPU once its mask is bool"
    edits = edits_of(found, function, context)
    return context.fix(edits, Applicability.UNSAFE, title, needs=needs, claim=claim)


def attention_in(flow: Flow) -> list[Match]:
    """Every attention in a function. Softmaxes on several branches between the same products are one."""
    found: list[Match] = []
    for softmax in flow.of("softmax"):
        match = _attention(softmax)
        if match is not None and all(match.result is not other.result for other in found):
            found.append(match)
    return found


def _attention(softmax: Value) -> Match | None:
    after = _way_to_value(softmax)
    if after is None or not softmax.inputs:
        return None
    roles: dict[str, Value] = {}
    before = _way_from_product(softmax.first, {})
    if before is None:
        return None
    product = before[0]
    query, key = _factors(product)
    if _is_weight(query) or _is_weight(key):
        return None
    result, weights = after[-1], after[-2]
    roles["query"], roles["key"] = query, key
    roles["value"] = next((bare(one) for one in _operands(result) if one is not weights), result)
    for value, inner in zip(before[1:], before, strict=False):
        _add_role(value, inner, roles)
    _add_scale_of_factors(roles, product)
    for value in after[:-1]:
        if value.op == "dropout":
            roles.setdefault("dropout", value.named.get("p", value))
    return Match(softmax, result, (*before, *after), roles)


def _operands(product: Value) -> tuple[Value, ...]:
    return product.inputs[1:3] if product.op == "baddbmm" else product.inputs


def _factors(product: Value) -> tuple[Value, Value]:
    left, *rest = _operands(product)
    return bare(left), bare(rest[0] if rest else left)


def _is_weight(value: Value) -> bool:
    """Whether a factor is a parameter of a layer, so that the product is a linear layer."""
    return value.op == "attribute" and "weight" in str(value.detail)


def _way_from_product(value: Value, known: dict[int, list[Value] | None]) -> list[Value] | None:
    """The values from a product to ``value``, which are the scores on their way to the softmax."""
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = None
    if value.op in _PRODUCTS and len(_operands(value)) >= 2:
        known[id(value)] = [value]
    elif value.op in _BEFORE or (value.op == "call" and _ON_SCORES.search(str(value.detail).rpartition(".")[2])):
        ways = [way for one in _inputs_in_order(value) if (way := _way_from_product(one, known)) is not None]
        if ways:
            known[id(value)] = [*(max(ways, key=len) if value.op == "choice" else ways[0]), value]
    return known[id(value)]


def _inputs_in_order(value: Value) -> tuple[Value, ...]:
    """The inputs of a step, those that hold the scores before others."""
    if value.op == "where":  # (condition, this, that), or this.where(condition, that)
        return (*value.inputs[1:], *value.inputs[:1])
    return value.inputs


def _way_to_value(softmax: Value) -> list[Value] | None:
    """The values from the softmax to the product with the value."""
    waiting = [[softmax]]
    seen = {id(softmax)}
    while waiting:
        way = waiting.pop(0)
        for use in way[-1].uses:
            if id(use) in seen:
                continue
            seen.add(id(use))
            if use.op in _PRODUCTS and len(_operands(use)) >= 2:
                return [*way, use]
            passes = use.op == "call" and _ON_WEIGHTS.search(str(use.detail).rpartition(".")[2])
            if (use.op in _AFTER or passes) and use.inputs and (use.first is way[-1] or use.op in {"choice", "mul"}):
                waiting.append([*way, use])
    return None


def _add_role(value: Value, inner: Value, roles: dict[str, Value]) -> None:
    """What one step between the product and the softmax does to the scores."""
    others = [one for one in value.inputs if one is not inner]
    if value.op in {"mul", "div"} and others:
        roles.setdefault("scale", others[0])
    elif value.op in {"masked_fill", "where"} and others:
        roles.setdefault("mask", others[0])
    elif value.op in {"add", "sub"} and others:
        roles.setdefault("mask" if "mask" in _word(others[0]) else "bias", others[0])
    elif value.op in {"call", "tanh"}:
        word = str(value.detail or value.op).lower()
        role = "softcap" if "tanh" in word or "cap" in word else "mask" if "mask" in word else "bias"
        named = (one for one in others if role in _word(one))
        roles.setdefault(role, next(named, value))


def _word(value: Value, depth: int = 4) -> str:
    """The names that a value is made from."""
    value = bare(value)
    if value.op in {"parameter", "name", "attribute", "call"}:
        return str(value.detail or "").lower()
    return " ".join(_word(one, depth - 1) for one in value.inputs[:2]) if depth > 0 else ""


def _add_scale_of_factors(roles: dict[str, Value], product: Value) -> None:
    """``(q * scale) @ k``, and the ``alpha`` of baddbmm."""
    if product.op == "baddbmm" and "alpha" in product.named:
        roles.setdefault("scale", product.named["alpha"])
    for role in ("query", "key"):
        factor = roles[role]
        if factor.op in {"mul", "div"} and len(factor.inputs) == 2 and _is_scale(factor.inputs[1]):
            roles.setdefault("scale" if role == "query" else "scale of key", factor.inputs[1])
            roles[role] = bare(factor.first)


def _is_scale(value: Value) -> bool:
    return "scal" in _word(value) or value.op in {"constant", "pow", "call", "sqrt", "div"}


def _kept(match: Match) -> bool | None:
    """Whether the function also hands on the weights, which a fused kernel does not give."""
    kept = any(use.op == "tuple" for value in match.steps[:-1] for use in value.uses)
    return kept or None
