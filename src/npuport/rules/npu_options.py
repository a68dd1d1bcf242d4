"""Code that knows NPUs already: options of torch_npu, names that moved; and what first-generation chips need set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import chip
from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Severity
from npuport.rules.base import Context, Rule
from npuport.rules.settings import Settings
from npuport.source.module import parent

_NPU_MODULES = ("torch.npu.", "torch_npu.npu.")


class NpuOperatorOfTorch(Rule):
    """An operator of torch_npu under the name that it had in torch: ``torch.npu_format_cast``."""

    code = "NP458"
    name = "npu-operator-of-torch"
    severity = Severity.ERROR
    markers = (r"\.npu_",)
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        name = context.name_of(node) if node.attr.startswith("npu_") else None
        if name != f"torch.{node.attr}" or not isinstance(node.ctx, ast.Load):
            return
        start, end = context.module.lines.span(node.value)
        yield context.finding(
            self,
            node,
            f"torch_npu's operators are no longer torch's: this raises RuntimeError; write torch_npu.{node.attr}",
            fix=context.fix([Edit(start, end, "torch_npu")], title="call torch_npu's", needs="torch_npu"),
            basis=Basis("torch_npu on a simulated CANN", "measured", "2.13.0"),
            symbol=name,
        )


class PrivateFormat(Rule):
    """A tensor is put in a private format, or private formats are allowed where they are off by default."""

    code = "NP464"
    name = "private-format"
    severity = Severity.ADVICE
    markers = (r"\bnpu_format_cast", r"\ballow_internal_format\b")
    nodes = (ast.Call, ast.Assign)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            name = context.name_of(target) if isinstance(target, ast.Attribute) else None
            allows = isinstance(node.value, ast.Constant) and node.value.value is True
            if allows and name in _spellings("config.allow_internal_format") and not _compiles_for_shapes(context):
                yield context.finding(
                    self,
                    node,
                    "private formats are off by default on this chip: what was written for plain ones, such as views"
                    " and copies, meets converted tensors; leave this out unless it is measured to help",
                    basis=_FORMATS,
                )
            return
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func) or ""
        if name not in {f"{owner}.npu_format_cast{end}" for owner in ("torch_npu", "torch") for end in ("", "_")}:
            return
        asked = node.args[1] if len(node.args) > 1 else None
        if asked is not None and _is_private(asked) and not _compiles_for_shapes(context):
            yield context.finding(
                self,
                node.func,
                "a cast to a private format does nothing while torch.npu.config.allow_internal_format is False, its"
                " default on this chip: leave it out",
                basis=_CAST,
            )


_FORMATS = Basis("op-plugin documents on torch_npu.npu.config.allow_internal_format", "documented", "2.13.0")
_CAST = Basis("torch_npu on a simulated CANN", "measured", "2.13.0")
_PRIVATE = {"NC1HWC0": 3, "FRACTAL_Z": 4, "FRACTAL_NZ": 29, "NDC1HWC0": 32, "FRACTAL_Z_3D": 33}


def _spellings(name: str) -> set[str]:
    return {f"{module}{name}" for module in _NPU_MODULES}


def _is_private(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in _PRIVATE.values()
    return isinstance(node, ast.Attribute) and node.attr in _PRIVATE


def _compiles_for_shapes(context: Context) -> bool:
    """Whether the chip of the port compiles operators and takes private formats by default: the older chips."""
    known = chip(context.settings.chip)
    return known is not None and known.jit_compile_by_default


# The values that torch_npu's set_option takes (torch_npu/npu/npu_config.py); None for any.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "ACL_PRECISION_MODE": ("allow_fp32_to_fp16", "must_keep_origin_dtype"),
    "ACL_OP_SELECT_IMPL_MODE": ("high_performance", "high_precision"),
    "ACL_OP_DEBUG_LEVEL": ("0", "1", "2", "3", "4"),
    "ACL_OP_COMPILER_CACHE_MODE": ("disable", "enable", "force"),
}


class OperatorOption(Rule):
    """An option for all operators that lowers precision, or a value of one that torch_npu refuses."""

    code = "NP465"
    name = "operator-option"
    severity = Severity.WARNING
    markers = (r"\bset_option\b",)
    needs = (("ACL_",),)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) not in _spellings("set_option") or not node.args:
            return
        given = node.args[0]
        if isinstance(given, ast.Name):
            bound = context.scope(given).lookup(given.id)
            given = bound[0].value if len(bound) == 1 and bound[0].value is not None else given
        for key, value in zip(given.keys, given.values, strict=True) if isinstance(given, ast.Dict) else ():
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                yield from self._option(str(key.value), value, context)

    def _option(self, key: str, value: ast.Constant, context: Context) -> Iterator[Finding]:
        taken = _OPTIONS.get(key)
        if taken is not None and value.value not in taken:
            message = f"torch_npu takes {' or '.join(taken)} for {key} and raises ValueError for this"
            yield context.finding(self, value, message, basis=_OPTION, severity=Severity.ERROR, option=key)
        elif (key, value.value) == ("ACL_PRECISION_MODE", "allow_fp32_to_fp16"):
            yield context.finding(self, value, _LOWERS, basis=_OPTION, option=key)
        elif (key, value.value) == ("ACL_OP_SELECT_IMPL_MODE", "high_performance"):
            message = "this trades precision of operators for speed, and torch_npu calls the option deprecated"
            yield context.finding(self, value, message, basis=_OPTION, option=key)


_OPTION = Basis("torch_npu source (npu/npu_config.py)", "documented", "2.13.0")
_LOWERS = (
    "operators may compute float32 in float16 with this: for a comparison with another device take"
    " must_keep_origin_dtype, and mixed precision from torch.autocast"
)


class CompiledForEachShape(Rule):
    """A training script for a chip that compiles each operator for each shape unless it is told not to."""

    code = "NP466"
    name = "compiled-for-each-shape"
    severity = Severity.ADVICE
    markers = (r"__name__\s*==",)
    needs = ((".backward(",), (".step(",), ("cuda", "npu"))
    nodes = (ast.If,)

    @classmethod
    def applies(cls, settings: Settings) -> bool:
        known = chip(settings.chip)
        return known is not None and known.jit_compile_by_default

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.If)
        if parent(node) is not None or not _asks_for_main(node.test):
            return
        if context.project.holding("set_compile_mode") or context.project.holding("jit_compile"):
            return
        yield context.finding(
            self,
            node.test,
            f"{context.settings.chip} compiles each operator for each new shape: with"
            " torch.npu.set_compile_mode(jit_compile=False), in each process, it takes the kernels that CANN brings",
            fix=_first_in(node, context),
            basis=Basis("op-plugin documents on torch_npu.npu.set_compile_mode", "documented", "2.13.0"),
        )


def _asks_for_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and re.search(r"'__name__'.*'__main__'", ast.dump(test)) is not None


def _first_in(node: ast.If, context: Context) -> Fix | None:
    """The call as the first statement under the main guard; None where torch is not at hand there."""
    first = node.body[0]
    if context.scope(node).lookup("torch") == [] or first.lineno == node.lineno:
        return None
    start = context.module.lines.span(first)[0]
    indent = context.module.text[context.module.lines.starts[first.lineno - 1] : start]
    text = f"torch.npu.set_compile_mode(jit_compile=False){'; ' if context.settings.keep_lines else ''}"
    joint = "" if context.settings.keep_lines else f"{context.newline}{indent}"
    if context.settings.keep_lines and not isinstance(first, ast.Expr | ast.Assign | ast.Return):
        return None
    return context.fix([Edit(start, start, text + joint)], Applicability.UNSAFE, "take the kernels of CANN")


_ON_CPU = re.compile(r"""map_location\s*=\s*(?:torch\.device\()?["']cpu["']|\.cpu\(\)""")


class OldFileFormat(Rule):
    """``torch.save`` in the file format from before torch 1.6."""

    code = "NP469"
    name = "old-file-format"
    severity = Severity.WARNING
    agnostic = True
    markers = (r"\b_use_new_zipfile_serialization\b",)
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        asked = [one for one in node.keywords if one.arg == "_use_new_zipfile_serialization"]
        if not asked or not isinstance(asked[0].value, ast.Constant) or asked[0].value.value is not False:
            return
        if context.name_of(node.func) != "torch.save" or _ON_CPU.search(context.module.text):
            return
        yield context.finding(
            self,
            asked[0],
            "torch.save raises RuntimeError for a tensor of an NPU in this format (npu storage desc is unavailable);"
            " torch 1.6 and later read the new one",
            fix=context.replace_node(asked[0].value, "True", Applicability.UNSAFE, "save in the new format"),
            basis=Basis("torch_npu on a simulated CANN; its own warning advises against it", "measured", "2.13.0"),
        )


RULES: tuple[type[Rule], ...] = (
    NpuOperatorOfTorch,
    PrivateFormat,
    OperatorOption,
    CompiledForEachShape,
    OldFileFormat,
)
