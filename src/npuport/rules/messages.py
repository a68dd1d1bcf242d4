"""Texts of CUDA's errors that a program looks for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import message_in
from npuport.findings import Applicability, Finding, Severity
from npuport.rules.base import Context, Rule, with_applicability
from npuport.source.module import ancestors, parent

_OUT_OF_MEMORY = re.compile(r"(?i)\b(cuda)(?: error:)? out of memory")
_NPU_OUT_OF_MEMORY = re.compile(r"(?i)npu out of memory")
_SEARCHES = {"startswith", "endswith", "find", "index", "count", "search", "match", "fullmatch", "findall"}


def sought(node: ast.expr, context: Context) -> bool | None:
    """Whether a text is looked for in another: True, False for ordinary text, None where a variable carries it on."""
    inner: ast.AST = node
    for around in ancestors(node):
        if isinstance(around, ast.Compare):
            return True
        if isinstance(around, ast.Call):
            method = around.func.attr if isinstance(around.func, ast.Attribute) else ""
            return (method in _SEARCHES and inner in around.args) or context.name_of(around.func) == "pytest.raises"
        if isinstance(around, ast.comprehension | ast.For):
            return inner is around.iter
        if isinstance(around, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            return True
        if isinstance(around, ast.Assign | ast.AnnAssign):
            # A list of texts is there to be looked through; a single text may be a message to show.
            return None if isinstance(inner, ast.List | ast.Tuple | ast.Set) else _is_compared(around, context)
        if isinstance(around, ast.stmt | ast.Dict):
            return False
        inner = around
    return False


def _is_compared(assignment: ast.Assign | ast.AnnAssign, context: Context) -> bool:
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return any(isinstance(parent(use), ast.Compare) for name in names for use in context.module.uses(name))


class CudaOomMessage(Rule):
    """The text of CUDA's out-of-memory error, looked for in a message."""

    code = "NP801"
    name = "cuda-oom-message"
    severity = Severity.ERROR
    markers = (r"(?i:cuda)\b.*\bout of memory",)
    nodes = (ast.Constant,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Constant)
        if not isinstance(node.value, str) or isinstance(parent(node), ast.JoinedStr):
            return
        found = list(_OUT_OF_MEMORY.finditer(node.value))
        if len(found) != 1 or (is_sought := sought(node, context)) is False:
            return
        both = context.has_npu_branches or _NPU_OUT_OF_MEMORY.search(context.module.text) is not None
        fix = None
        if "error:" not in found[0][0].lower():
            word = found[0][1]
            fix = context.replace_word(node, word, "NPU" if word.isupper() else "npu", title="expect the NPU's text")
        certain = is_sought is True and not both
        fact = message_in("CUDA out of memory")
        yield context.finding(
            self,
            node,
            "an NPU's error says `NPU out of memory`, so this text is never found",
            fix=fix if certain else with_applicability(fix, Applicability.UNSAFE),
            basis=fact.basis if fact else None,
            severity=Severity.ERROR if certain else Severity.WARNING,
        )


class CudaErrorText(Rule):
    """Any other text of an error of CUDA's, looked for in a message."""

    code = "NP802"
    name = "cuda-error-text"
    severity = Severity.WARNING
    markers = (
        r"cuda error",
        r"Cuda error",
        r"CUDA error",
        r"CUDA_ERROR",
        r"device-side assert",
        r"CUBLAS_STATUS",
        r"cuDNN error",
        r"CUDNN_STATUS",
        r"NCCL error",
        r"NCCL timeout",
        r"not compiled with CUDA",
        r"No CUDA GPUs",
        r"no kernel image",
    )
    nodes = (ast.Constant,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Constant)
        if not isinstance(node.value, str) or isinstance(parent(node), ast.JoinedStr):
            return
        if _OUT_OF_MEMORY.search(node.value) or sought(node, context) is False:
            return
        fact = message_in(node.value)
        if fact is None:
            return
        instead = f"; look for `{fact.npu_text}`" if fact.npu_text else ""
        note = fact.note.rstrip(".")
        yield context.finding(
            self,
            node,
            f"errors on an NPU do not say this{instead}: {note[0].lower() + note[1:] if note[1:2].islower() else note}",
            basis=fact.basis,
        )


RULES: tuple[type[Rule], ...] = (CudaOomMessage, CudaErrorText)
