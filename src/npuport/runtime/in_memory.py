"""Converts a module of the user's own in memory. Imported with the first of them: loading the rules takes 0.1 s."""

from __future__ import annotations

import ast
import os
import types
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from npuport.conversion.convert import BrokenFixError, convert_text
from npuport.findings import Finding
from npuport.rules.engine import check_file
from npuport.runtime import leftovers, target
from npuport.runtime.converted import Converted
from npuport.runtime.sites import sites
from npuport.source.files import FileKind, SourceFile, UndecodableError, decode
from npuport.source.module import Module
from npuport.source.project import Project
from npuport.source.text import LineIndex

_ROUNDS = 10  # as many as the conversion of files: a round repairs what overlapping fixes put off


def convert(file: Path, base: Path, data: bytes, texts: Mapping[str, str]) -> Converted:
    """Convert and compile ``data``, the source of ``file``, with the file's own name and line numbers.

    ``texts`` are the Python files below ``base``, the directory that Python imports the file's project from.

    Raises:
        SyntaxError, ValueError: as Python's own import would.
    """
    path = file.relative_to(base).as_posix() if file.is_relative_to(base) else file.name
    try:
        source = decode(path, data, FileKind.PYTHON)
    except UndecodableError:
        return Converted(_compiled(data, file), None)  # Python's own message is the better one
    project = Project(texts=texts)
    try:
        text, left, rules = _converted(source, project)
    except BrokenFixError as error:
        return Converted(_compiled(data, file), None, problem=str(error))
    tree, helpers = leftovers.meet(Module(path, text), project, target.settings())
    return Converted(_compiled(tree, file), text, tuple(sites(source.text, text, rules, left, helpers)))


def _converted(source: SourceFile, project: Project) -> tuple[str, Sequence[Finding], Mapping[int, Sequence[str]]]:
    """The text, the findings that conversion left, and the rules that changed each line."""
    rules: dict[int, list[str]] = defaultdict(list)
    for _ in range(_ROUNDS):
        findings = check_file(source, project, target.settings())
        converted = convert_text(source, findings, unsafe=False)
        if not converted.edits:
            break
        lines = LineIndex(source.text)
        for finding in converted.applied:
            for edit in finding.fix.edits if finding.fix else ():
                line = lines.position(edit.start)[0]
                if finding.code not in rules[line]:
                    rules[line].append(finding.code)
        source = replace(source, text=converted.text)
    return source.text, findings, rules


def _compiled(source: ast.Module | bytes, file: Path) -> types.CodeType:
    code: types.CodeType = compile(source, os.fspath(file), "exec", dont_inherit=True)
    return code
