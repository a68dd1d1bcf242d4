"""Converts a module of the user's own in memory. Imported with the first of them: loading the rules takes 0.1 s."""

from __future__ import annotations

import ast
import os
import sys
import types
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from npuport.conversion.convert import BrokenFixError, convert_text
from npuport.rules.engine import check_file
from npuport.runtime import leftovers, sites, target
from npuport.source.files import FileKind, UndecodableError, decode
from npuport.source.module import Module
from npuport.source.on_disk import TextsOnDisk
from npuport.source.project import Project

_ROUNDS = 10  # as many as the conversion of files: a round repairs what overlapping fixes put off


def converted_code(file: Path, base: Path) -> types.CodeType:
    """See ``importer.converted_code``."""
    data = file.read_bytes()
    tree = _converted_tree(file, base, data)
    return compile(tree if tree is not None else data, os.fspath(file), "exec", dont_inherit=True)


def _converted_tree(file: Path, base: Path, data: bytes) -> ast.Module | None:
    path = file.relative_to(base).as_posix() if file.is_relative_to(base) else file.name
    try:
        source = decode(path, data, FileKind.PYTHON)
    except UndecodableError:
        return None  # Python's own message is the better one
    project, settings, before = _project(base), target.settings(), source.text
    for _ in range(_ROUNDS):
        findings = check_file(source, project, settings)
        try:
            converted = convert_text(source, findings, unsafe=False)
        except BrokenFixError as error:
            _say(f"{file} is left as it is: {error}")
            return None
        if not converted.edits:
            found = list(sites.sites(file, before, source.text, findings))
            sites.note(found)
            _say_what_fails(found)
            break
        source = replace(source, text=converted.text)
    _texts[os.fspath(file)] = source.text
    return leftovers.meet(Module(path, source.text), project, settings)


_texts: dict[str, str] = {}


def converted_text(file: str) -> str | None:
    """What a module of the user's own was converted to; None for a file that was not."""
    return _texts.get(file)


def _say_what_fails(found: Sequence[sites.Site]) -> None:
    """Nothing silent: what will fail is said when the module loads, not when it fails."""
    for site in found:
        if site.effect == "refused":
            _say(f"{site.file}:{site.line} {site.code} {site.after}")


def _say(message: str) -> None:
    print(f"npuport: {message}", file=sys.stderr)


@cache
def _project(base: Path) -> Project:
    return Project(texts=TextsOnDisk(base))
