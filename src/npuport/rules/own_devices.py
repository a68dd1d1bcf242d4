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
_CONSTANT = re.compile(r"(?=[A-Z])(?:[A-Z0-9]+_)*(?:CUDA|NCCL|GPUS?)(?:_[A-Z0-9]+)*")  # CUDA_TYPES, NCCL_BACKEND
_GPU_TEXT = re.compile(r"(?i)(?:^|[^a-z])gpus?(?:[^a-z]|$)")
_OTHER_DEVICE = re.compile(r"(?i)(?:^|[^a-z])(?:cpu|tpu|xpu|mps|hpu|mlu|musa)s?(?:[^a-z]|$)")
_NPU = re.compile(r"(?i)(?:^|[^a-z])(?:NPUS?|HCCL|ASCEND)(?:[^a-z]|$)")


class OwnCudaMethod(Rule):
    """A class that defines ``cuda()`` and no ``npu()``, or an object whose ``cuda()`` is replaced."""

    code = "NP109"
    name = "own-cuda-method"
    severity = Severity.WARNING
    markers = (r"\bdef cuda\b", r"\.cuda = ")
    nodes = (ast.FunctionDef, ast.Assign)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Assign):
            yield from self._replaced(node, context)
            return
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
            basis=_NPU_METHODS,
        )

    def _replaced(self, node: ast.Assign, context: Context) -> Iterator[Finding]:
        """``model.cuda = wrapped(model.cuda)``: a flag such as ``self.cuda = args.cuda`` is none."""
        target = node.targets[0]
        if not isinstance(target, ast.Attribute) or target.attr != "cuda" or context.has_npu_branches:
            return
        owner = ast.dump(target.value)
        if any(
            isinstance(part, ast.Attribute) and part.attr == "cuda" and ast.dump(part.value) == owner
            for part in ast.walk(node.value)
        ):
            yield context.finding(
                self,
                target,
                f"{ast.unparse(target)} is replaced and {ast.unparse(target.value)}.npu is not: on an NPU callers say"
                " npu()",
                basis=_NPU_METHODS,
            )


_NPU_METHODS = Basis("Tensor.npu and Module.npu", "measured", "torch_npu 2.13.0")


class OwnWordForGpu(Rule):
    """A choice between devices that the project makes by words of its own, none of which means an NPU."""

    code = "NP110"
    name = "own-word-for-gpu"
    severity = Severity.ADVICE
    # An attribute, a member of an enumeration, a word, an entry of a list, a constant that something is compared with;
    # the text of a comment or a message is none of them.
    markers = (
        ("GPU", r"\.(?:\w*_)?GPUS?(?:_\w*)?\b"),
        ("GPU", r"\b(?:\w*_)?GPUS?(?:_\w*)?\s*="),
        ("GPU", r"[\"'](?:[\w -]*[_ -])?GPUS?(?:[_ -][\w -]*)?[\"']\s*[,:\]})]"),
        ("gpu", r"[\"']gpu[\"']"),
        ("_GPU", r"(?:==|!=|\bin) (?:\w+\.)*\w+_GPU"),
        ("GPU_", r"(?:==|!=|\bin) (?:\w+\.)*GPUS?_"),
        ("CUDA_", r"(?:==|!=|\bin) (?:\w+\.)*\w*CUDA_"),
        ("_CUDA", r"(?:==|!=|\bin) (?:\w+\.)*\w+_CUDA"),
        ("NCCL_", r"(?:==|!=|\bin) (?:\w+\.)*(?:\w+_)?NCCL_"),
    )
    nodes = (ast.Attribute, ast.Name, ast.Constant, ast.ClassDef, ast.List, ast.Tuple, ast.Set, ast.Dict)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            word = _list_without_npu(node, context)
            if word is not None:
                message = f"this names devices, among them {word!r}, and no NPU: add one where each device has an entry"
                yield context.finding(self, node, message, word=word)
        elif isinstance(node, ast.Name):
            if _is_own_constant(node, context) and not _names_npu_nearby(node, context):
                yield context.finding(self, node, _MESSAGE.format(node.id), word=node.id)
        elif isinstance(node, ast.Constant):
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


def _is_own_constant(node: ast.Name, context: Context) -> bool:
    """Whether something is compared with a constant that the project named after CUDA, NCCL or GPUs."""
    around = parent(node)
    bound = context.scope(node).lookup(node.id)
    return (
        _CONSTANT.fullmatch(node.id) is not None
        and bound in ([], context.module.scope.bindings.get(node.id))  # of the module, or of one imported with a star
        and isinstance(around, ast.Compare)
        and len(around.ops) == 1
        and around.comparators[0] is node
        and isinstance(around.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn)
        and _decides(around)
        and (context.name_of(node) or "").partition(".")[0] not in {"torch", "builtins"}
    )


def _decides(node: ast.AST) -> bool:
    """Whether a condition is one of a branch: neither an assertion nor a value that is kept."""
    inner = node
    for around in ancestors(node):
        if isinstance(around, ast.If | ast.IfExp | ast.While):
            return inner is around.test
        if isinstance(around, ast.stmt):
            return False
        inner = around
    return False


def _list_without_npu(node: ast.List | ast.Tuple | ast.Set | ast.Dict, context: Context) -> str | None:
    """The word for a GPU in a list or table of devices by name, none of which is an NPU; None for any other list."""
    parts = [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else node.elts
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if len(texts) < _FEW or len(texts) != len(parts) or any(len(text) > _LONGEST for text in texts):
        return None
    gpu = next((text for text in texts if _GPU_TEXT.search(text)), None)
    others = [text for text in texts if _OTHER_DEVICE.search(text)]
    if gpu is None or not others or len(others) + 1 < len(texts) / 2 or isinstance(parent(node), ast.Compare):
        return None
    return None if _names_npu_nearby(node, context) else gpu


_FEW = 2  # a list of fewer is no choice
_LONGEST = 40  # characters of a name; what is longer is prose


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
