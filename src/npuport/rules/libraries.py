"""Libraries and extensions: what was built for CUDA, and what Ascend has in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from npuport.facts import Library, all_libraries, library, torch_name
from npuport.findings import Finding, Severity
from npuport.rules.base import Context, Rule
from npuport.source.module import ancestors, parent

_CPP_EXTENSION = "torch.utils.cpp_extension"
_IMPORT_FUNCTIONS = {"importlib.import_module", "builtins.__import__"}
_TREATED_ELSEWHERE = {"apex"}  # by rules of their own, which know their parts
_IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def is_cuda_only(known: Library) -> bool:
    """Whether the library itself has no way to run on an NPU."""
    return known.status in ("cuda-only", "replace")


def advice(known: Library) -> str:
    """One sentence on a library that is not at home on Ascend."""
    if known.status == "cuda-only":
        what = f"{known.name} is not known to run on an NPU"
    elif known.status == "replace":
        what = f"{known.name} does not run on an NPU: use {known.replacement} instead"
    elif known.replacement in (None, known.name, *known.distributions):
        what = f"{known.name} runs on an NPU when it is built for Ascend"
    else:
        what = f"{known.name} runs on an NPU with {known.replacement}"
    return f"{what} ({known.note.rstrip('.')})" if known.note else what


def _markers(cuda_only: bool) -> tuple[tuple[str, str], ...]:
    """Only lines that import something are of interest."""
    names = {
        name.rpartition(".")[2]
        for known in all_libraries()
        if known.status in ("cuda-only", "replace", "adapted") and is_cuda_only(known) == cuda_only
        for name in known.imports
    }
    words = ((name, rf"\b{re.escape(name)}\b") for name in sorted(names))
    return tuple((name, f"import.*{word}|{word}.*import") for name, word in words)


class _LibraryImport(Rule):
    """Imports of libraries of one class."""

    nodes = (ast.Import, ast.ImportFrom, ast.Call)
    follows_names = False
    cuda_only: bool

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        seen: set[str] = set()
        for name, place in _imported(node, context):
            known = library(name)
            if known is None or known.status in ("native", "neutral") or known.name in {*seen, *_TREATED_ELSEWHERE}:
                continue
            if is_cuda_only(known) != self.cuda_only or context.project.locate(name, context.module.path) is not None:
                continue
            seen.add(known.name)
            yield context.finding(
                self,
                place,
                advice(known),
                severity=self._severity(node, context),
                basis=known.basis,
                library=known.name,
                instead=known.replacement,
            )

    def _severity(self, node: ast.AST, context: Context) -> Severity:
        if not is_guarded(node, context):
            return self.severity
        return Severity.WARNING if self.severity is Severity.ERROR else Severity.INFO


def _imported(node: ast.AST, context: Context) -> Iterator[tuple[str, ast.AST]]:
    """The dotted names that an import statement, or ``importlib.import_module("…")``, brings in."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, alias) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if not node.level and node.module:
            yield from ((f"{node.module}.{alias.name}", node) for alias in node.names)
    elif isinstance(node, ast.Call) and node.args and context.name_of(node.func) in _IMPORT_FUNCTIONS:
        names = context.constants_of(node.args[0])
        if names is not None and len(names) == 1 and isinstance(name := next(iter(names)), str):
            yield name, node


def is_guarded(node: ast.AST, context: Context) -> bool:
    """Whether the program goes on without the import: ``try … except ImportError``, or a condition around it."""
    inner: ast.AST = node
    for around in ancestors(node):
        if isinstance(around, ast.Try) and inner in around.body and any(map(_catches_import, around.handlers)):
            return True
        if isinstance(around, ast.If):
            return not _is_main(around)
        if isinstance(around, ast.With) and any(_suppresses(item.context_expr, context) for item in around.items):
            return True
        inner = around
    return False


def _catches_import(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or (isinstance(one, ast.Name) and one.id in _IMPORT_ERRORS) for one in kinds)


def _suppresses(call: ast.expr, context: Context) -> bool:
    return isinstance(call, ast.Call) and context.name_of(call.func) == "contextlib.suppress"


def _is_main(node: ast.If) -> bool:
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))


class CudaOnlyLibrary(_LibraryImport):
    """A library that was written for CUDA and does not run on an NPU."""

    code = "NP701"
    name = "cuda-only-library"
    severity = Severity.ERROR
    markers = _markers(cuda_only=True)
    cuda_only = True


class LibraryNeedsAdaptation(_LibraryImport):
    """A library that runs on an NPU with another package, build or plug-in."""

    code = "NP702"
    name = "library-needs-adaptation"
    severity = Severity.WARNING
    markers = _markers(cuda_only=False)
    cuda_only = False


class CudaExtension(Rule):
    """Building a CUDA extension."""

    code = "NP703"
    name = "cuda-extension"
    severity = Severity.ERROR
    markers = (r"\bCUDAExtension\b", r"\bCUDA_HOME\b", r"\bcpp_extension\b", r"\bload_inline\b", r"\bcuda_sources\b")
    nodes = (ast.Call, ast.Attribute, ast.Name, ast.ImportFrom)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.ImportFrom):
            if node.module == _CPP_EXTENSION and not node.level:
                for alias in node.names:
                    if "CUDA" in alias.name:
                        message = "this imports anywhere; its uses are what matters on an NPU"
                        yield context.finding(self, alias, message, severity=Severity.INFO)
            return
        if isinstance(node, ast.Call):
            name = context.name_of(node.func)
            if name == f"{_CPP_EXTENSION}.CUDAExtension" or (
                name in {f"{_CPP_EXTENSION}.load", f"{_CPP_EXTENSION}.load_inline"} and _has_cuda_sources(node, context)
            ):
                yield self._finding(
                    node.func,
                    name,
                    "CUDA sources cannot be compiled for an NPU: write the kernels anew (Ascend C, or Triton through "
                    "triton-ascend); torch_npu.utils.cpp_extension.NpuExtension builds the C++ around them",
                    context,
                )
            return
        assert isinstance(node, ast.Attribute | ast.Name)
        if context.name_of(node) == f"{_CPP_EXTENSION}.CUDA_HOME" and isinstance(node.ctx, ast.Load):
            yield self._finding(
                node,
                f"{_CPP_EXTENSION}.CUDA_HOME",
                "CUDA_HOME is None without a CUDA toolkit; CANN's root is in the variable ASCEND_HOME_PATH",
                context,
                Severity.WARNING,
            )

    def _finding(
        self, at: ast.expr, name: str, message: str, context: Context, severity: Severity = Severity.ERROR
    ) -> Finding:
        fact = torch_name(name)
        guarded = any(isinstance(around, ast.If | ast.IfExp | ast.Try) for around in ancestors(at))
        milder = Severity.WARNING if guarded else severity
        return context.finding(self, at, message, severity=milder, basis=fact.basis if fact else None)


def _has_cuda_sources(node: ast.Call, context: Context) -> bool:
    for keyword in node.keywords:
        if keyword.arg in {"cuda_sources", "extra_cuda_cflags"}:
            return not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        if keyword.arg == "with_cuda":
            return isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    texts = (part for argument in [*node.args, *(k.value for k in node.keywords)] for part in ast.walk(argument))
    values = (context.constants_of(part) if isinstance(part, ast.Constant | ast.BinOp) else None for part in texts)
    return any(isinstance(value, str) and value.endswith(".cu") for found in values if found for value in found)


class GpuKernelInPython(Rule):
    """A kernel written in Python for a GPU: Triton, Numba or CuPy."""

    code = "NP704"
    name = "gpu-kernel-in-python"
    severity = Severity.WARNING
    markers = (r"\btriton\b", r"\bnumba\b", r"\bRawKernel\b")
    nodes = (ast.FunctionDef, ast.Attribute)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                function = decorator.func if isinstance(decorator, ast.Call) else decorator
                name = context.name_of(function) or ""
                if name == "triton.jit" and (known := library("triton")):
                    message = "this Triton kernel needs triton-ascend, and often smaller blocks than on a GPU"
                    yield context.finding(self, decorator, message, basis=known.basis)
                elif name.startswith("numba.cuda.") and (known := library("numba.cuda")):
                    message = "Numba compiles this kernel for CUDA only: write it anew for the NPU, or with torch"
                    yield context.finding(self, decorator, message, severity=Severity.ERROR, basis=known.basis)
            return
        assert isinstance(node, ast.Attribute)
        name = context.name_of(node) or ""
        if name in {"cupy.RawKernel", "cupy.RawModule"} and (known := library("cupy")):
            message = "this kernel is CUDA C++: write it anew for the NPU, or with torch"
            yield context.finding(self, node, message, severity=Severity.ERROR, basis=known.basis)
        elif name.startswith("numba.cuda.") and not isinstance(parent(node), ast.Attribute | ast.FunctionDef):
            around = parent(node)
            if not (isinstance(around, ast.Call) and isinstance(parent(around), ast.FunctionDef)):
                message = "this is part of numba.cuda, which has no counterpart on an NPU"
                yield context.finding(self, node, message, severity=Severity.INFO)


RULES: tuple[type[Rule], ...] = (CudaOnlyLibrary, LibraryNeedsAdaptation, CudaExtension, GpuKernelInPython)
