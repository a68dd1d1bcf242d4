"""Numbers: float64, cuDNN's flags, TF32 and HF32, attention backends, other settings of CUDA's libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from npuport.facts import dtype, torch_name
from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import parent

_CUDNN = "torch.backends.cudnn"
_CUDA = "torch.backends.cuda"
_TF32 = {
    f"{_CUDA}.matmul.allow_tf32": "npu.matmul.allow_hf32",
    f"{_CUDNN}.allow_tf32": "npu.conv.allow_hf32",
    f"{_CUDNN}.conv.allow_tf32": "npu.conv.allow_hf32",
}
_PRECISION = {
    f"{_CUDA}.matmul.fp32_precision",
    f"{_CUDNN}.fp32_precision",
    f"{_CUDNN}.conv.fp32_precision",
    f"{_CUDNN}.rnn.fp32_precision",
    "torch.backends.fp32_precision",
}
_SDP_SWITCHES = {
    f"{_CUDA}.{name}"
    for name in (
        "enable_flash_sdp",
        "enable_mem_efficient_sdp",
        "enable_math_sdp",
        "enable_cudnn_sdp",
        "flash_sdp_enabled",
        "mem_efficient_sdp_enabled",
        "math_sdp_enabled",
        "cudnn_sdp_enabled",
        "sdp_kernel",
        "SDPBackend",
        "allow_fp16_bf16_reduction_math_sdp",
        "fp16_bf16_reduction_math_sdp_allowed",
    )
}
_SDP_QUESTIONS = {
    f"{_CUDA}.{name}"
    for name in (
        "is_flash_attention_available",
        "can_use_flash_attention",
        "can_use_efficient_attention",
        "can_use_cudnn_attention",
        "SDPAParams",
    )
}


def whole_name(node: ast.AST, context: Context) -> str | None:
    """The name of the longest attribute chain that begins with ``node``; None inside one, and for unknown names."""
    if not isinstance(node, ast.Attribute | ast.Name) or isinstance(parent(node), ast.Attribute):
        return None
    return context.name_of(node)


def torch_spelling(node: ast.AST, context: Context) -> str | None:
    """How ``torch`` is written at ``node``; None where it is not bound."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    for name in (root.id if isinstance(root, ast.Name) else "", "torch"):
        bindings = context.scope(node).lookup(name) if name else []
        if bindings and context.name_of(ast.copy_location(ast.Name(name, ast.Load()), node)) == "torch":
            return name
    return None


class Float64OnNpu(Rule):
    """float64 where it can reach the NPU."""

    code = "NP401"
    name = "float64-on-npu"
    severity = Severity.WARNING
    markers = (r"\bfloat64\b", r"\.double\(", r"\btorch\.double\b")
    nodes = (ast.Call,)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        message = self._message(node, context)
        fact = dtype("float64")
        if message and fact:
            yield context.finding(self, node, message, basis=fact.basis)

    @staticmethod
    def _message(node: ast.Call, context: Context) -> str | None:
        name = context.name_of(node.func)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        wide = any(context.name_of(argument) in {"torch.float64", "torch.double"} for argument in arguments)
        if name == "torch.set_default_dtype":
            return "few NPU operators take float64: with it as the default dtype most of them fail" if wide else None
        if name is not None and name.startswith("torch."):
            placed = any(keyword.arg == "device" and not _is_cpu(keyword.value) for keyword in node.keywords)
            return "few NPU operators take float64, the dtype of this tensor" if wide and placed else None
        if not isinstance(node.func, ast.Attribute) or not _uses_torch(context) or _on_cpu(node.func.value, context):
            return None
        method = node.func.attr
        if method == "double" and not arguments and name is None:
            return "double() on an NPU gives float32; float64 from before the move stays, but few operators take it"
        if method in {"to", "type"} and wide:
            placed = len(arguments) > 1 and not any(_is_cpu(argument) for argument in arguments)
            if any(_is_cpu(argument) for argument in arguments):
                return None
            return (
                "few NPU operators take float64, the dtype of this tensor"
                if placed
                else "this gives float32 for a tensor on an NPU, with a warning"
            )
        return None


def _uses_torch(context: Context) -> bool:
    return any(
        binding.target.partition(".")[0] == "torch"
        for bindings in context.module.scope.bindings.values()
        for binding in bindings
    )


def _is_cpu(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"


def _on_cpu(node: ast.expr, context: Context) -> bool:
    """Whether a tensor is plainly made or moved to the CPU where it is used."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and (
        node.func.attr == "cpu" or (node.func.attr == "to" and any(_is_cpu(argument) for argument in node.args))
    ):
        return True
    name = context.name_of(node.func)
    if name is not None and name.startswith(("torch.", "numpy.")):
        return not any(keyword.arg == "device" and not _is_cpu(keyword.value) for keyword in node.keywords)
    return isinstance(node.func, ast.Attribute) and _on_cpu(node.func.value, context)


class CudnnFlag(Rule):
    """``torch.backends.cudnn``: accepted on an NPU, and without effect."""

    code = "NP402"
    name = "cudnn-flag"
    severity = Severity.INFO
    markers = (r"\bcudnn\b",)
    nodes = (ast.Attribute, ast.Name, ast.Import, ast.ImportFrom)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                origin = f"{node.module}." if isinstance(node, ast.ImportFrom) and not node.level else ""
                if f"{origin}{alias.name}".startswith(_CUDNN):
                    yield context.finding(self, alias, "this imports anywhere; an NPU never uses cuDNN")
            return
        name = whole_name(node, context)
        if name is None or not (name == _CUDNN or name.startswith(f"{_CUDNN}.")):
            return
        if name in _TF32 or name in _PRECISION:
            return
        severity, message = self._meaning(name, node)
        fact = torch_name(name)
        yield context.finding(
            self, node, message, severity=severity, basis=fact.basis if fact else None, name=name.rpartition(".")[2]
        )

    @staticmethod
    def _meaning(name: str, node: ast.AST) -> tuple[Severity, str]:
        short = name.removeprefix(f"{_CUDNN}.")
        around = parent(node)
        value = around.value if isinstance(around, ast.Assign | ast.AnnAssign) and node is not around.value else None
        if short == "deterministic" and not (isinstance(value, ast.Constant) and value.value in (False, None)):
            return (
                Severity.WARNING,
                "cudnn.deterministic has no effect on an NPU: torch.use_deterministic_algorithms(True) has",
            )
        if short == "is_available":
            return (
                Severity.WARNING,
                "cuDNN is never available on an NPU, so this takes the other branch",
            )
        if short == "version":
            compared = isinstance(outer := parent(around) if around else None, ast.Compare | ast.BinOp)
            return (
                Severity.ERROR if compared and outer is not None else Severity.WARNING,
                "cudnn.version() is None on an NPU: comparing it with a number raises TypeError",
            )
        return Severity.INFO, "this is accepted on an NPU and changes nothing there"


class Tf32Flag(Rule):
    """TF32 switches, whose counterpart on an NPU is HF32."""

    code = "NP403"
    name = "tf32-flag"
    severity = Severity.WARNING
    markers = (r"\ballow_tf32\b", r"\bfp32_precision\b", r"\bset_float32_matmul_precision\b")
    nodes = (ast.Attribute, ast.Call)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.Call):
            yield from self._matmul_precision(node, context)
            return
        assert isinstance(node, ast.Attribute)
        name = whole_name(node, context)
        if name in _PRECISION:
            yield context.finding(
                self,
                node,
                "this does not reach an NPU, which has torch.npu.matmul.allow_hf32 and torch.npu.conv.allow_hf32",
                basis=Basis("torch_npu on a simulated CANN", "measured", "torch_npu 2.13.0"),
            )
        if name not in _TF32:
            return
        fact = torch_name(name) or torch_name(f"{_CUDNN}.allow_tf32")
        start, end = context.module.lines.span(node)
        torch = torch_spelling(node, context)
        new = _TF32[name]
        edits = [Edit(start, end, f"{torch}.{new}")] if torch and "\n" not in context.module.text[start:end] else []
        applicability = Applicability.UNSAFE if context.has_npu_branches else Applicability.SAFE
        needs = None if context.settings.torch_at_least("2.5") else "torch_npu"  # since then torch imports it
        yield context.finding(
            self,
            node,
            f"TF32 is a mode of NVIDIA GPUs and changes nothing on an NPU, whose reduced float32 mode is torch.{new}",
            fix=context.fix(edits, applicability, "use HF32", needs) if edits else None,
            basis=fact.basis if fact else None,
        )

    def _matmul_precision(self, node: ast.Call, context: Context) -> Iterator[Finding]:
        if context.name_of(node.func) != "torch.set_float32_matmul_precision" or not node.args:
            return
        values = context.constants_of(node.args[0])
        if values == frozenset({"highest"}) or "allow_hf32" in context.module.text:
            return
        fact = torch_name("torch.set_float32_matmul_precision")
        yield context.finding(
            self,
            node,
            "this sets no option of an NPU: torch.npu.matmul.allow_hf32 = True makes float32 products faster there",
            severity=Severity.ADVICE,
            basis=fact.basis if fact else None,
        )


class CudaSdpBackend(Rule):
    """Choosing among CUDA's kernels for scaled_dot_product_attention."""

    code = "NP404"
    name = "cuda-sdp-backend"
    severity = Severity.INFO
    markers = (*sorted(name.rpartition(".")[2] for name in _SDP_SWITCHES | _SDP_QUESTIONS), "CUDNN_ATTENTION")
    nodes = (ast.Attribute, ast.Name)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        name = whole_name(node, context)
        if name in _SDP_SWITCHES:
            fact = torch_name(name)
            yield context.finding(
                self,
                node,
                "this sets a switch that exists everywhere, but an NPU chooses its attention kernel without it",
                basis=fact.basis if fact else None,
            )
        elif name in _SDP_QUESTIONS:
            yield context.finding(
                self,
                node,
                "this asks about CUDA's attention kernels, so on an NPU the answer is no, whatever kernels that has",
                severity=Severity.WARNING,
                basis=Basis("torch_npu on a simulated CANN", "measured", "torch_npu 2.13.0"),
            )
        elif name == "torch.nn.attention.SDPBackend.CUDNN_ATTENTION":
            yield context.finding(
                self,
                node,
                "cuDNN has no part in attention on an NPU, which chooses its kernel without this",
                basis=Basis("torch_npu on a simulated CANN", "measured", "torch_npu 2.13.0"),
            )


class CudaBackendSetting(Rule):
    """Everything else under ``torch.backends.cuda``."""

    code = "NP405"
    name = "cuda-backend-setting"
    severity = Severity.INFO
    markers = (r"\bbackends\.cuda\b", r"\bbackends import cuda\b")
    nodes = (ast.Attribute, ast.Name)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        name = whole_name(node, context)
        if name is None or not name.startswith(f"{_CUDA}."):
            return
        if name in _TF32 or name in _PRECISION or name in _SDP_SWITCHES or name in _SDP_QUESTIONS:
            return
        severity, message = next(
            (meaning for prefix, meaning in _SETTINGS.items() if name.startswith(f"{_CUDA}.{prefix}")),
            (Severity.INFO, "this is accepted on an NPU and reaches CUDA's libraries only"),
        )
        fact = torch_name(name)
        yield context.finding(self, node, message, severity=severity, basis=fact.basis if fact else None, name=name)


_SETTINGS = {
    "is_built": (Severity.WARNING, "this is False with torch_npu: ask torch.npu.is_available()"),
    "cufft_plan_cache": (
        Severity.ERROR,
        "CUDA's plan cache raises without CUDA: torch.npu.backends.fft_plan_cache is the NPU's, one for all devices",
    ),
    "preferred_": (Severity.WARNING, "this chooses among CUDA's libraries; one that torch was built without raises"),
}

RULES: tuple[type[Rule], ...] = (Float64OnNpu, CudnnFlag, Tf32Flag, CudaSdpBackend, CudaBackendSetting)
