"""All Python modules of a tree, parsed when first asked for, and the import system that joins them."""

from __future__ import annotations

import ast
import posixpath
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property

from npuport.source.files import FileKind, SourceFile
from npuport.source.module import Module
from npuport.source.outline import EMPTY, Outline, may_bind, outline
from npuport.source.resolver import Resolver

_KEPT = 8  # parsed modules held at a time, so that the memory for a large tree stays bounded


class Project:
    """The Python files of one tree, given as files or as texts by path. Nothing is parsed before it is needed.

    ``before`` are the texts as they were before a conversion that is under way; by default those are the same.
    ``earlier`` is a project with some of the same texts, from which it takes what is known of them.
    """

    def __init__(
        self,
        files: Iterable[SourceFile] = (),
        texts: Mapping[str, str] | None = None,
        before: Iterable[SourceFile] | None = None,
        earlier: Project | None = None,
    ) -> None:
        self.texts: Mapping[str, str] = _python_texts(files) if texts is None else texts
        self.before: Mapping[str, str] = self.texts if before is None else _python_texts(before)
        self._start()
        if earlier is not None:
            known = ((path, earlier.texts.get(path), kept) for path, kept in earlier._outlines.items())
            self._outlines.update((path, kept) for path, text, kept in known if text is self.texts.get(path))

    def _start(self) -> None:
        self._modules: OrderedDict[str, Module | None] = OrderedDict()
        self._outlines: dict[str, Outline | None] = {}
        self._stars: dict[str, bool] = {}
        self._in_work = ""
        self._located: dict[tuple[str, str], tuple[str, str] | None] = {}

    def __getstate__(self) -> dict[str, object]:
        return {"texts": self.texts, "before": self.before}

    def __setstate__(self, state: dict[str, Mapping[str, str]]) -> None:
        self.texts, self.before = state["texts"], state["before"]
        self._start()

    @cached_property
    def resolver(self) -> Resolver:
        return Resolver(self)

    def module(self, path: str) -> Module | None:
        """The module at ``path``; None when there is none or it does not parse."""
        if path in self._modules:
            self._modules.move_to_end(path)
        else:
            try:
                self._modules[path] = module = Module(path, self.texts[path])
                if path not in self._outlines:
                    self._outlines[path] = outline(module.scope)
            except (KeyError, SyntaxError, ValueError, RecursionError, MemoryError):
                self._modules[path] = self._outlines[path] = None
            if len(self._modules) > _KEPT:
                oldest = next(kept for kept in self._modules if kept not in (path, self._in_work))
                released = self._modules.pop(oldest)
                if released is not None:
                    released.release()
        return self._modules[path]

    def outline(self, path: str, name: str) -> Outline | None:
        """What the module at ``path`` offers, or so much of it as concerns ``name``; None when it does not parse."""
        if path not in self._outlines:
            text = self.texts.get(path)
            if text is not None and not self._takes_all(path, text) and not may_bind(text, name):
                return EMPTY
            self.module(path)
        return self._outlines[path]

    def _takes_all(self, path: str, text: str) -> bool:
        if path not in self._stars:  # asked once for each name that is sought through a package
            self._stars[path] = "import *" in text
        return self._stars[path]

    def take_up(self, path: str) -> Module | None:
        """The module at ``path``, which stays linked until another one is taken up."""
        self._in_work = path
        return self.module(path)

    def locate(self, target: str, importer: str) -> tuple[str, str] | None:
        """The path in this project that the dotted ``target`` reaches, and the part of ``target`` left over.

        Python looks beside the script first and then along sys.path, which usually holds the root or ``src``; so the
        importer's folder, each folder above it and ``src`` are tried in this order.
        """
        folder = posixpath.dirname(importer)
        key = (target, folder)
        if key not in self._located:
            self._located[key] = self._locate(target, folder)
        found = self._located[key]
        return None if found is not None and found[0] == importer and not target.startswith(".") else found

    def _locate(self, target: str, folder: str) -> tuple[str, str] | None:
        parts = [part for part in target.lstrip(".").split(".") if part]
        dots = len(target) - len(target.lstrip("."))
        if dots:
            for _ in range(dots - 1):
                folder = posixpath.dirname(folder)
            return self._below(folder, parts, shortest=0)
        for base in _search_path(folder):
            found = self._below(base, parts, shortest=1)
            if found is not None:
                return found
        return None

    def _below(self, folder: str, parts: list[str], shortest: int) -> tuple[str, str] | None:
        for length in range(len(parts), shortest - 1, -1):
            stem = posixpath.join(folder, *parts[:length])
            for path in ([f"{stem}.py"] if length else []) + [posixpath.join(stem, "__init__.py")]:
                if path in self.texts:
                    return path, ".".join(parts[length:])
        return None

    def submodule(self, package: str, name: str) -> str | None:
        """The path of the module ``name`` inside the package whose ``__init__.py`` is ``package``."""
        folder, _, file = package.rpartition("/")
        if file != "__init__.py":
            return None
        located = self._below(folder, [name], shortest=1)
        return located[0] if located is not None and not located[1] else None

    @cached_property
    def imports_torch(self) -> bool:
        """Whether any file of the project imports torch."""
        return any("import torch" in text or "from torch" in text for text in self.texts.values())

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


def _python_texts(files: Iterable[SourceFile]) -> dict[str, str]:
    return {file.path: file.text for file in files if file.kind is FileKind.PYTHON}


def _search_path(folder: str) -> list[str]:
    folders = [folder]
    while folder:
        folder = posixpath.dirname(folder)
        folders.append(folder)
    return [*folders, "src"]
