"""Files other than Python: requirements, scripts, configurations, images. Each line that matters is named.

A CUDA word that is a known variable, value or tool says what Ascend has instead; a requirement says what becomes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.facts import distribution
from npuport.findings import Basis, Finding, Location, Severity
from npuport.rules.environment import TOOLS, cuda_variable, meaning
from npuport.rules.libraries import CudaOnlyLibrary, LibraryNeedsAdaptation, advice, is_cuda_only
from npuport.rules.mentions import find_words, whole_word
from npuport.source.files import FileKind, SourceFile
from npuport.source.text import LineIndex

_REQUIREMENT = re.compile(r"(?m)^[ \t]*(?P<name>[A-Za-z0-9][\w.-]*)[ \t]*(?=\[|[<>=!~;@#]|\r?$)")
_LISTED = re.compile(r"(?m)[\"'](?P<name>[A-Za-z0-9][\w.-]*)[ \t]*(?:\[[^\]\n]*\])?[ \t]*(?:[<>=!~;@][^\"'\n]*)?[\"']")
_INSTALLED = re.compile(r"\b(?:pip3?|uv|conda|mamba)\s+(?:pip\s+)?(?:install|add)\s(?P<packages>[^\n;&|]*)")
_PACKAGE = re.compile(r"(?<![\w./=-])(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?(?=[<>=!~\s\"']|$)")
_ARRAY = re.compile(r"(?ms)^[ \t]*\"?(?P<key>[\w.-]+)\"?[ \t]*=[ \t]*\[(?P<items>.*?)\][ \t]*(?:#[^\n]*)?$")
_NO_REQUIREMENTS = {"keywords", "classifiers", "authors", "packages", "include", "exclude", "select", "ignore"}
# What stands before and after a value of a setting, or of an option such as --device cuda.
_BEFORE_VALUE = re.compile(r"(?:[:=][ \t]*|--[\w-]*(?:device|backend)[ \t])[\"']?$")
_AFTER_VALUE = re.compile(r"(?::\d+)?[\"']?[ \t]*(?:[,}#\\&|;]|\r?$|[ \t]--)")
_NPU_VALUES = {"cuda": "npu", "nccl": "hccl"}
_ENCODED = 200  # characters; longer words are pictures and the like in base64
_UNCHANGED = "npuport does not change files of this kind yet"


def findings_in_other_file(source: SourceFile) -> Iterator[Finding]:
    """Findings for known requirements, and one for each further line that holds a CUDA word."""
    index = LineIndex(source.text)
    explained: set[int] = set()
    for name, start in _requirements(source):
        known = distribution(name)
        if known is None or known.status in ("native", "neutral"):
            continue
        rule = CudaOnlyLibrary if is_cuda_only(known) else LibraryNeedsAdaptation
        location = _location(source, index, start, len(name))
        explained.add(location.line)
        evidence = {"library": known.name, "instead": known.replacement}
        yield Finding(rule.code, rule.name, rule.severity, location, advice(known), evidence, known.basis)
    for start, end in find_words(source.text):
        line = index.position(start)[0]
        word = whole_word(source.text, start, end)
        if line not in explained and len(word) < _ENCODED:
            explained.add(line)
            yield _mention(source, index, word, start)


def _requirements(source: SourceFile) -> Iterator[tuple[str, int]]:
    """Names of distributions that a file asks for, and where."""
    if source.kind is FileKind.REQUIREMENTS:
        yield from ((match["name"], match.start("name")) for match in _REQUIREMENT.finditer(source.text))
    elif source.kind is FileKind.TOML:
        for array in _ARRAY.finditer(source.text):
            if array["key"] not in _NO_REQUIREMENTS:
                for match in _LISTED.finditer(source.text, *array.span("items")):
                    yield match["name"], match.start("name")
    elif source.kind in (FileKind.SHELL, FileKind.DOCKERFILE, FileKind.YAML, FileKind.MAKEFILE):
        for command in _INSTALLED.finditer(source.text):
            for match in _PACKAGE.finditer(source.text, *command.span("packages")):
                yield match["name"], match.start("name")


def _location(source: SourceFile, index: LineIndex, start: int, length: int) -> Location:
    line, column = index.position(start)
    return Location(source.path, line, column, line, column + length)


def _mention(source: SourceFile, index: LineIndex, word: str, start: int) -> Finding:
    message, basis = _meaning(source, index, word, start)
    return Finding(
        code="NP903",
        name="cuda-outside-python",
        severity=Severity.INFO if source.kind is FileKind.TEXT else Severity.WARNING,
        location=_location(source, index, start, len(word)),
        message=message,
        evidence={"word": word, "kind": source.kind.value},
        basis=basis,
    )


def _meaning(source: SourceFile, index: LineIndex, word: str, start: int) -> tuple[str, Basis | None]:
    line = index.position(start)[0]
    stop = index.starts[line] if line < len(index.starts) else len(source.text)
    text = source.text[index.starts[line - 1] : stop].rstrip()
    known = cuda_variable(word)
    if known is not None:
        note = f" ({known.note.rstrip('.')})" if known.note else ""
        return f"{meaning(known)}{note}; {_UNCHANGED}", known.basis
    tool = next((tool for tool in TOOLS if re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", text)), None)
    if tool is not None:
        return f"{tool} is not there on an Ascend machine: {TOOLS[tool]}; {_UNCHANGED}", None
    before = source.text[index.starts[line - 1] : start]
    after = source.text[start + len(word) : stop].rstrip("\r\n")
    if word in _NPU_VALUES and _BEFORE_VALUE.search(before) and _AFTER_VALUE.match(after):
        return f"if this is a device or a backend, write {_NPU_VALUES[word]}; {_UNCHANGED}", None
    return f"{word}: {_UNCHANGED}; read this line", None
