"""Distributed training: the communication backend, and names of NCCL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import torch_name
from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.agnostic import backend as agnostic
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_only import is_name_of_cuda
from npuport.rules.environment_lists import is_list_of_variables
from npuport.rules.usage import BACKEND, Use, use_of
from npuport.source.module import ancestors, parent

# "cpu:gloo,cuda:nccl": a backend for each device type.
_PER_DEVICE = re.compile(r"\w+:\w+(?:,\w+:\w+)*")
_NCCL_PAIR = re.compile(r"(?i)(?<!\w)cuda:nccl(?!\w)")
_HCCL = Basis("torch_npu registers the process group backend hccl", "measured", "torch_npu 2.13.0")


def knows_hccl(context: Context) -> bool:
    """Whether the file already chooses between devices or backends."""
    return context.has_npu_branches or "hccl" in context.text_before.lower()


class NcclBackendString(Rule):
    """The string 'nccl' where a communication backend is meant."""

    code = "NP301"
    name = "nccl-backend-string"
    severity = Severity.ERROR
    agnostic = True
    markers = (r"\bnccl\b", r"\bNCCL\b")
    nodes = (ast.Constant,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Constant)
        npu_edit = _respelled(node, context)
        if npu_edit is None:
            return
        use = use_of(node, context, BACKEND)
        if use is Use.TEXT or _beside_hccl(node) or is_list_of_variables(parent(node)):
            return
        if use is Use.COMPARED_UNKNOWN and _is_part_sought(node):
            return
        if use is Use.KEY:
            yield context.finding(
                self,
                node,
                "on an NPU the backend is called hccl, for which this table has no entry under nccl",
                severity=Severity.WARNING,
                basis=_HCCL,
            )
            return
        if (table := _without_npu(parent(node))) is not None:
            yield self._incomplete(node, table, context)
            return
        certain = use in (Use.TAKEN, Use.COMPARED) and not knows_hccl(context)
        certain = certain and not (context.agnostic and is_name_of_cuda(node))
        edits = agnostic.backend_edits(node, use, context) if context.agnostic else [npu_edit]
        title = "name the backend of the device" if context.agnostic else "name HCCL"
        fix = context.fix(edits, Applicability.SAFE if certain else Applicability.UNSAFE, title) if edits else None
        yield context.finding(
            self,
            node,
            _message(use, context),
            fix=fix,
            basis=_HCCL if use in (Use.TAKEN, Use.COMPARED) else None,
            severity=Severity.ERROR if certain else Severity.WARNING,
            value=node.value,
        )

    def _incomplete(self, node: ast.expr, table: ast.Dict, context: Context) -> Finding:
        """A new entry beside the old: the one for CUDA goes on holding."""
        key = next(k for k, value in zip(table.keys, table.values, strict=True) if value is node and k is not None)
        end = context.module.lines.span(node)[1]
        text = context.module.segment(node).replace("nccl", "hccl").replace("NCCL", "HCCL")
        quote = context.module.segment(key)[:1]
        return context.finding(
            self,
            node,
            "this table of backends has no entry for NPUs, whose backend is hccl",
            severity=Severity.WARNING,
            basis=_HCCL,
            fix=context.fix([Edit(end, end, f", {quote}npu{quote}: {text}")], Applicability.UNSAFE, "add HCCL"),
        )


def _message(use: Use, context: Context) -> str:
    if knows_hccl(context) and use in (Use.TAKEN, Use.COMPARED):
        return "this is for NCCL; the file tells NPUs apart already: read which way an NPU takes"
    if use is Use.TAKEN:
        return "NCCL drives NVIDIA GPUs only; NPUs communicate through hccl"
    if use is Use.COMPARED:
        return "on an NPU the backend is called hccl, so this comparison takes the other branch"
    return "this looks like the backend NCCL, but nothing here shows that it is used as one"


def _respelled(node: ast.Constant, context: Context) -> Edit | None:
    """The edit that makes HCCL of a literal that is a backend; None for any other literal."""
    value = node.value
    if not isinstance(value, str) or isinstance(parent(node), ast.JoinedStr):
        return None
    start, end = context.module.lines.span(node)
    text = context.module.text[start:end]
    if value in ("nccl", "NCCL"):
        new = "hccl" if value == "nccl" else "HCCL"
        at = text.find(value)
        return Edit(start + at, start + at + 4, new) if at >= 0 else Edit(start, end, f'"{new}"')
    pairs = list(_NCCL_PAIR.finditer(text)) if _PER_DEVICE.fullmatch(value) else []
    if len(pairs) != 1:
        return None
    return Edit(start + pairs[0].start(), start + pairs[0].end(), "npu:hccl")


def _beside_hccl(node: ast.expr) -> bool:
    """Whether 'hccl' stands in the same choice, table or list: the code already knows both."""
    for around in ancestors(node):
        if isinstance(around, ast.stmt):
            return False
        if isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute):
            around = around.func.value  # noqa: PLW2901 - {"npu": "hccl"}.get(device, "nccl")
        if isinstance(around, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.IfExp):
            texts = [part.value for part in ast.walk(around) if isinstance(part, ast.Constant)]
            if any(isinstance(text, str) and text.lower() == "hccl" for text in texts):
                return _without_npu(around) is None
    return False


def _is_part_sought(node: ast.expr) -> bool:
    """``"NCCL" in name``: a part of any text, such as the name of an environment variable."""
    around = parent(node)
    return isinstance(around, ast.Compare) and around.left is node and isinstance(around.ops[0], ast.In | ast.NotIn)


def _without_npu(node: ast.AST | None) -> ast.Dict | None:
    """A table of backends by device type that has none for NPUs: Habana's "hpu" calls its own library hccl as well."""
    if not isinstance(node, ast.Dict):
        return None
    keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
    return node if "cuda" in keys and not keys & {"npu", "ascend"} else None


class NcclApiName(Rule):
    """Names of torch.distributed that are about NCCL."""

    code = "NP302"
    name = "nccl-api-name"
    severity = Severity.ERROR
    markers = ("nccl", "NCCL")
    nodes = (ast.Attribute, ast.ImportFrom)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.ImportFrom):
            yield from self._imported(node, context)
            return
        assert isinstance(node, ast.Attribute)
        short = _about_nccl(context.name_of(node))
        if short is None or not isinstance(node.ctx, ast.Load):
            return
        end = context.module.lines.span(node)[1]
        place = (end - len(node.attr), end)
        new = _renamed(f"{context.name_of(node)}")
        edit = Edit(*place, new) if new and context.module.text[place[0] : end] == node.attr else None
        yield self._finding(place, short, edit, context)

    def _imported(self, node: ast.ImportFrom, context: Context) -> Iterator[Finding]:
        for alias in node.names:
            short = _about_nccl(f"{node.module}.{alias.name}") if not node.level else None
            if short is None:
                continue
            start, end = context.module.lines.span(alias)
            new = _renamed(f"{node.module}.{alias.name}")
            kept = "" if alias.asname else f" as {alias.name}"  # other modules may import it from here
            edit = Edit(start, start + len(alias.name), f"{new}{kept}") if new else None
            yield self._finding((start, end), short, edit, context)

    def _finding(self, place: tuple[int, int], short: str, edit: Edit | None, context: Context) -> Finding:
        fact = torch_name(f"torch.distributed.{short}")
        assert fact is not None
        certain = not knows_hccl(context) and context.settings.torch_at_least("2.5")
        fix = context.fix([edit], Applicability.SAFE if certain else Applicability.UNSAFE) if edit else None
        return context.finding(
            self,
            place,
            _NCCL_MESSAGES[short],
            fix=fix,
            basis=fact.basis,
            severity=Severity.WARNING if knows_hccl(context) else Severity.ERROR,
        )


_RENAMED = {"is_nccl_available": "is_hccl_available", "Backend.NCCL": "HCCL"}


def _renamed(name: str) -> str | None:
    """What the last part of ``name`` becomes; torch_npu adds is_hccl_available to torch.distributed alone."""
    return _RENAMED.get(name.removeprefix("torch.distributed.").replace("distributed_c10d.Backend", "Backend"))


_NCCL_MESSAGES = {
    "is_nccl_available": "is_nccl_available() is False on an NPU; is_hccl_available() is its counterpart",
    "Backend.NCCL": "Backend.NCCL is a backend for NVIDIA GPUs; Backend.HCCL is the NPU's",
    "ProcessGroupNCCL": "torch has no ProcessGroupNCCL on an NPU: torch_npu._C._distributed_c10d.ProcessGroupHCCL, "
    "whose Options take hccl_config, stands in its place",
}


def _about_nccl(name: str | None) -> str | None:
    """The part after torch.distributed of a name in ``_NCCL_MESSAGES``; a member of one counts as it."""
    if name is None or not name.startswith("torch.distributed."):
        return None
    short = name.removeprefix("torch.distributed.").removeprefix("distributed_c10d.")
    return short if short in _NCCL_MESSAGES else None


RULES: tuple[type[Rule], ...] = (NcclBackendString, NcclApiName)
