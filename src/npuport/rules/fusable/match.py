"""What a pattern finds: the region of code that a fused operator can take the place of, and what is what in it."""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from npuport.facts import chip, custom_operator, fused_operator
from npuport.findings import Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.fusable.dataflow import Flow, flow_of, function_around
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.values import Value, bare


@dataclass(frozen=True)
class Match:
    """Code that computes what a fused operator does.

    ``anchor`` is the step that a rule is shown. ``steps`` are the values that the operator computes at one go, and
    ``result`` the last of them. ``roles`` name what goes in: "query", "key", "value", "scale", "mask", "dropout" and so
    on, where the code has them.
    """

    anchor: Value
    result: Value
    steps: tuple[Value, ...]
    roles: dict[str, Value] = field(default_factory=dict)

    def region(self, context: Context) -> tuple[int, int]:
        """Character offsets from the beginning of the first step to the end of the last."""
        spans = [context.module.lines.span(one.node) for one in self.steps if one.node is not None]
        return min(start for start, _ in spans), max(end for _, end in spans)

    def texts(self, context: Context) -> dict[str, str]:
        """What stands for each role in the source, in the order of the roles."""
        return {
            role: text
            for role, value in self.roles.items()
            if (text := text_of(value, context)) is not None and len(text) <= 80
        }


def text_of(value: Value, context: Context) -> str | None:
    """The source of a value; a parameter's name."""
    if value.op == "parameter":
        return str(value.detail)
    if value.node is None:
        return None
    node = value.node
    if isinstance(node, ast.Name | ast.Attribute | ast.Constant):
        return ast.unparse(node)
    return " ".join(context.module.segment(node).split())


def _is_called(found: Finding, function: ast.AST, context: Context) -> bool:
    """Whether the function that a finding is in calls the operator already, as it does where it guards the original."""
    operator = str(found.evidence["operator"]).rpartition(".")[2]
    start, end = context.module.lines.span(function)
    return operator.startswith("npu_") and context.module.text.find(operator, start, end) >= 0


def name_in_scope(module: str, at: ast.AST, context: Context) -> str:
    """The name that ``module``, such as "torch.nn.functional", goes by at a node: the shortest import of it here."""
    bindings = context.module.scope.bindings
    short = [name for name, found in bindings.items() if any(one.target == module for one in found) and "." not in name]
    scope = context.scope(at)
    own = [name for name in short if all(one.target == module for one in scope.lookup(name))]
    return min(own, key=len) if own else module


def cast_back(result: Value, *subjects: Value) -> Value:
    """The cast of a result to the dtype of one of ``subjects``, where there is one: fused operators give that dtype."""
    if len(result.uses) != 1 or result.uses[0].op != "cast":
        return result
    cast = result.uses[0]
    aim = cast.inputs[1] if len(cast.inputs) > 1 else cast.named.get("dtype")
    is_dtype = aim is not None and aim.op == "attribute" and aim.detail == "dtype"
    return cast if aim is not None and bare(aim.first if is_dtype else aim) in subjects else result


def is_available(operator: str, context: Context) -> bool:
    """Whether the torch_npu of this port's torch has an operator such as "npu_rms_norm", for this port's chip."""
    known, fact, target = custom_operator(operator), fused_operator(operator), chip(context.settings.chip)
    if fact is not None and fact.families and (target is None or target.family not in fact.families):
        return False
    return known is not None and known.is_in(context.settings.torch_version)


def fusable(
    rule: Rule,
    matches: Iterable[Match],
    context: Context,
    operator: str,
    message: str,
    kept: bool | None = None,
    tensors: int | None = None,
) -> Finding:
    """One finding for ``matches`` that stand together: the region of all, the roles of the first.

    ``kept`` says that the code hands on the weights of an attention, ``tensors`` how many tensors it treats alike.
    """
    together = list(matches)
    regions = [one.region(context) for one in together]
    fact = fused_operator(operator)
    limits = f"; {fact.limits}" if fact is not None and fact.limits else ""
    found = context.finding(
        rule,
        (min(start for start, _ in regions), max(end for _, end in regions)),
        message + limits,
        basis=fact.basis if fact is not None else None,
        operator=fact.call if fact is not None else operator,
        weights_kept=kept,
        tensors=tensors,
    )
    return replace(found, evidence={**found.evidence, **together[0].texts(context)})


def with_fix(found: Finding, context: Context, make: Callable[[], Fix]) -> Finding:
    """The finding with the fix that ``make`` gives, or with the reason why there is none; where fixes are wanted."""
    if not context.settings.fuse:
        return found
    try:
        return replace(found, fix=make())
    except Unfit as why:
        return replace(found, message=f"{found.message}; left as it is, for {why}")


TORCH = ("import torch", "from torch")
"""What a file with code for PyTorch holds."""


class FusableRule(Rule):
    """A pattern as a rule: shown a call whose name holds one of ``words``, it looks through the function around it.

    ``holds`` is what the text of such a function always has; looking for it saves following many others.
    """

    severity = Severity.INFO
    edits = False
    agnostic = True
    nodes: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    words: ClassVar[tuple[str, ...]]
    holds: ClassVar[re.Pattern[str]]

    @staticmethod
    @abstractmethod
    def matches(flow: Flow, context: Context) -> list[Match]:
        """What the pattern finds in a function, in order, each piece of code once."""

    @abstractmethod
    def report(self, match: Match, flow: Flow, context: Context) -> Iterator[Finding]:
        """The finding for one match, if a fused operator is there for it."""

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if not self.interests(node):
            return
        function = function_around(node)
        if function is None or not self.holds.search(context.module.text, *context.module.lines.span(function)):
            return
        flow = flow_of(function, context)
        for match in self.found(flow, context):
            if match.anchor.node is node:
                yield from (one for one in self.report(match, flow, context) if not _is_called(one, function, context))

    def interests(self, node: ast.AST) -> bool:
        """Whether a node can be an anchor, by its name alone."""
        assert isinstance(node, ast.Call)
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "Module")
        return any(word in name for word in self.words)

    def found(self, flow: Flow, context: Context) -> list[Match]:
        """The matches in a function, looked for once."""
        if self.code not in flow.found:
            flow.found[self.code] = self.matches(flow, context)
        found: list[Match] = flow.found[self.code]
        return found
