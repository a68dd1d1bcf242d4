"""Imports of ``torch.cuda``, of its modules and of the names in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npuport.facts import CudaName, torch_cuda
from npuport.findings import Applicability, Edit, Finding, Severity
from npuport.rules.agnostic import imports as agnostic
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_chain import ROOT
from npuport.rules.cuda_names import BOTH, TorchCudaMissingName, alias_is_safe, stays
from npuport.rules.grad_scaler import CUDA_NAMES, HANDED_ON, class_alias, prefers_upstream
from npuport.rules.import_split import Target, retarget

_MODULE = "torch_npu.npu"  # where submodules are imported from: torch.npu.amp would be a second copy of the module


class CudaImport(Rule):
    """An import that brings in something of torch.cuda."""

    code = "NP206"
    name = "cuda-import"
    severity = Severity.ERROR
    agnostic = True
    nodes = (ast.Import, ast.ImportFrom)
    follows_names = False

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if context.agnostic:
            assert isinstance(node, ast.Import | ast.ImportFrom)
            yield from self._agnostic(node, context)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _of_torch_cuda(alias.name):
                    yield from self._module(node, alias, context)
        elif isinstance(node, ast.ImportFrom) and (node.module == "torch" or _of_torch_cuda(node.module or "")):
            yield from self._names(node, context)

    def _agnostic(self, node: ast.Import | ast.ImportFrom, context: Context) -> Iterator[Finding]:
        """torch.cuda can be imported on every machine: what the program does with it is what changes."""
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [] if node.level else [f"{node.module}.{alias.name}" for alias in node.names]
        names = [name for name in names if _of_torch_cuda(name)]
        edits = agnostic.import_edits(node, context) if isinstance(node, ast.ImportFrom) and names else []
        if edits:
            yield self._finding(node, names, edits, context, safe=True)
        elif names:
            hands_on = edits is None
            yield context.finding(
                self,
                node,
                f"{', '.join(names)} can be imported on every machine"
                + (", but this file hands it on, or uses it in a way that no edit can follow" if hands_on else ""),
                severity=Severity.WARNING if hands_on else Severity.INFO,
                symbols=names,
            )

    def _module(self, node: ast.Import, alias: ast.alias, context: Context) -> Iterator[Finding]:
        """``import torch.cuda.x [as y]``."""
        fact = torch_cuda(alias.name)
        if fact is None or fact.npu_name is None:
            yield _missing(context.module.lines.span(alias), alias.name, fact, context)
            return
        edit = _module_edit(node, alias, fact, context)
        safe = alias.asname is None or alias_is_safe(alias.asname, context)
        yield self._finding(alias, [alias.name], [edit] if edit else None, context, safe=safe)

    def _names(self, node: ast.ImportFrom, context: Context) -> Iterator[Finding]:
        """``from torch import cuda`` and ``from torch.cuda.x import y``."""
        if node.level:
            return  # a module of the project's own
        module = node.module or ""
        for alias in node.names:
            fact = torch_cuda(f"{module}.{alias.name}")
            stays_there = _target(module, alias, fact, context) is None
            if stays_there and _of_torch_cuda(module) and not (fact and stays(fact, context)):
                place = (context.module.lines.span(node)[0], context.module.lines.span(alias)[1])
                yield _missing(place, f"{module}.{alias.name}", fact, context)
        moved = _moved(node, context)
        if moved:
            names = [f"{module}.{alias.name}" for alias in moved]
            group = next((found for alias in moved if (found := scaler_group(_local(alias), context))), None)
            if group is not None:
                yield self._finding(node, names, group.edits, context, safe=group.safe)
            else:
                edits, safe = retarget(node, _targets(node, context), context), _is_safe(moved, context)
                but = HANDED_ON if prefers_upstream(context.settings) and CUDA_NAMES.intersection(names) else ""
                yield self._finding(node, names, edits, context, safe=safe, but=but)

    def _finding(
        self,
        at: ast.AST,
        names: list[str],
        edits: list[Edit] | None,
        context: Context,
        *,
        safe: bool,
        but: str = "",
    ) -> Finding:
        certain = safe and not context.has_npu_branches
        applicability = Applicability.SAFE if certain else Applicability.UNSAFE
        fact = torch_cuda(names[0])
        message = f"this imports {', '.join(names)}, which reach{'es' if len(names) == 1 else ''} no NPU"
        return context.finding(
            self,
            at,
            message + but + (BOTH if context.has_npu_branches else ""),
            fix=context.fix(edits, applicability, "import the NPU's") if edits is not None else None,
            basis=fact.basis if fact else None,
            severity=Severity.WARNING if context.has_npu_branches else self.severity,
            symbols=names,
        )


@dataclass(frozen=True, slots=True)
class ScalerGroup:
    """All that has to change in a file together so that a variable stands for PyTorch's own gradient scaler."""

    edits: list[Edit]
    safe: bool


def scaler_group(local: str, context: Context) -> ScalerGroup | None:
    """The edits for the variable ``local``, which imports bind to CUDA's scaler; None where torch_npu's replaces it."""
    found = class_alias(local, context)
    if found is None or not found[0]:
        return None
    imports, edits = found
    safe = True
    for node in imports:
        edits_here = retarget(node, _targets(node, context, upstream=local), context)
        if edits_here is None:
            return None
        edits = [*edits, *edits_here]
        safe = safe and _is_safe([alias for alias in _moved(node, context) if _local(alias) != local], context)
    return ScalerGroup(edits, safe)


def _moved(node: ast.ImportFrom, context: Context) -> list[ast.alias]:
    """The names that come from another module on an NPU."""
    module = node.module or ""
    facts = [(alias, torch_cuda(f"{module}.{alias.name}")) for alias in node.names]
    return [alias for alias, fact in facts if _target(module, alias, fact, context) is not None]


def _targets(node: ast.ImportFrom, context: Context, upstream: str | None = None) -> list[Target]:
    """Where each name comes from; the variable ``upstream`` is to be PyTorch's own gradient scaler."""
    module = node.module or ""
    targets = []
    for alias in node.names:
        target = _target(module, alias, torch_cuda(f"{module}.{alias.name}"), context)
        if _local(alias) == upstream:
            target = Target("torch.amp", _as("GradScaler", _local(alias)))
        targets.append(target or Target(module, context.module.segment(alias)))
    return targets


def _is_safe(moved: Sequence[ast.alias], context: Context) -> bool:
    return all(alias.name != "*" and alias_is_safe(_local(alias), context) for alias in moved)


def _local(alias: ast.alias) -> str:
    return alias.asname or alias.name


def _of_torch_cuda(module: str) -> bool:
    return module == ROOT or module.startswith(f"{ROOT}.")


def _missing(place: tuple[int, int], name: str, fact: CudaName | None, context: Context) -> Finding:
    note = f": {fact.note}" if fact and fact.note else ""
    if fact is None:
        message = f"{name} is not among the names whose counterpart is known; look for it in torch.npu"
    elif fact.npu_name is None:
        message = f"{name} has no counterpart on an NPU{note}"
    else:
        message = f"{fact.npu_name}, its counterpart, cannot be imported by itself{note}"
    return context.finding(
        TorchCudaMissingName(),
        place,
        message.rstrip("."),
        basis=fact.basis if fact else None,
        severity=Severity.ERROR if fact and fact.npu_name else Severity.WARNING,  # an import alone does not fail
        symbol=name,
    )


def _module_edit(node: ast.Import, alias: ast.alias, fact: CudaName, context: Context) -> Edit | None:
    """The edit of ``import torch.cuda.x``, which binds torch, or of ``import torch.cuda.x as y``, which binds x."""
    start, end = context.module.lines.span(alias)
    new = fact.npu_name or ""
    autoloaded = context.settings.torch_at_least("2.5")
    if not new.startswith("torch.npu"):
        return None
    if alias.asname is None:
        # torch_npu imports its submodules itself: they are attributes of torch.npu.
        return Edit(start, end, "torch.npu" if autoloaded else "torch, torch_npu")
    if new == "torch.npu":
        return Edit(start, start + len(alias.name), new if autoloaded else _MODULE)
    if fact.status == "same":
        return Edit(start, start + len(alias.name), _MODULE + new.removeprefix("torch.npu"))
    if len(node.names) > 1:
        return None
    owner, _, last = new.rpartition(".")
    owner = owner if autoloaded else owner.replace("torch.npu", _MODULE, 1)
    return Edit(*context.module.lines.span(node), f"from {owner} import {_as(last, alias.asname)}")


def _target(module: str, alias: ast.alias, fact: CudaName | None, context: Context) -> Target | None:
    """Where an imported name comes from on an NPU; None where it stays."""
    autoloaded = context.settings.torch_at_least("2.5")
    if alias.name == "*" and _of_torch_cuda(module):
        owner = torch_cuda(module)
        if owner is None or owner.status != "same" or owner.npu_name is None:
            return None
        return Target(_MODULE + owner.npu_name.removeprefix("torch.npu"), "*")
    if fact is None or fact.npu_name is None or fact.import_from is None or stays(fact, context):
        return None
    source = fact.import_from
    if not autoloaded:
        source = "torch_npu" if source == "torch" else source.replace("torch.npu", _MODULE, 1)
    return Target(source, _as(fact.npu_name.rpartition(".")[2], _local(alias)))


def _as(name: str, local: str) -> str:
    return name if name == local else f"{name} as {local}"


RULES: tuple[type[Rule], ...] = (CudaImport,)
