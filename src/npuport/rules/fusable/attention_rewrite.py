"""One call of ``scaled_dot_product_attention`` in place of the steps of an attention.

Its rule: softmax(scale · q kᵀ + mask) v over the last two dimensions, mask a bool tensor (True takes part) or one that
is added (PyTorch's documentation of scaled_dot_product_attention).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.rules.fusable.attention_layouts import as_owner, factors, is_folded, output
from npuport.rules.fusable.attention_masks import Mask, mask_of
from npuport.rules.fusable.attention_region import Region, region_of
from npuport.rules.fusable.attention_scale import scale_of
from npuport.rules.fusable.attention_steps import Step, Steps, flat, part, steps_of
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import Match

_LINE = 120


@dataclass(frozen=True)
class Rewriting:
    """The parts of the call. ``after`` is appended to it, such as ".transpose(1, 2)"."""

    steps: Steps
    region: Region
    query: str
    key: str
    value: str
    mask: Mask
    scale: str | None  # None for the default, 1/√(size of a head)
    dropout: str | None
    after: str
    folded: bool  # of three dimensions, heads in the batch; the fused kernel of an NPU takes four (measured, 2.13.0)

    @property
    def arguments(self) -> list[str]:
        """The arguments of the call, as source."""
        return self._arguments(self.mask.text, self.dropout)

    @property
    def fused_on_npu(self) -> bool:
        """Whether torch_npu has one kernel for the call: not for a mask that is added (measured, torch_npu 2.13.0)."""
        return self.mask.is_bool

    @property
    def to_try(self) -> list[str]:
        """The same as a claim has it: with nothing dropped, and with all that is said of the mask."""
        return self._arguments(self.mask.in_full, None)

    def _arguments(self, mask: str | None, dropout: str | None) -> list[str]:
        given = {
            "attn_mask": mask,
            "dropout_p": dropout,
            "is_causal": "True" if self.mask.causal else None,
            "scale": self.scale,
        }
        tensors = [self.query, self.key, self.value]
        if self.folded:
            tensors = [f"{as_owner(one)}.unsqueeze(1)" for one in tensors]
        return [*tensors, *(f"{key}={text}" for key, text in given.items() if text is not None)]


def rewriting(match: Match, flow: Flow, context: Context) -> Rewriting:
    """How an attention becomes one call.

    Raises:
        Unfit: saying why it does not.
    """
    steps = steps_of(match, flow, context)
    _check_softmax(steps.softmax, flow)
    query, key = factors(steps.product, context)
    value, after = output(steps, context)
    mask = mask_of(steps.on_scores, flow, context)
    scale = scale_of(steps, (query, key), flow, context)
    dropout = _dropout(steps.on_weights, flow, context)
    folded = is_folded(steps.product) and mask.text is None
    after = ".squeeze(1)" if folded else after
    return Rewriting(steps, region_of(steps, flow, context), query, key, value, mask, scale, dropout, after, folded)


def edits_of(rewriting: Rewriting, function: str, context: Context) -> list[Edit]:
    """The last product becomes a call of ``function``; the statements before it go."""
    start, end = _without_parentheses(context.module.lines.span(rewriting.region.result), context.module.text)
    text = laid_out(function, rewriting.arguments, rewriting.after, (start, end), context)
    return [Edit(start, end, text), *rewriting.region.removals]


def _without_parentheses(span: tuple[int, int], text: str) -> tuple[int, int]:
    """The place of a product with the parentheses that only it needed: ``(att @ v).transpose(1, 2)``."""
    start, end = span
    needed = start < 2 or text[start - 1] != "(" or text[end : end + 1] != ")" or text[start - 2].isidentifier()
    return span if needed or text[start - 2] in ")]" else (start - 1, end + 1)


def laid_out(function: str, arguments: list[str], after: str, span: tuple[int, int], context: Context) -> str:
    """A call to be put at ``span``, on one line, or on several where that would be too long."""
    text = context.module.text
    start, end = span
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    rest = (line_end if line_end >= 0 else len(text)) - end
    call = f"{function}({', '.join(arguments)}){after}"
    if start - line_start + len(call) + rest <= _LINE:
        return call
    indent = re.match(r"[ \t]*", text[line_start:])
    outer = indent[0] if indent is not None else ""
    inner = outer + ("\t" if outer.startswith("\t") else "    ")
    whole = ", ".join(arguments)
    named = next((index for index, one in enumerate(arguments) if re.match(r"\w+=(?!=)", one)), len(arguments))
    lines = [", ".join(arguments[:named]), *arguments[named:]]
    if len(inner) + len(whole) < _LINE:
        lines = [whole]
    comma = "," if len(lines) > 1 else ""
    body = "".join(f"{inner}{line}{comma}{context.newline}" for line in lines)
    return f"{function}({context.newline}{body}{outer}){after}"


def _check_softmax(step: Step, flow: Flow) -> None:
    """A softmax over the last dimension.

    Raises:
        Unfit: for another, or one that is not known.
    """
    places = _dimension(step, flow)
    if not places or any(ast.unparse(one) not in {"-1", "3"} for one in places):
        raise Unfit("the softmax is not seen to go over the last dimension")


def _dimension(step: Step, flow: Flow) -> list[ast.expr]:
    node = step.node
    assert isinstance(node, ast.Call)
    if isinstance(node.func, ast.Call):  # nn.Softmax(dim=-1)(scores)
        return _dimension_given_to(node.func)
    if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self":
        made = flow.assigned_on_self(node.func.attr)
        calls = [one for one in made if isinstance(one, ast.Call)]
        return [place for one in calls for place in _dimension_given_to(one)] if len(calls) == len(made) else []
    named = [step.named[key] for key in ("dim", "axis") if key in step.named]
    return named or list(step.operands[:1])


def _dimension_given_to(made: ast.Call) -> list[ast.expr]:
    return [one.value for one in made.keywords if one.arg == "dim"] or made.args[:1]


def _dropout(on_weights: Iterable[Step], flow: Flow, context: Context) -> str | None:
    """The probability that the call is given; None for none.

    Raises:
        Unfit: for anything else that is done to the weights.
    """
    found: str | None = None
    for step in on_weights:
        if step.op in {"cast", "copy"}:
            continue
        if step.op != "dropout" or found is not None:
            raise Unfit("more than a dropout is done to the weights")
        found = _probability(step, flow, context)
    return found


def _probability(step: Step, flow: Flow, context: Context) -> str | None:
    node = step.node
    assert isinstance(node, ast.Call)
    function = node.func
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "self":
        made = flow.assigned_on_self(function.attr)
        if not made or any(not _is_dropout(one) for one in made):
            raise Unfit(f"self.{function.attr} is not seen to be an nn.Dropout")
        return _on_condition(f"self.{function.attr}.p", "self.training", step, context)
    if flow.name_of(function, context) not in {"torch.nn.functional.dropout", "torch.dropout"}:
        raise Unfit("how the weights are dropped is not seen")
    asked = step.named.get("p") or (step.operands[0] if step.operands else None)
    when = step.named.get("training") or (step.operands[1] if len(step.operands) > 1 else None)
    never = isinstance(when, ast.Constant) and when.value is False
    if never or (isinstance(asked, ast.Constant) and asked.value == 0):
        return None
    training = None if when is None or isinstance(when, ast.Constant) else flat(when, context)
    return _on_condition("0.5" if asked is None else flat(asked, context), training, step, context)


def _on_condition(chance: str, training: str | None, step: Step, context: Context) -> str:
    tests = [flat(step.condition, context)] if step.condition is not None else []
    tests += [training] if training is not None else []
    return f"{part(chance)} if {' and '.join(map(part, tests))} else 0.0" if tests else chance


def _is_dropout(made: ast.expr | None) -> bool:
    return isinstance(made, ast.Call) and ast.unparse(made.func).rpartition(".")[2] == "Dropout"
