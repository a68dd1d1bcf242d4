"""Names of ``torch.cuda`` where a program uses them: those torch.npu has, has under another name, or has not."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Iterator

from npuport.facts import CudaName, torch_cuda
from npuport.findings import Applicability, Finding, Fix, Severity
from npuport.rules.agnostic import amp as agnostic_amp
from npuport.rules.agnostic import names as agnostic
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_chain import ROOT, Arguments, CudaUse, arguments_of, cuda_use, name_edits, npu_fix, token_edit
from npuport.rules.cuda_only import asks_for_capability, guards_settings
from npuport.rules.grad_scaler import chain_edits
from npuport.source.module import parent

BOTH = "; this file tells NPUs apart already, so read whether an NPU gets here"

# What PyTorch without CUDA answers instead of failing (measured on torch 2.13.0, CPU build).
_QUIET = {
    "torch.cuda.get_arch_list",
    "torch.cuda.get_gencode_flags",
    "torch.cuda.is_tf32_supported",
    "torch.cuda.has_half",
    "torch.cuda.has_magma",
    "torch.cuda.nccl.is_available",
    "torch.cuda.caching_allocator_enable",
    "torch.cuda.memory.caching_allocator_enable",
    "torch.cuda.list_gpu_processes",
    "torch.cuda.memory.list_gpu_processes",
}
_GRAPHS = {"CUDAGraph", "graph", "make_graphed_callables", "graph_pool_handle"}


def owner(use: CudaUse, context: Context) -> str:
    """The code of the rule that speaks about a use; each use has one."""
    name = use.fact.name
    if use.stored:
        return "NP212"
    parts = name.split(".")[2:]
    if parts and (parts[0] in _GRAPHS or (parts[0] == "graphs" and parts[1:2] and parts[1] in _GRAPHS)):
        return "NP210"
    if not use.known or use.fact.status == "missing":
        asks = use.lookup == "builtins.hasattr" or (use.lookup == "builtins.getattr" and _has_default(use))
        return "NP201" if asks else "NP203"
    if name == "torch.cuda.get_device_capability":
        return "NP209"
    if parts[:1] == ["amp"]:
        return "NP204" if "GradScaler" in parts or parts[1:2] == ["grad_scaler"] else "NP205"
    return "NP202" if use.fact.status == "renamed" or arguments_for(use, context) != Arguments() else "NP201"


def alias_is_safe(name: str, context: Context) -> bool:
    """Whether all that the module does with a variable for something of torch.cuda works on torch.npu too."""
    for node in context.module.uses(name):
        top: ast.expr = node
        while isinstance(around := parent(top), ast.Attribute):
            top = around
        use = cuda_use(top, context)
        if use is None or use.alias != name:
            continue
        if owner(use, context) in {"NP203", "NP209", "NP210", "NP212"} or not _follows_alias(use, context):
            return False
    return True


def _follows_alias(use: CudaUse, context: Context) -> bool:
    """Whether a use through an alias can be right once the alias stands for the NPU's."""
    if chain_edits(use, context) is not None:
        return True
    if arguments_for(use, context).problem is not None or (use.lookup is not None and use.literal is None):
        return False
    return use.fact.status != "renamed" or (not stays(use.fact, context) and name_edits(use, context) is not None)


def stays(fact: CudaName, context: Context) -> bool:
    """Whether a name is the same object on every device, under a name that this torch does not have yet."""
    foreign = fact.npu_name is not None and not fact.npu_name.startswith(("torch.npu", "torch_npu"))
    return foreign and not context.settings.torch_at_least("2.5")


def _has_default(use: CudaUse) -> bool:
    around = parent(use.node)
    return isinstance(around, ast.Call) and len(around.args) > 2


class CudaNameRule(Rule):
    """A rule about uses of names of ``torch.cuda``; ``owner`` says which of them are its own."""

    severity = Severity.ERROR
    nodes = (ast.Attribute, ast.Name)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute | ast.Name)
        use = cuda_use(node, context)
        return self.judge(use, context) if use is not None and owner(use, context) == self.code else iter(())

    @abstractmethod
    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        """Findings about one use of this rule's own."""

    def rename(
        self, use: CudaUse, context: Context, message: str, applicability: Applicability = Applicability.SAFE
    ) -> Iterator[Finding]:
        """The finding that gives a use the NPU's name and parameters; none where an alias does so already."""
        if context.agnostic:
            yield self._for_every_device(use, context, message, applicability)
            return
        edits = name_edits(use, context)
        arguments = arguments_for(use, context)
        if edits == [] and not arguments.edits and arguments.problem is None:
            return
        fix: Fix | None = None
        if use.alias is not None and not alias_is_safe(use.alias, context):
            applicability = Applicability.UNSAFE
        if edits is not None and arguments.problem is None:
            fix = npu_fix(context, [*edits, *arguments.edits], applicability, f"use {use.fact.npu_name}")
        if arguments.problem is not None:
            message = f"{message}, but {arguments.problem}"
        yield self.at_use(use, context, message, fix)

    def _for_every_device(self, use: CudaUse, context: Context, message: str, applicability: Applicability) -> Finding:
        edits = agnostic_amp.amp_edits(use, context) or agnostic.name_edits(use, context)
        if not edits and (reason := agnostic.may_stay(use, context)):
            return self.at_use(use, context, reason, None, Severity.INFO)
        if context.has_npu_branches:
            applicability = Applicability.UNSAFE
        fix = context.fix(edits, applicability, "ask the device at hand") if edits else None
        return self.at_use(use, context, message, fix)

    def at_use(
        self,
        use: CudaUse,
        context: Context,
        message: str,
        fix: Fix | None,
        severity: Severity | None = None,
        counterpart: str | None = None,
    ) -> Finding:
        """A finding at a use; milder where the file has branches for NPUs."""
        severity = severity or self.severity
        if context.has_npu_branches and severity is Severity.ERROR:
            severity, message = Severity.WARNING, message + BOTH
        return context.finding(
            self,
            use.node,
            message,
            fix=fix,
            basis=use.fact.basis,
            severity=severity,
            symbol=use.name,
            counterpart=counterpart or use.fact.npu_name,
            note=use.fact.note or None,
        )


def arguments_for(use: CudaUse, context: Context) -> Arguments:
    """What has to happen to the arguments of a use that is a call."""
    if not use.fact.name.startswith("torch.cuda.nvtx."):
        return arguments_of(use, context)
    call = parent(use.node)
    if isinstance(call, ast.Call) and call.func is use.node and (len(call.args) > 1 or call.keywords):
        return Arguments(problem=f"{use.fact.npu_name} formats no message: pass one finished string")
    return Arguments()


class TorchCudaName(CudaNameRule):
    """A name of torch.cuda that torch.npu has too."""

    code = "NP201"
    name = "torch-cuda-name"
    agnostic = True

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        if use.name == "torch.cuda.is_available" and _must_stay(use, context):
            text = "what this lets through is for CUDA alone: on an NPU it is False, as it has to be"
            yield self.at_use(use, context, text, None, Severity.INFO)
            return
        if use.lookup is None:
            text = f"{use.fact.name} reaches no NPU: it fails, or does nothing there; use {use.fact.npu_name}"
            around = parent(use.top)
            names = around.targets if isinstance(around, ast.Assign) else []
            aliases = [target.id for target in names if isinstance(target, ast.Name)]
            safe = all(alias_is_safe(alias, context) for alias in aliases)
            yield from self.rename(use, context, text, Applicability.SAFE if safe else Applicability.UNSAFE)
            return
        edit = token_edit(use, context)
        if edit is None:
            return  # the alias's own import or assignment changes
        certain = use.literal is not None
        applicability = Applicability.SAFE if certain else Applicability.UNSAFE
        severity = Severity.ERROR if certain else Severity.WARNING
        message = f"this asks torch.cuda for {use.name[11:] or 'a name known at run time only'}; ask torch.npu"
        edits = agnostic.lookup_edits(use, context) if context.agnostic else [edit]
        fix = npu_fix(context, edits, applicability) if edits else None
        yield self.at_use(use, context, message, fix, severity)


def _must_stay(use: CudaUse, context: Context) -> bool:
    call = parent(use.node)
    called = isinstance(call, ast.Call) and call.func is use.node
    return called and (
        asks_for_capability(use.node, context) or (context.agnostic and guards_settings(use.node, context))
    )


class TorchCudaRenamedName(CudaNameRule):
    """A name of torch.cuda that the NPU has under another name, or with other parameters."""

    code = "NP202"
    name = "torch-cuda-renamed-name"
    agnostic = True

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        new = use.fact.npu_name or ""
        if new.startswith(("torch.npu", "torch_npu")):
            yield from self.rename(use, context, f"{use.fact.name} reaches no NPU; its counterpart is {new}")
        elif not stays(use.fact, context):
            edits = name_edits(use, context)
            if edits != []:
                fix = context.fix(edits) if edits else None
                message = f"{use.fact.name} is {new} under a name of CUDA's: the same object on every device"
                yield self.at_use(use, context, message, fix, Severity.INFO)
        else:
            message = f"{use.fact.name} is the same object on every device; it may stay"
            yield self.at_use(use, context, message, None, Severity.INFO)


class TorchCudaMissingName(CudaNameRule):
    """A name of torch.cuda that has no counterpart on an NPU."""

    code = "NP203"
    name = "torch-cuda-missing-name"
    markers = ("cuda", r"\bnpu\b")

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        yield from super().check(node, context)
        assert isinstance(node, ast.Attribute | ast.Name)
        fact = _absent_from_npu(node, context)
        if fact is not None:
            name = fact.name.replace(ROOT, "torch.npu", 1)
            hint = f"; use {fact.npu_name}" if fact.npu_name else f": {fact.note}" if fact.note else ""
            yield context.finding(self, node, f"there is no {name}{hint}".rstrip("."), basis=fact.basis, symbol=name)

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        yield self.at_use(use, context, missing_message(use.name, use), None, missing_severity(use))


def _absent_from_npu(node: ast.expr, context: Context) -> CudaName | None:
    """The name of torch.cuda after which ``node`` names something in torch.npu that is not there."""
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        return None
    name = context.name_of(node)
    for namespace in ("torch.npu.", "torch_npu.npu."):
        if name is not None and name.startswith(namespace):
            fact = torch_cuda(f"{ROOT}.{name.removeprefix(namespace)}")
            around = parent(node)
            asked = isinstance(around, ast.Attribute) and context.name_of(around) is not None
            return fact if fact is not None and fact.status != "same" and not asked else None
    return None


def missing_message(name: str, use: CudaUse) -> str:
    """What to do without a name that the NPU has not."""
    if not use.known:
        return f"{name} is not among the names whose counterpart is known; look for it in torch.npu"
    note = use.fact.note
    return f"{name} has no counterpart on an NPU{': ' + note if note else ''}".rstrip(".")


def missing_severity(use: CudaUse) -> Severity:
    """ERROR for what fails when it is used."""
    harmless = not use.known or use.fact.name in _QUIET or use.fact.kind in {"class", "module", "value"}
    return Severity.WARNING if harmless else Severity.ERROR


class TorchCudaPatchedName(CudaNameRule):
    """A name of torch.cuda that the program replaces or deletes."""

    code = "NP212"
    name = "torch-cuda-patched-name"
    severity = Severity.WARNING

    def judge(self, use: CudaUse, context: Context) -> Iterator[Finding]:
        message = f"this replaces {use.name} for code that calls it; on an NPU that code calls torch.npu"
        edit = token_edit(use, context)
        deletes = isinstance(getattr(use.top, "ctx", None), ast.Del) or use.lookup == "builtins.delattr"
        same = use.known and use.fact.status == "same"
        fix = npu_fix(context, [edit], Applicability.UNSAFE) if edit and same and not deletes else None
        yield self.at_use(use, context, message, fix)


RULES: tuple[type[Rule], ...] = (TorchCudaName, TorchCudaRenamedName, TorchCudaMissingName, TorchCudaPatchedName)
