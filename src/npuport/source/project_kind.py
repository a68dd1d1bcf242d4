"""Whether a tree is a library, which others install and run on their own devices, or a repository of scripts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from npuport.source.files import SourceFile
from npuport.source.settings import settings_in

# Folders beside a package that hold no program of the project's own users.
_ASIDE = frozenset({"test", "tests", "doc", "docs", "example", "examples", "tutorial", "tutorials"})
_ASIDE |= {"benchmark", "benchmarks", "notebooks", "ci", ".github", ".circleci"}
_TRAINS_BY_NAME = re.compile(r"(?:^|_)(?:pre)?(?:train|training|fine_?tune)(?:_|$)")
_TRAINS = re.compile(r"\.backward\(|\bTrainer\(|\.fit\(")
_DECLARED = {("project", "name"), ("tool", "poetry", "name"), ("metadata", "name")}


@dataclass(frozen=True, slots=True)
class ProjectKind:
    """What tells the kind: the package, the file that declares it, and a script that trains; "" for none."""

    package: str = ""
    declared_in: str = ""
    script: str = ""

    @property
    def is_library(self) -> bool:
        """Whether the tree declares a package and nothing that trains stands beside it."""
        return bool(self.package) and not self.script


def project_kind(files: Iterable[SourceFile]) -> ProjectKind:
    """The kind of the tree of ``files``, by what its own files declare and hold."""
    by_path = {file.path: file for file in files}
    script = next(_training_scripts(by_path), "")
    if not any(_is_package(path) for path in by_path):
        return ProjectKind(script=script)
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        name = _declared_name(by_path[path]) if path in by_path else ""
        if name:
            return ProjectKind(name, path, script)
    return ProjectKind(script=script)


def _is_package(path: str) -> bool:
    """Whether a file is the ``__init__.py`` of a package at the top, in ``src``, or of a namespace there."""
    parts = PurePosixPath(path).parts
    parts = parts[1:] if parts[:1] == ("src",) else parts
    return parts[-1:] == ("__init__.py",) and len(parts) in (2, 3) and parts[0] not in _ASIDE


def _declared_name(file: SourceFile) -> str:
    """The name of the distribution that a file declares; "" if it declares none."""
    if file.path != "setup.py":
        return next((one.value for one in settings_in(file) if one.keys in _DECLARED), "")
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "setup":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            name = given.get("name")
            if name is not None and {"packages", "py_modules", "package_dir"} & given.keys():
                # Of `"mmcv" if … else "mmcv-lite"`, the first.
                texts = (part.value for part in ast.walk(name) if isinstance(part, ast.Constant))
                return next((text for text in texts if isinstance(text, str)), ast.unparse(name))
    return ""


def _training_scripts(by_path: dict[str, SourceFile]) -> Iterator[str]:
    """Scripts outside packages that train, in order."""
    packages = {PurePosixPath(path).parent for path in by_path if path.endswith("/__init__.py")}
    for path, file in sorted(by_path.items()):
        pure = PurePosixPath(path)
        if pure.suffix != ".py" or pure.stem in ("setup", "conftest") or packages & set(pure.parents):
            continue
        if _ASIDE & set(pure.parts) or pure.stem.startswith("test_"):
            continue
        if _TRAINS_BY_NAME.search(pure.stem) or _TRAINS.search(file.text):
            yield path
