"""C++ and CUDA sources: what they define, what of it Python can call, and which Python code does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from npuport.findings import Finding, Severity
from npuport.rules.files.base import FileRule, OtherFile
from npuport.rules.mentions import has_words
from npuport.source.files import FileKind

_KERNEL = re.compile(
    r"__global__\s+(?:[\w:<>*&\s]|__launch_bounds__\s*\([^)]*\))*?\b(?P<name>(?!__launch_bounds__\b)\w+)\s*\("
)
_LAUNCH = re.compile(r"<<<")
_PYBIND = re.compile(r"\bm\s*\.\s*def\s*\(\s*\"(?P<name>\w+)\"")
_LIBRARY = re.compile(r"\bTORCH_LIBRARY(?:_FRAGMENT)?\s*\(\s*(?P<namespace>\w+)\s*,")
_SCHEMA = re.compile(r"\bm\s*\.\s*def\s*\(\s*(?:TORCH_SELECTIVE_SCHEMA\s*\(\s*)?\"(?:\w+::)?(?P<name>\w+)\s*\(")
_IMPLEMENTED = re.compile(r"\bTORCH_LIBRARY_IMPL\s*\(\s*(?P<namespace>\w+)\s*,\s*(?P<key>\w+)")
_NAMED = 6  # names listed in a message; the evidence has all
_CALLS = 8


@dataclass(frozen=True, slots=True)
class Contents:
    """What one source file defines."""

    kernels: tuple[str, ...]  # __global__ functions
    bound: tuple[str, ...]  # names that Python can call: pybind11 functions and operators of torch.ops
    keys: tuple[str, ...]  # dispatch keys it implements operators for
    launches: int


def contents_of(text: str) -> Contents:
    """What a C++ or CUDA source defines, by its text alone."""
    bound = [match["name"] for match in _PYBIND.finditer(text)]
    if _LIBRARY.search(text):
        bound += [match["name"] for match in _SCHEMA.finditer(text)]
    return Contents(
        kernels=tuple(dict.fromkeys(match["name"] for match in _KERNEL.finditer(text))),
        bound=tuple(dict.fromkeys(bound)),
        keys=tuple(dict.fromkeys(match["key"] for match in _IMPLEMENTED.finditer(text))),
        launches=len(_LAUNCH.findall(text)),
    )


class CudaSource(FileRule):
    """A C++ or CUDA source that an NPU cannot run as it is."""

    code = "NP721"
    name = "cuda-source"
    severity = Severity.ERROR
    kinds = frozenset({FileKind.CUDA, FileKind.CPP})

    def check(self, file: OtherFile) -> Iterator[Finding]:
        if file.source.kind is FileKind.CPP and not has_words(file.text):
            return
        contents = contents_of(file.text)
        calls = tuple(_calls(contents.bound, file))
        needed = bool(contents.kernels or contents.launches or contents.bound)
        yield file.finding(
            self,
            0,
            len(file.text.rstrip()),
            _message(contents, calls, file),
            severity=Severity.ERROR if needed else Severity.INFO,
            kernels=list(contents.kernels) or None,
            bound=list(contents.bound) or None,
            keys=list(contents.keys) or None,
            calls=list(calls) or None,
        )


def _message(contents: Contents, calls: tuple[str, ...], file: OtherFile) -> str:
    parts = []
    if contents.kernels:
        parts.append(f"{_counted(len(contents.kernels), 'CUDA kernel')} ({_listed(contents.kernels)})")
    elif contents.launches:
        parts.append(_counted(contents.launches, "launch") + " of CUDA kernels")
    if contents.bound:
        parts.append(f"{_counted(len(contents.bound), 'function')} for Python ({_listed(contents.bound)})")
    if not parts:
        kind = "CUDA source" if file.source.kind is FileKind.CUDA else "C++ source that speaks of CUDA"
        return f"{kind}: compiled for NVIDIA GPUs only"
    called = f"; called from {_listed(calls)}" if calls else ""
    return (
        f"{' and '.join(parts)}{called}: write the operator with torch's or torch_npu's own, or as an Ascend C operator"
    )


def _counted(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def _listed(names: tuple[str, ...]) -> str:
    more = f", …{len(names) - _NAMED}" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _calls(names: tuple[str, ...], file: OtherFile) -> Iterator[str]:
    """Places of the project's Python code that call one of the names as an attribute, such as ``_ext.nms(…)``."""
    if not names or file.project is None:
        return
    call = re.compile(rf"\.(?:{'|'.join(map(re.escape, names))})\s*\(")
    found = 0
    for path, text in file.project.texts.items():
        if found >= _CALLS:
            return
        if not any(name in text for name in names):
            continue
        for match in call.finditer(text):
            found += 1
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
            if found >= _CALLS:
                return
