"""Dtypes that the chip of the port lacks, or that programs choose for every device but the one they know of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import chip, dtype
from npuport.facts.mixed_precision import float16_scaler
from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.settings import Settings

_DTYPE_OPTIONS = {"torch_dtype", "dtype", "mixed_precision", "precision"}
_TEXTS = {"bfloat16", "bf16", "torch.bfloat16", "bf16-mixed", "bf16-true"}


class BFloat16OnThisChip(Rule):
    """bfloat16, for a chip that does not compute it."""

    code = "NP411"
    name = "bfloat16-on-this-chip"
    severity = Severity.ERROR
    markers = (r"\bbfloat16\b", r"\bbf16")
    nodes = (ast.Attribute, ast.keyword)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        known = chip(settings.chip)
        return known is not None and not known.bf16

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        known = chip(context.settings.chip)
        if known is None or not self._asks_for_it(node, context):
            return
        yield context.finding(
            self,
            node,
            f"{known.name} does not compute bfloat16: use float16, with {float16_scaler(known)} where it trains",
            basis=known.basis,
        )

    @staticmethod
    def _asks_for_it(node: ast.AST, context: Context) -> bool:
        if isinstance(node, ast.Attribute):
            return context.name_of(node) == "torch.bfloat16"
        assert isinstance(node, ast.keyword)
        if not isinstance(node.value, ast.Constant):
            return False
        if node.arg == "bf16":
            return node.value.value is True
        return node.arg in _DTYPE_OPTIONS and node.value.value in _TEXTS


class Float64UnlessMps(Rule):
    """float64 for every device but MPS, which was the only one known to lack it."""

    code = "NP412"
    name = "float64-unless-mps"
    severity = Severity.WARNING
    markers = (r"\bfloat64\b", r"\btorch\.double\b", r"\btorch\.int64\b")
    needs = (("mps",),)
    nodes = (ast.IfExp,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.IfExp)
        fact = dtype("float64")
        wide = {"torch.float64", "torch.double"}
        names = [context.name_of(part) for part in (node.body, node.orelse)]
        chosen = [part for part, name in zip((node.body, node.orelse), names, strict=True) if name in wide]
        words = _words(node.test)
        if not any("mps" in word for word in words) or any("npu" in word for word in words):
            return
        if set(names) == {"torch.int32", "torch.int64"}:
            yield context.finding(
                self,
                node,
                "int64 works on an NPU and is slower there: take int32 for it too, as for MPS",
                severity=Severity.ADVICE,
                basis=Basis("huggingface/diffusers pull request 10123", "inferred"),
            )
        if fact is None or len(chosen) != 1:
            return
        yield context.finding(
            self,
            chosen[0],
            "few NPU operators take float64: an NPU needs float32 here, as MPS does",
            basis=fact.basis,
        )


def _words(node: ast.expr) -> set[str]:
    """The names and texts of an expression, in lower case."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id.lower())
        elif isinstance(part, ast.Attribute):
            found.add(part.attr.lower())
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.add(part.value.lower())
    return found


_MAKERS = {f"torch.{name}" for name in ("arange", "zeros", "ones", "empty", "full", "randint", "randperm")}
_LARGE = 1_000_000  # elements: from here on the difference is megabytes


class LargeInt64Tensor(Rule):
    """A large tensor of int64 is made on the device."""

    code = "NP413"
    name = "large-int64-tensor"
    severity = Severity.ADVICE
    edits = False
    agnostic = True
    markers = tuple((word, rf"(?:\d{{4}}|\d_\d{{3}}|\*\*).*\b{word}\b") for word in ("torch.int64", "torch.long"))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) not in _MAKERS:
            return
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        device = given.get("device")
        if device is None or (isinstance(device, ast.Constant) and device.value == "cpu") or "dtype" not in given:
            return
        count = _elements(node, context)
        if count >= _LARGE and context.name_of(given["dtype"]) in {"torch.int64", "torch.long"}:
            yield context.finding(
                self,
                given["dtype"],
                f"{count} elements of 8 bytes: int32 takes half the memory and time to move, where the values fit;"
                " indexing takes both, gather and scatter take int64 only",
                basis=Basis("sizes of the dtypes", "documented", "torch 2.13.0"),
                elements=count,
            )


def _elements(call: ast.Call, context: Context) -> int:
    """How many elements a call of a maker gives; 0 where that is not known in advance."""
    sizes = call.args[:1] if context.name_of(call.func) in {"torch.arange", "torch.randperm"} else call.args
    if len(sizes) == 1 and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    elif context.name_of(call.func) in {"torch.full", "torch.randint"}:
        return 0
    if context.name_of(call.func) == "torch.arange" and len(call.args) > 1:
        return 0
    product = 1
    for size in sizes:
        values = context.constants_of(size)
        if values is None or len(values) != 1 or not isinstance(value := next(iter(values)), int):
            return 0
        product *= value
    return product if sizes else 0


RULES: tuple[type[Rule], ...] = (BFloat16OnThisChip, Float64UnlessMps, LargeInt64Tensor)
