"""What PyTorch computes otherwise on an NPU: on the CPU instead, not in that memory format, not with that compiler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import all_operators, operator_status
from npuport.findings import Basis, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors, parent

# Modules and functions made of an operator that falls back (their definitions in torch 2.13.0).
_MADE_OF = {
    "torch.inverse": "linalg_inv_ex",
    "torch.linalg.inv": "linalg_inv_ex",
    "torch.linalg.cholesky": "linalg_cholesky_ex",
    "torch.linalg.lu_factor": "linalg_lu_factor_ex",
    "torch.linalg.ldl_factor": "linalg_ldl_factor_ex",
    "torch.matrix_exp": "linalg_matrix_exp",
    "torch.special.gammaln": "lgamma",
    "torch.special.digamma": "digamma",
    "torch.special.psi": "digamma",
    "torch.special.polygamma": "polygamma",
    "torch.special.gammainc": "igamma",
    "torch.special.gammaincc": "igammac",
    "torch.special.i0": "i0",
    "torch.nn.HuberLoss": "huber_loss",
    "torch.nn.functional.huber_loss": "huber_loss",
    "torch.nn.MultiMarginLoss": "multi_margin_loss",
    "torch.nn.functional.multi_margin_loss": "multi_margin_loss",
    "torch.nn.FractionalMaxPool2d": "fractional_max_pool2d",
    "torch.nn.FractionalMaxPool3d": "fractional_max_pool3d",
    "torch.nn.functional.fractional_max_pool2d": "fractional_max_pool2d",
    "torch.nn.functional.fractional_max_pool3d": "fractional_max_pool3d",
}
_NAMESPACES = {"linalg_": "torch.linalg.", "special_": "torch.special."}
# Methods that no other object is likely to have; a name such as `max` says nothing about its object.
_METHODS = {
    "lgamma", "lgamma_", "digamma", "digamma_", "igamma", "igammac", "polygamma", "cauchy_", "geometric_",
    "log_normal_", "heaviside", "heaviside_", "nextafter", "nextafter_", "index_reduce", "index_reduce_",
    "cholesky_inverse", "geqrf", "ormqr", "matrix_exp",
}  # fmt: skip


def _functions() -> dict[str, str]:
    """Functions of torch by qualified name -> the operator that falls back to the CPU."""
    found = dict(_MADE_OF)
    for name in all_operators():
        status = operator_status(name)
        if (
            status is None
            or status.status != "cpu_fallback"
            or name.startswith("_")
            or name.endswith(("_", "backward"))
        ):
            continue
        prefix = next((prefix for prefix in _NAMESPACES if name.startswith(prefix)), None)
        if prefix is None:
            found[f"torch.{name}"] = name
        else:
            found[_NAMESPACES[prefix] + name.removeprefix(prefix)] = name
    return found


_FALLBACK = _functions()


_NAMES = {function.rpartition(".")[2] for function in _FALLBACK} | _METHODS


class OperatorOnTheCpu(Rule):
    """A call whose operator has no NPU kernel: torch_npu copies to the CPU, computes there, and copies back."""

    code = "NP451"
    name = "operator-on-the-cpu"
    severity = Severity.WARNING
    markers = tuple((f".{name}", rf"\.{name}\b") for name in sorted(_NAMES))
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        name = context.name_of(node.func)
        operator = _FALLBACK.get(name or "")
        if operator is None and name is None and isinstance(node.func, ast.Attribute):
            operator = self._method(node.func, context)
        if operator is None:
            return
        known = operator_status(operator)
        yield context.finding(
            self,
            node.func,
            f"aten::{operator} has no NPU kernel: torch_npu copies its tensors to the CPU and back at every call",
            basis=known.basis if known else None,
            operator=f"aten::{operator}",
        )

    @staticmethod
    def _method(function: ast.Attribute, context: Context) -> str | None:
        if function.attr not in _METHODS or not context.module.scope.bindings.get("torch"):
            return None
        if context.name_of(function.value) is not None:
            return None
        owner = context.resolver.instance_class(function.value, context.scope(function))
        if owner is not None:
            return None  # an object of a class that is known, and no tensor
        bare = function.attr.rstrip("_")
        return next((name for name in (function.attr, bare, f"linalg_{bare}") if operator_status(name)), None)


_CHANNELS_LAST = {"torch.channels_last", "torch.channels_last_3d"}


class ChannelsLast(Rule):
    """A tensor or a model is put in the memory format channels_last."""

    code = "NP461"
    name = "channels-last"
    severity = Severity.ERROR
    markers = (r"torch\.channels_last", r"\bmemory_format\b")
    nodes = (ast.Attribute,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Attribute)
        if context.name_of(node) not in _CHANNELS_LAST or _only_asked_for(node):
            return
        guarded = any(isinstance(around, ast.If | ast.IfExp) for around in ancestors(node))
        yield context.finding(
            self,
            node,
            "torch_npu raises RuntimeError for every format but contiguous_format and preserve_format: leave it out",
            basis=Basis("torch_npu on a simulated CANN", "measured", "2.13.0"),
            severity=Severity.WARNING if guarded or context.has_npu_branches else Severity.ERROR,
        )


def _only_asked_for(node: ast.expr) -> bool:
    """Whether the program compares the format, or asks whether a tensor has it."""
    around = parent(node)
    if isinstance(around, ast.keyword):
        around = parent(around)
    method = around.func.attr if isinstance(around, ast.Call) and isinstance(around.func, ast.Attribute) else ""
    return isinstance(around, ast.Compare) or method == "is_contiguous"


class CompileForCuda(Rule):
    """``torch.compile`` with the default backend, or with an option that only CUDA has."""

    code = "NP462"
    name = "compile-for-cuda"
    severity = Severity.WARNING
    markers = (r"torch\.compile\b", r"\bimport compile\b")
    nodes = (ast.Call, ast.FunctionDef)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.FunctionDef):
            bare = [one for one in node.decorator_list if not isinstance(one, ast.Call)]
            for decorator in bare:
                if context.name_of(decorator) == "torch.compile":
                    yield self._finding(decorator, _DEFAULT, context)
            return
        assert isinstance(node, ast.Call)
        if context.name_of(node.func) != "torch.compile":
            return
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        mode = given.get("mode")
        if isinstance(mode, ast.Constant) and str(mode.value).startswith(("reduce-overhead", "max-autotune")):
            yield self._finding(mode, f"mode {mode.value!r} is about CUDA graphs and Triton's tuning for GPUs", context)
        elif "backend" not in given and None not in given:
            yield self._finding(node.func, _DEFAULT, context)

    def _finding(self, at: ast.expr, message: str, context: Context) -> Finding:
        return context.finding(self, at, message, basis=_COMPILE)


_DEFAULT = (
    "the default backend, inductor, needs triton-ascend on an NPU and fails without it; torch_npu's graph engine is"
    " another backend"
)
_COMPILE = Basis("torch_npu on a simulated CANN", "measured", "2.13.0")

RULES: tuple[type[Rule], ...] = (OperatorOnTheCpu, ChannelsLast, CompileForCuda)
