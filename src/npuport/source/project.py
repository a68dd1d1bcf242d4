"""All Python modules of a tree, parsed when first asked for, and the import system that joins them."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Mapping
from functools import cached_property

from npuport.source.files import FileKind, SourceFile
from npuport.source.module import Module
from npuport.source.resolver import Resolver
from npuport.source.scopes import Scope


class Project:
    """The Python files of one tree, given as files or as texts by path. Nothing is parsed before it is needed."""

    def __init__(self, files: Iterable[SourceFile] = (), texts: Mapping[str, str] | None = None) -> None:
        own = {file.path: file.text for file in files if file.kind is FileKind.PYTHON}
        self.texts: Mapping[str, str] = own if texts is None else texts
        self._modules: dict[str, Module | None] = {}
        self._arguments: dict[str, list[tuple[ast.Call, Scope]]] = {}

    def __getstate__(self) -> dict[str, object]:
        return {"texts": self.texts}

    def __setstate__(self, state: dict[str, Mapping[str, str]]) -> None:
        self.texts = state["texts"]
        self._modules = {}
        self._arguments = {}

    @cached_property
    def resolver(self) -> Resolver:
        return Resolver(self)

    def module(self, path: str) -> Module | None:
        """The module at ``path``; None when there is none or it does not parse."""
        if path not in self._modules:
            try:
                self._modules[path] = Module(path, self.texts[path])
            except (KeyError, SyntaxError, ValueError, RecursionError):
                self._modules[path] = None
        return self._modules[path]

    def forget(self, path: str) -> None:
        """Drop a parsed module, so that the memory of a large tree stays bounded."""
        self._modules.pop(path, None)
        self._arguments.pop(path, None)

    def locate(self, target: str, importer: str) -> tuple[Module, str] | None:
        """The module of this project that the dotted ``target`` reaches, and the part of ``target`` left over.

        Python looks beside the script first and then along sys.path, which usually holds the root or ``src``; so the
        importer's folder, each folder above it and ``src`` are tried in this order.
        """
        parts = [part for part in target.lstrip(".").split(".") if part]
        dots = len(target) - len(target.lstrip("."))
        folder = posixpath.dirname(importer)
        if dots:
            for _ in range(dots - 1):
                folder = posixpath.dirname(folder)
            return self._below(folder, parts, shortest=0)
        for base in _search_path(folder):
            found = self._below(base, parts, shortest=1)
            if found is not None and found[0].path != importer:
                return found
        return None

    def _below(self, folder: str, parts: list[str], shortest: int) -> tuple[Module, str] | None:
        for length in range(len(parts), shortest - 1, -1):
            stem = posixpath.join(folder, *parts[:length])
            for path in ([f"{stem}.py"] if length else []) + [posixpath.join(stem, "__init__.py")]:
                module = self.module(path) if path in self.texts else None
                if module is not None:
                    return module, ".".join(parts[length:])
        return None

    def submodule(self, package: Module, name: str) -> Module | None:
        """The module ``name`` inside the package whose ``__init__.py`` is ``package``."""
        folder, _, file = package.path.rpartition("/")
        if file != "__init__.py":
            return None
        located = self._below(folder, [name], shortest=1)
        return located[0] if located is not None and not located[1] else None

    def add_argument_calls(self, module: Module) -> list[tuple[ast.Call, Scope]]:
        """Every ``….add_argument(…)`` of a module, with the scope to evaluate its arguments in."""
        if module.path not in self._arguments:
            calls = []
            if "add_argument" in module.text:
                calls = [
                    (node, module.scope)
                    for node in ast.walk(module.tree)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "add_argument"
                ]
            self._arguments[module.path] = calls
        return self._arguments[module.path]

    @cached_property
    def classes_with_own_cuda(self) -> frozenset[str]:
        """Names of the project's classes that define a method called ``cuda``."""
        names = set()
        for path, text in self.texts.items():
            module = self.module(path) if "def cuda(" in text else None
            for node in ast.walk(module.tree) if module is not None else ():
                if isinstance(node, ast.ClassDef) and any(
                    isinstance(item, ast.FunctionDef) and item.name == "cuda" for item in node.body
                ):
                    names.add(node.name)
        return frozenset(names)


def _search_path(folder: str) -> list[str]:
    folders = [folder]
    while folder:
        folder = posixpath.dirname(folder)
        folders.append(folder)
    return [*folders, "src"]
