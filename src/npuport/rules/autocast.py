"""Automatic mixed precision in float16 without what it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from npuport.facts import chip
from npuport.facts.mixed_precision import float16_scaler
from npuport.findings import Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.settings import Settings
from npuport.source.module import ancestors
from npuport.source.project import Project

_AUTOCAST = {
    "torch.autocast",
    "torch.amp.autocast",
    "torch.amp.autocast_mode.autocast",
    "torch.cuda.amp.autocast",
    "torch.cuda.amp.autocast_mode.autocast",
    "torch.npu.amp.autocast",
    "torch_npu.npu.amp.autocast",
}
_FLOAT16 = {"torch.float16", "torch.half"}
# Words of scalers, and of the libraries that have one of their own.
_SCALING = ("scaler", "Scaler", "loss_scale", "deepspeed", "accelerat", "lightning", "apex", "scale_loss")


class AutocastWithoutScaler(Rule):
    """A training step in float16 autocast, in a project that scales no loss."""

    code = "NP423"
    name = "autocast-without-scaler"
    severity = Severity.WARNING
    edits = False
    agnostic = True
    markers = (r"\bautocast\(",)
    needs = ((".backward(",),)
    nodes = (ast.Call,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        return chip(settings.chip) is not None

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        known = chip(context.settings.chip)
        if known is None or context.name_of(node.func) not in _AUTOCAST or not _is_float16(node, context):
            return
        if not _in_training_step(node, context) or _scales(context.project):
            return
        scaler = float16_scaler(known)
        if known.overflow == "saturation":
            hidden = f", and {known.name} shows an overflow in its flag only, which torch_npu's scaler asks"
        else:
            hidden = ""
        instead = "; bfloat16 needs none" if known.bf16 else ""
        yield context.finding(
            self,
            node.func,
            f"small gradients become zero in float16 unless the loss is scaled{hidden}: use {scaler}{instead}",
            basis=known.basis,
            instead=scaler,
        )


def _is_float16(call: ast.Call, context: Context) -> bool:
    """Whether an autocast for CUDA or an NPU casts to float16, which is what they do unless they are told a dtype."""
    if any(keyword.arg is None for keyword in call.keywords):
        return False
    given = {str(keyword.arg): keyword.value for keyword in call.keywords}
    takes_device = not (context.name_of(call.func) or "").startswith(("torch.cuda.", "torch.npu.", "torch_npu."))
    places = ("device_type", "dtype", "enabled") if takes_device else ("enabled", "dtype")
    arguments = {**dict(zip(places, call.args, strict=False)), **given}
    if "enabled" in arguments and context.constants_of(arguments["enabled"]) == frozenset({False}):
        return False
    device = arguments.get("device_type")
    if device is not None and not _is_accelerator(context.constants_of(device)):
        return False
    return "dtype" not in arguments or context.name_of(arguments["dtype"]) in _FLOAT16


def _is_accelerator(values: frozenset[object] | None) -> bool:
    return bool(values) and all(str(value).partition(":")[0] in {"cuda", "npu"} for value in values or ())


def _in_training_step(node: ast.AST, context: Context) -> bool:
    """Whether the function around ``node``, or the module, has a backward pass of its own."""
    functions = (around for around in ancestors(node) if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef))
    home = next(functions, context.module.tree)
    return any(isinstance(part, ast.Attribute) and part.attr == "backward" for part in ast.walk(home))


@lru_cache(maxsize=1)
def _scales(project: Project) -> bool:
    """Whether the project's text speaks of a scaler."""
    return any(word in text for text in project.texts.values() for word in _SCALING)


RULES: tuple[type[Rule], ...] = (AutocastWithoutScaler,)
