"""GELU with erf, which an NPU computes in the form with tanh."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import chip, fused_operator
from npuport.findings import Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.fusable.match import TORCH, is_available
from npuport.source.module import parent

_NAMES = frozenset({"torch.nn.GELU", "torch.nn.modules.activation.GELU", "torch.nn.functional.gelu"})
_WORDS = ("GELU", "gelu")
_SETTING = "TORCH_NPU_USE_COMPATIBLE_IMPL"


class ExactGelu(Rule):
    """PyTorch's GELU without ``approximate="tanh"``, said once of a module: it is the same everywhere in it."""

    code = "NP649"
    name = "exact-gelu"
    severity = Severity.INFO
    edits = False
    agnostic = True
    markers = tuple((word, rf"\b{word}\b") for word in _WORDS)
    needs = (TORCH,)
    nodes = (ast.Attribute, ast.Name)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        fact, target = fused_operator("gelu"), chip(context.settings.chip)
        if fact is None or (target is not None and target.family not in fact.families):
            return
        if not _is_exact(node, context) or context.project.holding(_SETTING) or _first(context) is not node:
            return
        written = 'torch_npu.npu_gelu(x, approximate="none")'
        instead = written if is_available("npu_gelu", context) else "x * 0.5 * (1 + torch.erf(x / 2 ** 0.5))"
        yield context.finding(
            self,
            node,
            "GELU with erf is computed in the form with tanh on an NPU, whatever approximate says: values differ by up"
            f" to 4.7e-4, gradients by up to 8.7e-4. {_SETTING}=1 (torch_npu 26.0.0 and later) gives the form that is"
            f" asked for; so does {instead}",
            basis=fact.basis,
        )


def _is_exact(node: ast.AST, context: Context) -> bool:
    """Whether a node is GELU of PyTorch, made, called or handed on with the form with erf."""
    if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    if context.name_of(node) not in _NAMES:
        return False
    around = parent(node)
    while isinstance(around, ast.Tuple):
        around = parent(around)
    if not isinstance(around, ast.Call):
        return True
    if around.func is not node:
        return context.name_of(around.func) not in {"builtins.isinstance", "builtins.issubclass"}
    given = [keyword.value for keyword in around.keywords if keyword.arg == "approximate"]
    return not given or (isinstance(given[0], ast.Constant) and given[0].value == "none")


def _first(context: Context) -> ast.AST:
    """The first such node of a module."""
    lines = sorted({line for word in _WORDS for line in context.module.lines.lines_naming(word)})
    found = (node for node in context.module.nodes(lines) if _is_exact(node, context))
    return min(found, key=context.module.lines.span)
