"""Rotary position embeddings written out: by halves, by pairs, by complex numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Finding
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow, flow_of
from npuport.rules.fusable.match import TORCH, FusableRule, Match, fusable, is_available, with_fix
from npuport.rules.fusable.rotary_fix import rotary_fix
from npuport.rules.fusable.values import SAME_NUMBERS, Value, bare, followed, same

_BY_NAME = re.compile(r"(?i)rotate_?(?:half|every_two|pairwise|interleaved?|neox|gptj)|rot(?:ate)?(?:_half)?$")
_BY_PAIRS = re.compile(r"(?i)every_two|pairwise|interleave|gptj|\brot$")
_OF_ROTATION = re.compile(r"(?i)cos|sin|freq|rope|rot|theta|cis")


class RotaryInSteps(FusableRule):
    """A tensor, times the cosine, and the same tensor rotated by a quarter, times the sine."""

    code = "NP644"
    name = "rotary-embedding-in-steps"
    markers = (
        ("rot", r"(?<![a-zA-Z])rot(?:ate)?_?(?:half|every|pair|inter|neox|gptj)?\w*\("),
        ("cat(", r"\bcat\(\s*[\[(]\s*-"),
        ("stack(", r"\bstack\(\s*[\[(]\s*-"),
        "view_as_real",
        ("cos", r"\*\s*[\w.]*cos\w*\)?\s*-\s*.*\*\s*[\w.]*sin"),
        ("freqs_cis[", r"\* freqs_cis\[.* - .*\* freqs_cis\["),
    )
    nodes = (ast.Call, ast.BinOp)
    words = ("rot", "cat", "stack", "view_as_real")
    holds = re.compile(r"\*")
    needs = (TORCH, ("cos", "view_as_real", "freqs_cis"))
    fuses = True

    def interests(self, node: ast.AST) -> bool:
        return isinstance(node.op, ast.Sub) if isinstance(node, ast.BinOp) else super().interests(node)

    @staticmethod
    def matches(flow: Flow, context: Context) -> list[Match]:
        return [*_by_rotation(flow, context), *_by_parts(flow, context), *_by_complex(flow)]

    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:
        found = self.found(flow, context)
        if match is not found[0] or not is_available("npu_rotary_mul", context):
            return  # one finding stands for the query and for the key
        mode = str(match.roles["mode"].detail)
        called = f'torch_npu.npu_rotary_mul(x, cos, sin, "{mode}")'
        message = f"rotary embedding in steps: {called} computes it in one fused kernel"
        one = fusable(self, found, context, "npu_rotary_mul", message, tensors=len(found))
        yield with_fix(one, context, lambda: rotary_fix(found, flow, context))


def _by_rotation(flow: Flow, context: Context) -> Iterator[Match]:
    """``x * cos + rotate(x) * sin``."""
    for value in list(flow.values):
        rotated = rotated_by(value, flow, context)
        if rotated is None:
            continue
        subject, mode = rotated
        for one in followed(value, lambda step: tuple(use for use in step.uses if use.op in SAME_NUMBERS)):
            for product in one.uses:
                match = _sum_with(product, one, value, subject, mode) if product.op == "mul" else None
                if match is not None:
                    yield match


def _sum_with(product: Value, rotated: Value, anchor: Value, subject: Value, mode: str) -> Match | None:
    sine = next((one for one in product.inputs if one is not rotated), product)
    for one in followed(product, lambda step: tuple(use for use in step.uses if use.op in SAME_NUMBERS)):
        for total in one.uses:
            if total.op != "add":
                continue
            plain = bare(next((part for part in total.inputs if part is not one), total))
            if plain.op == "mul" and any(same(part, subject) for part in plain.inputs):
                cosine = next((part for part in plain.inputs if not same(part, subject)), plain)
                roles = {"input": subject, "cos": cosine, "sin": sine, "mode": Value("constant", detail=mode)}
                return Match(anchor, total, (plain, anchor, product, total), roles)
    return None


def rotated_by(value: Value, flow: Flow, context: Context) -> tuple[Value, str] | None:
    """What a value is the rotation of, and the mode: (-x2, x1) of the halves, or (-x1, x0) of each pair."""
    if value.op in {"cat", "stack"} and len(value.inputs) >= 2 and value.first.op == "neg":
        second, first = bare(value.first.first), bare(value.inputs[1])
        if first.op == second.op and first.op in {"half", "pair", "part"} and same(first.first, second.first):
            pairs = first.op == "pair" or value.op == "stack"
            return bare(first.first), "interleave" if pairs else "half"
    if value.op == "call" and value.inputs and isinstance(value.detail, str):
        name = value.detail.rpartition(".")[2]
        if "rot" in name.lower() and _BY_NAME.search(name):
            mode = _mode_of_own(value, flow, context)
            return (bare(value.first), mode) if mode is not None else None
    return None


def _mode_of_own(call: Value, flow: Flow, context: Context) -> str | None:
    """The mode of a function called rotate_half or the like: from its body where that is here, else from its name."""
    node = call.node
    assert isinstance(node, ast.Call)
    own = context.resolver.definition(node.func, flow.scope)
    if own is not None and isinstance(own.node, ast.FunctionDef) and own.node is not flow.function:
        there = Context(own.module, context.project, context.settings)
        inner = flow_of(own.node, there)
        modes = [found[1] for one in inner.values if (found := rotated_by(one, inner, there)) is not None]
        return modes[0] if modes else None
    return "interleave" if _BY_PAIRS.search(str(call.detail)) else "half"


def _by_parts(flow: Flow, context: Context) -> Iterator[Match]:
    """``a * cos - b * sin`` and ``b * cos + a * sin`` of two parts of one tensor."""
    totals = flow.of("add")
    for real in flow.of("sub"):
        if len(real.inputs) != 2 or any(bare(one).op != "mul" for one in real.inputs) or real.node is None:
            continue
        left, right = (bare(one) for one in real.inputs)
        for first, cosine in _orders(left):
            for second, sine in _orders(right):
                if not _are_parts(first, second) or not _OF_ROTATION.search(context.module.segment(real.node)):
                    continue
                other = next((one for one in totals if _is_imaginary(one, first, second, cosine, sine)), None)
                if other is not None:
                    pairs = first.op == "pair" or (first.op == "part" and str(first.detail).startswith("["))
                    mode = Value("constant", detail="interleave" if pairs else "half")
                    roles = {"input": bare(first.first), "cos": cosine, "sin": sine, "mode": mode}
                    yield Match(real, other, (real, other), roles)
                    break
            else:
                continue
            break


def _orders(product: Value) -> Iterator[tuple[Value, Value]]:
    if len(product.inputs) == 2:
        yield bare(product.inputs[0]), bare(product.inputs[1])
        yield bare(product.inputs[1]), bare(product.inputs[0])


def _are_parts(first: Value, second: Value) -> bool:
    return (
        first.op == second.op
        and first.op in {"half", "pair", "part"}
        and first.detail != second.detail
        and same(first.first, second.first)
    )


def _is_imaginary(total: Value, first: Value, second: Value, cosine: Value, sine: Value) -> bool:
    products = [bare(one) for one in total.inputs]
    if len(products) != 2 or any(one.op != "mul" for one in products):
        return False
    return any(_has(one, second, cosine) and _has(two, first, sine) for one, two in (products, products[::-1]))


def _has(product: Value, left: Value, right: Value) -> bool:
    return any(same(one, left) and same(two, right) for one, two in _orders(product))


def _by_complex(flow: Flow) -> Iterator[Match]:
    """``view_as_real(view_as_complex(x) * freqs)``."""
    for real in flow.of("as_real"):
        product = bare(real.first)
        if product.op != "mul" or len(product.inputs) != 2:
            continue
        for subject, freqs in _orders(product):
            if subject.op == "as_complex":
                mode = Value("constant", detail="interleave")
                roles = {"input": bare(subject.first), "freqs": freqs, "mode": mode}
                yield Match(real, real, (subject, product, real), roles)
                break
