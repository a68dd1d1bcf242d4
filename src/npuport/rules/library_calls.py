"""Calls of libraries with an argument, or without one, that suits GPUs only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import library
from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.settings import Settings
from npuport.source.module import ancestors, parent

_RAY = re.compile(r"(?m)^\s*(?:import|from) ray\b")
_LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.")


def is_lightnings(node: ast.expr, context: Context) -> bool:
    """Whether a literal is what Lightning's ``accelerator`` will be: its Trainer looks it up in a list of its own.

    That is the argument of such a call, and a default or an option of this name in a module that imports Lightning.
    """
    around = parent(node)
    if isinstance(around, ast.keyword) and isinstance(call := parent(around), ast.Call):
        if around.arg == "accelerator":
            name = context.name_of(call.func) or ""
            return name.startswith(_LIGHTNING) and name.endswith((".Trainer", ".Fabric", ".LightningCLI"))
        option = call.args[0] if call.args else None
        named = isinstance(option, ast.Constant) and option.value == "--accelerator"
        return around.arg == "default" and named and _imports_lightning(context)
    if isinstance(around, ast.arguments):
        places = [*around.posonlyargs, *around.args]
        pairs = [*zip(reversed(places), reversed(around.defaults), strict=False)]
        pairs += [(place, value) for place, value in zip(around.kwonlyargs, around.kw_defaults, strict=True) if value]
        names = [place.arg for place, value in pairs if value is node]
    else:
        targets = around.targets if isinstance(around, ast.Assign) else [getattr(around, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
    return "accelerator" in names and _imports_lightning(context)


def _imports_lightning(context: Context) -> bool:
    bindings = (binding for found in context.module.scope.bindings.values() for binding in found)
    return any(f"{binding.target}.".startswith(_LIGHTNING) for binding in bindings)


class LightningOnGpu(Rule):
    """A ``Trainer`` or a ``Fabric`` of Lightning that asks for GPUs or NPUs by name."""

    code = "NP711"
    name = "lightning-on-gpu"
    severity = Severity.ERROR
    markers = (r"\baccelerator\b",)
    nodes = (ast.Constant,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Constant)
        known = library("lightning")
        if known is not None and node.value in ("gpu", "cuda", "npu") and is_lightnings(node, context):
            yield context.finding(
                self,
                node,
                "Lightning has no NPU accelerator of its own: pass an instance of an Accelerator written for the NPU,"
                " with a strategy for its devices",
                basis=known.basis,
            )


class AttentionByName(Rule):
    """A model of transformers is loaded with the attention of flash-attn."""

    code = "NP712"
    name = "flash-attention-by-name"
    severity = Severity.WARNING
    markers = (("flash_attention_", r"attn_implementation\b.*\bflash_attention_[23]\b"), r"\buse_flash_attention_2\b")
    nodes = (ast.keyword, ast.Assign)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.keyword):
            asked = node.value if node.arg in {"attn_implementation", "_attn_implementation"} else None
            switched = node.arg == "use_flash_attention_2" and _is(node.value, True)
        else:
            assert isinstance(node, ast.Assign)
            target = node.targets[0]
            named = isinstance(target, ast.Attribute) and target.attr in {"_attn_implementation", "attn_implementation"}
            asked, switched = (node.value if named else None), False
        known = library("flash_attn")
        if known is None:
            return
        if switched:
            yield context.finding(self, node, _ATTENTION, basis=known.basis)
        elif asked is not None and (_is(asked, "flash_attention_2") or _is(asked, "flash_attention_3")):
            fix = context.replace_node(asked, '"sdpa"', Applicability.UNSAFE)
            yield context.finding(self, asked, _ATTENTION, basis=known.basis, fix=fix)


_ATTENTION = (
    "flash-attn does not run on an NPU: 'sdpa' runs Ascend's fused attention with any release of transformers; newer"
    " ones compute 'flash_attention_2' with npu_fusion_attention instead"
)


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is type(value) and node.value == value


class RayBackend(Rule):
    """Ray prepares a model for several processes, with the backend that it chooses."""

    code = "NP713"
    name = "ray-chooses-backend"
    severity = Severity.WARNING
    markers = (r"\bprepare_model\b", r"\bTorchTrainer\b")
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func)
        if name not in {"ray.train.torch.prepare_model", "ray.train.torch.TorchTrainer"}:
            return
        if "TorchConfig" in context.module.text:
            return  # the backend is the program's own choice; an NCCL there is found as such
        yield context.finding(
            self,
            node.func,
            "Ray takes nccl with GPUs and gloo otherwise, and neither moves tensors of an NPU: pass"
            ' torch_config=TorchConfig(backend="hccl") to TorchTrainer, and import torch_npu in the training function',
            basis=Basis("ray-project/ray issue 49024", "inferred"),
        )


class RayCountsGpus(Rule):
    """Ray is asked for GPUs, or for their number: its resource for NPUs has a name of its own."""

    code = "NP714"
    name = "ray-counts-gpus"
    severity = Severity.ERROR
    markers = (r"\bnum_gpus\b", ("GPU", r"[\"']GPU[\"']"), r"\bget_gpu_ids\b")
    needs = (("import ray", "from ray"),)
    nodes = (ast.keyword, ast.Constant, ast.Call)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.keyword):
            call = parent(node)
            asked = node.arg == "num_gpus" and isinstance(call, ast.Call) and _is_rays(call.func, context)
            if asked and not _is(node.value, 0):
                yield self._found(node, context)
        elif isinstance(node, ast.Call):
            if context.name_of(node.func) in {"ray.get_gpu_ids", "ray.runtime_context.get_gpu_ids"}:
                yield self._found(node.func, context)
        elif isinstance(node, ast.Constant) and node.value in ("GPU", "num_gpus") and _is_key(node):
            if not _RAY.search(context.module.text):
                return
            yield self._found(node, context)

    def _found(self, at: ast.AST, context: Context) -> Finding:
        return context.finding(
            self,
            at,
            'Ray counts NPUs under the resource "NPU": ask for resources={"NPU": 1}, and for that name where it counts',
            basis=Basis("Ray's documentation, Accelerator Support", "documented", "Ray 2.x"),
        )


def _is_rays(function: ast.expr, context: Context) -> bool:
    """``ray.remote``, ``ray.init``, or the ``options`` of a task or actor."""
    if isinstance(function, ast.Attribute) and function.attr == "options":
        return _RAY.search(context.module.text) is not None
    return (context.name_of(function) or "").startswith("ray.")


def _is_key(node: ast.Constant) -> bool:
    """A key of a dict, be it written, looked up or asked for."""
    around = parent(node)
    if isinstance(around, ast.Dict):
        statement = next(outer for outer in ancestors(node) if isinstance(outer, ast.stmt))
        texts = {part.value for part in ast.walk(statement) if isinstance(part, ast.Constant)}
        return node in around.keys and "NPU" not in texts
    if isinstance(around, ast.Subscript):
        return node is around.slice
    return (
        isinstance(around, ast.Call)
        and isinstance(around.func, ast.Attribute)
        and around.func.attr in {"get", "pop"}
        and around.args[:1] == [node]
    )


class AccelerateMultiGpu(Rule):
    """accelerate's kind of a distributed run is compared with that of several GPUs."""

    code = "NP715"
    name = "accelerate-multi-gpu"
    severity = Severity.WARNING
    markers = (r"\bDistributedType\.MULTI_GPU\b",)
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        name = context.name_of(node) or ""
        if not name.startswith("accelerate.") or not name.endswith("DistributedType.MULTI_GPU"):
            return
        if "MULTI_NPU" in context.text_before:
            return
        end = context.module.lines.span(node)[1]
        yield context.finding(
            self,
            node,
            "accelerate calls a run on several NPUs MULTI_NPU, so that this takes the other branch",
            fix=context.fix([Edit(end - len("GPU"), end, "NPU")], Applicability.UNSAFE, "name NPUs"),
            basis=Basis("accelerate.utils.DistributedType", "measured", "1.15.0"),
        )


_PYNCCL = "vllm.distributed.device_communicators.pynccl"
_PYHCCL = "vllm_ascend.distributed.device_communicators.pyhccl"


class NcclCommunicator(Rule):
    """vLLM's communicator for NCCL is imported."""

    code = "NP716"
    name = "nccl-communicator"
    severity = Severity.ERROR
    markers = (r"\bPyNcclCommunicator\b",)
    nodes = (ast.ImportFrom,)
    follows_names = False

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.ImportFrom)
        if node.module != _PYNCCL or node.level or context.has_npu_branches:
            return
        for alias in node.names:
            if alias.name != "PyNcclCommunicator":
                continue
            new = f"from {_PYHCCL} import PyHcclCommunicator as {alias.asname or alias.name}"
            alone = len(node.names) == 1
            yield context.finding(
                self,
                alias,
                "this communicator calls NCCL; vllm-ascend has PyHcclCommunicator with the same parameters in"
                f" {_PYHCCL}",
                fix=context.replace_node(node, new, Applicability.UNSAFE, "take that of vllm-ascend")
                if alone
                else None,
                basis=Basis("huggingface/trl pull request 3286", "documented"),
            )


_TRAINER = (
    "Trainer's default optimizer is a fused one from torch 2.8 on, to which the gradient scaler that accelerate takes"
)
_ARGUMENTS = re.compile(r"^(?:transformers|trl|sentence_transformers)\.(?:\w+\.)*\w*(?:TrainingArguments|Config)$")


class TrainerWithScaler(Rule):
    """transformers' Trainer is to train in float16, with its default optimizer or with PyTorch's fused one."""

    code = "NP718"
    name = "trainer-with-scaler"
    severity = Severity.ERROR
    markers = (r"\bfp16\s*=",)
    needs = (("TrainingArguments", "Config("),)
    nodes = (ast.Call,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        return settings.torch_at_least("2.8")

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        given = {keyword.arg: keyword for keyword in node.keywords}
        half, chosen = given.get("fp16"), given.get("optim")
        if half is None or not _ARGUMENTS.match(context.name_of(node.func) or ""):
            return
        asked = context.constants_of(half.value)
        if asked is not None and not any(asked):
            return
        if chosen is not None and not _is(chosen.value, "adamw_torch_fused"):
            return
        if chosen is not None:
            edit = Edit(*context.module.lines.span(chosen.value), '"adamw_torch"')
        else:
            end = context.module.lines.span(half)[1]
            edit = Edit(end, end, ', optim="adamw_torch"')
        sure = asked is not None and all(asked) and None not in given
        fix = context.fix([edit], Applicability.SAFE if sure else Applicability.UNSAFE, 'say optim="adamw_torch"')
        yield context.finding(
            self,
            half,
            f"{_TRAINER} on an NPU hands itself: TypeError, step() got an unexpected keyword argument 'grad_scaler'",
            fix=fix if None not in given or chosen is not None else None,
            basis=Basis("transformers.Trainer and accelerate 1.15.0 on a simulated NPU", "measured", "4.57.1"),
            severity=self.severity if sure else Severity.WARNING,
        )


RULES: tuple[type[Rule], ...] = (
    LightningOnGpu,
    AttentionByName,
    RayBackend,
    RayCountsGpus,
    AccelerateMultiGpu,
    NcclCommunicator,
    TrainerWithScaler,
)
