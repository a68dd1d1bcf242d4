"""How batches come to the device: pinned memory, copies that wait, batches of other sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import chip
from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.settings import Settings
from npuport.rules.synchronization import is_now_and_then, loop_around, trains
from npuport.rules.usage import DEVICE, is_like
from npuport.source.module import ancestors

_LOADERS = {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


class PinnedForCudaOnly(Rule):
    """``pin_memory=True`` where that pins for CUDA only."""

    code = "NP631"
    name = "pinned-for-cuda-only"
    severity = Severity.WARNING
    markers = (r"\bpin_memory\s*=\s*True",)
    nodes = (ast.Call,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        return not settings.torch_at_least("2.7")  # from then on the current accelerator is meant

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if "pin_memory_device" in given or None in given or not _is_true(given.get("pin_memory")):
            return
        if context.name_of(node.func) not in _LOADERS:
            return
        end = context.module.lines.span(given["pin_memory"])[1]
        yield context.finding(
            self,
            given["pin_memory"],
            "before torch 2.7 this pins memory where there is CUDA, and does nothing for an NPU without"
            ' pin_memory_device="npu"',
            fix=context.fix([Edit(end, end, ', pin_memory_device="npu"')], Applicability.UNSAFE, "pin for the NPU"),
            basis=Basis("torch source (utils/data/dataloader.py)", "documented", "2.6.0"),
        )


_PINNED = ("pin_memory=True", "pin_memory = True", "pin_memory': True", 'pin_memory": True')


class CopyThatWaits(Rule):
    """Batches in pinned memory are copied to the device, and the host waits for each copy."""

    code = "NP634"
    name = "copy-that-waits"
    severity = Severity.ADVICE
    agnostic = True
    markers = (r"\.cuda\(\)", r"\.npu\(\)", (".to(", r"\.to\(\s*(?:[\w.]*dev(?:ice)?\b|[\"'](?:cuda|npu))"))
    needs = (_PINNED, (".backward(",), (".step(",))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        loop = loop_around(node) if _moves(node, context) else None
        if loop is None or not trains(loop):
            return
        copies = [part for part in ast.walk(loop) if isinstance(part, ast.Call) and _copies(part, loop, context)]
        if not copies or min(copies, key=lambda copy: (copy.lineno, copy.col_offset)) is not node:
            return  # one finding for all copies of a batch
        ends = [(copy, context.module.lines.span(copy)[1] - 1) for copy in copies]
        edits = [Edit(end, end, f"{', ' if copy.args else ''}non_blocking=True") for copy, end in ends]
        yield context.finding(
            self,
            node,
            "the batch lies in pinned memory, and the host waits for this copy all the same: non_blocking=True lets it"
            " go on; to hide the copy too, fetch the next batch on a stream of its own",
            fix=context.fix(edits, Applicability.MANUAL, "copy without waiting"),
            basis=Basis("copies from pinned memory may overlap the host's work", "documented", "torch 2.13.0"),
        )


def _copies(call: ast.Call, loop: ast.For | ast.While, context: Context) -> bool:
    """Whether a call moves what the loader gave at every step."""
    return (
        isinstance(call.func, ast.Attribute)
        and _from_loop(call.func.value, loop)
        and _moves(call, context)
        and not is_now_and_then(call, loop)
    )


def _moves(call: ast.Call, context: Context) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or call.keywords or context.name_of(function) is not None:
        return False
    if function.attr in {"cuda", "npu"}:
        return not call.args
    if function.attr != "to" or len(call.args) != 1:
        return False
    device = call.args[0]
    named = isinstance(device, ast.Constant) and str(device.value).startswith(("cuda", "npu"))
    return named or is_like(device, context, DEVICE)


def _from_loop(node: ast.expr, loop: ast.For | ast.While) -> bool:
    """Whether ``node`` is a variable of the loop, or of a comprehension over one: what the loader gave."""
    if not isinstance(node, ast.Name) or not isinstance(loop, ast.For):
        return False
    targets = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    for around in ancestors(node):
        if around is loop:
            break
        for part in getattr(around, "generators", ()):
            if any(isinstance(inner, ast.Name) and inner.id == node.id for inner in ast.walk(part.target)):
                return isinstance(part.iter, ast.Name) and part.iter.id in targets
    return node.id in targets


class SmallerLastBatch(Rule):
    """A loader for training whose last batch is smaller, for a chip that compiles operators for each shape."""

    code = "NP632"
    name = "smaller-last-batch"
    severity = Severity.ADVICE
    markers = (r"\bshuffle\s*=", r"\bsampler\s*=")
    needs = (("DataLoader",),)
    nodes = (ast.Call,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        known = chip(settings.chip)
        return known is not None and known.jit_compile_by_default

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if {"drop_last", "batch_sampler", None} & given.keys() or context.name_of(node.func) not in _LOADERS:
            return
        if not _is_true(given.get("shuffle")) or "batch_size" not in given:
            return
        end = context.module.lines.span(node.keywords[-1])[1]
        yield context.finding(
            self,
            node.func,
            f"the last batch of an epoch is smaller, and {context.settings.chip} compiles every operator for it:"
            " drop_last=True leaves it out",
            fix=context.fix([Edit(end, end, ", drop_last=True")], Applicability.UNSAFE, "drop the last batch"),
            basis=_PER_SHAPE,
        )


_PER_SHAPE = Basis("op-plugin documents on torch_npu.npu.set_compile_mode", "documented", "2.13.0")
_COLLATORS = {
    f"transformers.{module}{name}"
    for module in ("", "data.", "data.data_collator.")
    for name in ("DataCollatorWithPadding", "DataCollatorForSeq2Seq", "DataCollatorForTokenClassification")
}


class BatchesOfAnyLength(Rule):
    """Batches are padded to their longest sequence, so that nearly each has a shape of its own."""

    code = "NP633"
    name = "batches-of-any-length"
    severity = Severity.ADVICE
    edits = False
    markers = (r"\bDataCollator\w+\(", r"\bpad_sequence\(")
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in _COLLATORS and None not in given:
            padding = given.get("padding")
            fixed = isinstance(padding, ast.Constant) and padding.value in {"max_length", False}
            if "pad_to_multiple_of" not in given and not fixed:
                yield self._finding(node, "pad_to_multiple_of=64", context)
        elif name == "torch.nn.utils.rnn.pad_sequence" and _collates(node):
            yield self._finding(node, "a length rounded up to a multiple of 64", context)

    def _finding(self, node: ast.Call, remedy: str, context: Context) -> Finding:
        return context.finding(
            self,
            node.func,
            f"each batch is as long as its longest sequence, and kernels are prepared anew for each new length:"
            f" {remedy} leaves few of them",
            basis=Basis("an operator is compiled or tiled for the shape of its inputs", "documented", "CANN"),
        )


def _collates(node: ast.AST) -> bool:
    function = next((around for around in ancestors(node) if isinstance(around, ast.FunctionDef)), None)
    return function is not None and "collat" in function.name


RULES: tuple[type[Rule], ...] = (PinnedForCudaOnly, CopyThatWaits, SmallerLastBatch, BatchesOfAnyLength)
