"""The libraries that requirements, project files and installation lines ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.facts import distribution
from npuport.findings import Finding, Location
from npuport.rules.files.base import OtherFile
from npuport.rules.libraries import CudaOnlyLibrary, LibraryNeedsAdaptation, advice, is_cuda_only
from npuport.source.files import FileKind, SourceFile

_REQUIREMENT = re.compile(r"(?m)^[ \t]*(?P<name>[A-Za-z0-9][\w.-]*)[ \t]*(?=\[|[<>=!~;@#]|\r?$)")
_LISTED = re.compile(r"(?m)[\"'](?P<name>[A-Za-z0-9][\w.-]*)[ \t]*(?:\[[^\]\n]*\])?[ \t]*(?:[<>=!~;@][^\"'\n]*)?[\"']")
_INSTALLED = re.compile(r"\b(?:pip3?|uv|conda|mamba)\s+(?:pip\s+)?(?:install|add)\s(?P<packages>[^\n;&|]*)")
_PACKAGE = re.compile(r"(?<![\w./=-])(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?(?=[<>=!~\s\"']|$)")
_ARRAY = re.compile(r"(?ms)^[ \t]*\"?(?P<key>[\w.-]+)\"?[ \t]*=[ \t]*\[(?P<items>.*?)\][ \t]*(?:#[^\n]*)?$")
_NO_REQUIREMENTS = {"keywords", "classifiers", "authors", "packages", "include", "exclude", "select", "ignore"}


def requirement_findings(file: OtherFile) -> Iterator[Finding]:
    """Findings for the requirements of a file that do not run on an NPU as they are."""
    for name, start in _requirements(file.source):
        known = distribution(name)
        if known is None or known.status in ("native", "neutral"):
            continue
        rule = CudaOnlyLibrary if is_cuda_only(known) else LibraryNeedsAdaptation
        line, column = file.index.position(start)
        location = Location(file.source.path, line, column, line, column + len(name))
        evidence = {"library": known.name, "instead": known.replacement}
        yield Finding(rule.code, rule.name, rule.severity, location, advice(known), evidence, known.basis)


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
