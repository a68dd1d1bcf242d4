"""PyTorch's profiler: the activity CUDA, the keys that carry its name, ``use_cuda``, NVTX."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import torch_name
from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.cuda_chain import chain_of, last_part
from npuport.rules.import_split import Target, retarget
from npuport.source.module import parent

_OURS = "torch.profiler"
_THEIRS = "torch_npu.profiler"
_MEASURED = "torch 2.13.0 with torch_npu 2.13.0"
# What profile objects of torch_npu lack, and parameters its profile does not take.
_ONLY_TORCH = re.compile(
    r"\.(?:key_averages|events|toggle_collection_dynamic|preset_metadata_json|function_events)\b"
    r"|\b(?:experimental_config|acc_events|post_processing_timeout_s)\s*="
)


class CudaProfilerActivity(Rule):
    """The activity CUDA of PyTorch's profiler."""

    code = "NP601"
    name = "cuda-profiler-activity"
    severity = Severity.WARNING
    markers = (r"\.CUDA\b",)
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        if node.attr != "CUDA" or not isinstance(node.ctx, ast.Load):
            return
        if context.name_of(node) not in _ACTIVITIES:
            return
        message = "torch.profiler drops the activity CUDA where there is no CUDA, and fails when it is the only one"
        edits = _switch(context)
        if edits is not None:
            message += "; torch_npu.profiler records NPUs"
            fix: Fix | None = context.fix(
                edits, Applicability.UNSAFE, "profile with torch_npu.profiler throughout this file", needs="torch_npu"
            )
        elif context.settings.torch_at_least("2.13"):
            message += "; ProfilerActivity.NPU records NPUs and leaves the rest of this file's profiling as it is"
            fix = context.fix([Edit(*last_part(node, context), "NPU")], Applicability.UNSAFE, "record the NPU")
        else:
            message += "; write it for torch_npu.profiler, which has no key_averages() and no events()"
            fix = None
        fact = torch_name("torch.profiler.ProfilerActivity.CUDA")
        yield context.finding(self, node, message, fix=fix, basis=fact.basis if fact else None)


_ACTIVITIES = {"torch.profiler.ProfilerActivity.CUDA", "torch.autograd.ProfilerActivity.CUDA"}


def _switch(context: Context) -> list[Edit] | None:
    """Edits that make every profiler name of the module torch_npu's, as the two do not mix; None where they cannot."""
    if _ONLY_TORCH.search(context.module.text):
        return None
    edits: list[Edit] = []
    lines = context.module.lines
    for node in context.module.nodes(
        {*lines.lines_with("profiler", "profiler"), *lines.lines_with("CUDA", r"\.CUDA\b")}
    ):
        if isinstance(node, ast.Import):
            found = _module_import(node)
        elif isinstance(node, ast.ImportFrom):
            found = _name_import(node, context)
        elif isinstance(node, ast.Attribute) and not isinstance(parent(node), ast.Attribute):
            found = _chain(node, context)
        else:
            continue
        if found is None:
            return None
        edits += found
    return edits


def _module_import(node: ast.Import) -> list[Edit] | None:
    """Plain imports of torch.profiler bind torch and may stay; an alias of it would need a second one."""
    return None if any(alias.name == _OURS and alias.asname for alias in node.names) else []


def _name_import(node: ast.ImportFrom, context: Context) -> list[Edit] | None:
    if node.module == "torch" and any(alias.name == "profiler" for alias in node.names):
        return None
    if node.module is None or not f"{node.module}.".startswith(f"{_OURS}."):
        return []
    targets = []
    for alias in node.names:
        fact = torch_name(f"{node.module}.{alias.name}")
        if fact is None or fact.npu_name is None or fact.import_from is None:
            return None
        targets.append(Target(fact.import_from, context.module.segment(alias)))
    return retarget(node, targets, context)


def _chain(node: ast.Attribute, context: Context) -> list[Edit] | None:
    """``torch.profiler.X`` and ``ProfilerActivity.CUDA``."""
    name = context.name_of(node)
    if name is None or not name.startswith(f"{_OURS}."):
        return []
    fact = torch_name(name) or torch_name(name.rpartition(".")[0])
    if fact is None or fact.npu_name is None:
        return None
    edits = [Edit(*last_part(node, context), "NPU")] if name.endswith(".CUDA") else []
    root = chain_of(node)[-1]
    if isinstance(root, ast.Name) and context.name_of(root) == "torch" and fact.status == "renamed":
        edits.append(Edit(*context.module.lines.span(root), "torch_npu"))
    return edits


class CudaProfilerKey(Rule):
    """A sort key or an attribute of profiler events that bears CUDA's name."""

    code = "NP602"
    name = "cuda-profiler-key"
    severity = Severity.INFO
    markers = (r"cuda_time", r"cuda_memory_usage")
    nodes = (ast.keyword, ast.Attribute)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.keyword):
            yield from self._sort_key(node, context)
        elif isinstance(node, ast.Attribute) and _EVENT_KEY.fullmatch(node.attr) and isinstance(node.ctx, ast.Load):
            own = re.search(rf"(?:def |\.){node.attr}\b\s*(?:\(self|=[^=])", context.module.text) is not None
            known = context.settings.torch_at_least("2.5")
            start, end = last_part(node, context)
            edit = Edit(start, end, node.attr.replace("cuda", "device"))
            yield context.finding(
                self,
                node,
                f"events of the profiler call this {edit.new} on every device; {node.attr} is deprecated or gone",
                fix=context.fix([edit], Applicability.UNSAFE) if known and not own else None,
                basis=Basis("attributes of FunctionEventAvg", "measured", _MEASURED),
                severity=Severity.WARNING,
            )

    def _sort_key(self, node: ast.keyword, context: Context) -> Iterator[Finding]:
        if node.arg != "sort_by" or not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
            return
        if not _EVENT_KEY.fullmatch(node.value.value):
            return
        known = context.settings.torch_at_least("2.5")
        yield context.finding(
            self,
            node.value,
            "the profiler reads this key as device time, so it sorts by an NPU's time as well; npu_… would fail",
            fix=_respelled(node.value, context) if known else None,
            basis=Basis("EventList.table(sort_by=…)", "measured", _MEASURED),
        )


_EVENT_KEY = re.compile(r"(?:self_)?cuda_(?:time|time_total|memory_usage)")


def _respelled(node: ast.Constant, context: Context) -> Fix | None:
    start, end = context.module.lines.span(node)
    place = context.module.text.find("cuda_", start, end)
    return context.fix([Edit(place, place + 4, "device")]) if place >= 0 else None


class ProfilerUseCuda(Rule):
    """``use_cuda=True`` of ``torch.autograd.profiler.profile``."""

    code = "NP603"
    name = "profiler-use-cuda"
    severity = Severity.WARNING
    markers = (r"\buse_cuda\s*=",)
    nodes = (ast.keyword,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.keyword)
        call = parent(node)
        if node.arg != "use_cuda" or not isinstance(call, ast.Call):
            return
        name = context.name_of(call.func)
        if name not in {"torch.autograd.profiler.profile", "torch.profiler.profile"}:
            return
        plain = isinstance(node.value, ast.Constant) and node.value.value is True
        fix = (
            context.replace_node(node, 'use_device="npu"', Applicability.UNSAFE, "name the device")
            if plain and name == "torch.autograd.profiler.profile"
            else None
        )
        fact = torch_name("torch.autograd.profiler.profile.use_cuda")
        yield context.finding(
            self,
            node,
            "use_cuda is dropped with a warning where there is no CUDA, so that no NPU is recorded",
            fix=fix,
            basis=fact.basis if fact else None,
        )


class EmitNvtx(Rule):
    """``torch.autograd.profiler.emit_nvtx``."""

    code = "NP604"
    name = "emit-nvtx"
    severity = Severity.ERROR
    markers = (r"\bemit_nvtx\b",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) != "torch.autograd.profiler.emit_nvtx":
            return
        off = next((keyword.value for keyword in node.keywords if keyword.arg == "enabled"), None)
        fact = torch_name("torch.autograd.profiler.emit_nvtx")
        yield context.finding(
            self,
            node.func,
            "emit_nvtx asserts that PyTorch has CUDA; profile with torch_npu.profiler and mstx=True instead",
            basis=fact.basis if fact else None,
            severity=Severity.WARNING if off is not None else Severity.ERROR,
        )


RULES: tuple[type[Rule], ...] = (CudaProfilerActivity, CudaProfilerKey, ProfilerUseCuda, EmitNvtx)
