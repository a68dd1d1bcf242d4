"""Lists of the beginnings of environment variables that a launcher hands on to other machines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors, parent

_NAMED = re.compile(r"(?i)env|export")
_OF_CUDA = {"NCCL", "CUDA", "NVIDIA"}
_PREFIX = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]*)*")


class VariablesHandedOn(Rule):
    """A list of environment variables for other machines that names NCCL's, and none of Ascend's."""

    code = "NP504"
    name = "variables-handed-on"
    severity = Severity.WARNING
    markers = (r"[\"']NCCL_?[\"']",)
    nodes = (ast.List, ast.Tuple, ast.Set)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.List | ast.Tuple | ast.Set)
        if not is_list_of_variables(node) or "HCCL" in context.module.text:
            return
        texts = {str(part.value).rstrip("_") for part in node.elts if isinstance(part, ast.Constant)}
        joint = "_" if any(isinstance(p, ast.Constant) and p.value == "NCCL_" for p in node.elts) else ""
        added = [name for name in ("HCCL", "ASCEND") if name not in texts]
        end = context.module.lines.span(node.elts[-1])[1]
        edit = Edit(end, end, "".join(f', "{name}{joint}"' for name in added))
        yield context.finding(
            self,
            node,
            "the other machines get NCCL's variables and none of Ascend's: hand on those that begin with HCCL and"
            " ASCEND, and LD_LIBRARY_PATH, in which CANN is found",
            fix=context.fix([edit], Applicability.UNSAFE, "hand on HCCL's and Ascend's too"),
            basis=Basis("deepspeedai/DeepSpeed pull request 4830", "documented"),
        )


def is_list_of_variables(node: ast.AST | None) -> bool:
    """Whether a list names the beginnings of environment variables, NCCL's among them."""
    if not isinstance(node, ast.List | ast.Tuple | ast.Set) or not node.elts:
        return False
    texts = [part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if len(texts) != len(node.elts) or not all(_PREFIX.fullmatch(text) for text in texts):
        return False
    if not _OF_CUDA & {text.rstrip("_") for text in texts}:
        return False
    around = parent(node)
    if isinstance(around, ast.Return):
        functions = (one for one in ancestors(around) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
        return any(_NAMED.search(function.name) for function in functions)
    if isinstance(around, ast.Assign):
        names = [part for target in around.targets for part in [getattr(target, "id", getattr(target, "attr", ""))]]
        return any(_NAMED.search(name) for name in names)
    return isinstance(around, ast.Call) and getattr(around.func, "attr", "") == "startswith"


RULES: tuple[type[Rule], ...] = (VariablesHandedOn,)
