"""A project's own words for devices: methods called cuda, members of its enumerations, the word gpu."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.usage import DEVICE, is_like
from npuport.source.module import ancestors, parent

_GPU = re.compile(r"(?:^|_)GPUS?(?:_|$)")
_NPU = re.compile(r"(?i)(?:^|[^a-z])NPUS?(?:[^a-z]|$)")


class OwnCudaMethod(Rule):
    """A class that defines ``cuda()`` and no ``npu()``."""

    code = "NP109"
    name = "own-cuda-method"
    severity = Severity.WARNING
    markers = (r"\bdef cuda\b",)
    nodes = (ast.FunctionDef,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.FunctionDef)
        owner = parent(node)
        if node.name != "cuda" or not isinstance(owner, ast.ClassDef):
            return
        if any(isinstance(item, ast.FunctionDef) and item.name == "npu" for item in owner.body):
            return
        start = context.module.text.find("cuda", context.module.lines.span(node)[0])
        yield context.finding(
            self,
            (start, start + len("cuda")),
            f"{owner.name} has a cuda() of its own: npu() and what to() does must take its attributes along too",
            basis=Basis("Tensor.npu and Module.npu", "measured", "torch_npu 2.13.0"),
        )


class OwnWordForGpu(Rule):
    """A choice between devices that the project makes by words of its own, none of which means an NPU."""

    code = "NP110"
    name = "own-word-for-gpu"
    severity = Severity.ADVICE
    # An attribute, a member of an enumeration, a word; the text of a comment or a message is none of them.
    markers = (
        ("GPU", r"\.(?:\w*_)?GPUS?(?:_\w*)?\b"),
        ("GPU", r"\b(?:\w*_)?GPUS?(?:_\w*)?\s*="),
        ("gpu", r"[\"']gpu[\"']"),
    )
    nodes = (ast.Attribute, ast.Constant, ast.ClassDef)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Constant):
            if node.value == "gpu" and _is_told_apart(node, context) and not _names_npu_nearby(node, context):
                yield context.finding(self, node, _MESSAGE.format("'gpu'"), word="gpu")
        elif isinstance(node, ast.Attribute):
            if not _GPU.search(node.attr) or _place(node) is None or _names_npu_nearby(node, context):
                return
            own = context.definition_of(node.value)
            if own is not None and isinstance(own.node, ast.ClassDef) and _is_enumeration(own.node):
                yield context.finding(self, node, _MESSAGE.format(node.attr), word=node.attr)
        elif isinstance(node, ast.ClassDef) and _is_enumeration(node):
            members = {name: item for item in node.body for name in _assigned(item)}
            if not any(_NPU.search(name) for name in members):
                for name, item in members.items():
                    if _GPU.search(name):
                        yield context.finding(self, item, _MESSAGE.format(name), word=name)


_MESSAGE = (
    "{} is the project's own word for a GPU: where NPUs are told from GPUs it has to mean both, or have a sibling"
)


def _is_enumeration(node: ast.ClassDef) -> bool:
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
    return any(base.endswith(("Enum", "Flag")) for base in bases)


def _assigned(item: ast.stmt) -> list[str]:
    return (
        [target.id for target in item.targets if isinstance(target, ast.Name)] if isinstance(item, ast.Assign) else []
    )


def _place(node: ast.expr) -> ast.Compare | None:
    """The comparison of which a value, or a list of such, is a side."""
    around = parent(node)
    while isinstance(around, ast.List | ast.Tuple | ast.Set | ast.Attribute):  # state.value, [A, B]
        around = parent(around)
    return around if isinstance(around, ast.Compare) else None


def _is_told_apart(node: ast.Constant, context: Context) -> bool:
    """Whether a device is compared with ``'gpu'``."""
    comparison = _place(node)
    if comparison is None or len(comparison.ops) != 1:
        return False
    sides = [comparison.left, *comparison.comparators]
    others = [side for side in sides if node not in ast.walk(side)]
    return any(is_like(side, context, DEVICE) and "accelerator" not in ast.unparse(side) for side in others)


def _names_npu_nearby(node: ast.AST, context: Context) -> bool:
    """Whether the statement around, or another branch of its ``if``, names an NPU already."""
    statement = next((one for one in ancestors(node) if isinstance(one, ast.stmt)), None)
    if statement is None:
        return False
    if not isinstance(statement, ast.If):
        return _NPU.search(context.module.segment(statement)) is not None
    top = statement
    while isinstance(outer := parent(top), ast.If) and outer.orelse == [top]:
        top = outer
    branch: ast.If | None = top
    while branch is not None:
        if _NPU.search(context.module.segment(branch.test)):
            return True
        rest = branch.orelse
        branch = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
    return False


RULES: tuple[type[Rule], ...] = (OwnCudaMethod, OwnWordForGpu)
