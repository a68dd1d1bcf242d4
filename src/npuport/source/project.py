"""All Python modules of a tree, parsed when first asked for, and the import system that joins them."""

from __future__ import annotations

import ast
import posixpath
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property

from npuport.source.files import FileKind, SourceFile
from npuport.source.module import Module
from npuport.source.outline import EMPTY, Outline, may_bind, outline
from npuport.source.questions import (
    BEFORE,
    EXPORT,
    HAS,
    HOLDING,
    INSIDE,
    OWN_CUDA,
    PLACE,
    TEXT,
    TORCH,
    Answers,
    Question,
)
from npuport.source.resolver import Resolver

_KEPT = 1_000_000
"""Characters of the modules held parsed at a time, so that the memory for a large tree stays bounded: some 50 MB."""


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
        self._texts: Mapping[str, str] = _python_texts(files) if texts is None else texts
        self._before: Mapping[str, str] = self._texts if before is None else _python_texts(before)
        self._start()
        if earlier is not None:
            known = ((path, earlier._texts.get(path), kept) for path, kept in earlier._outlines.items())
            self._outlines.update((path, kept) for path, text, kept in known if text is self._texts.get(path))

    def _start(self) -> None:
        self._modules: OrderedDict[str, Module | None] = OrderedDict()
        self._characters = 0  # of the texts of these
        self._sought: set[str] = set()  # modules that others asked for; the rest is looked at once
        self._outlines: dict[str, Outline | None] = {}
        self._stars: dict[str, bool] = {}
        self._in_work = ""
        self._located: dict[tuple[str, str], tuple[str, str] | None] = {}
        self._holding: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
        self._asked: set[Question] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"texts": self._texts, "before": self._before}

    def __setstate__(self, state: dict[str, Mapping[str, str]]) -> None:
        self._texts, self._before = state["texts"], state["before"]
        self._start()

    # -- what is asked ---------------------------------------------------------------------------------------------

    @contextmanager
    def noting(self) -> Iterator[set[Question]]:
        """Collect all questions that are asked inside about the files of this project.

        What was learnt from answers to others is forgotten first, for it would not be asked again.
        """
        for module in self._modules.values():
            if module is not None:
                module.release()
        self._modules.clear()
        self.resolver.forget()
        asked: set[Question] = set()
        self._asked = asked
        try:
            yield asked
        finally:
            self._asked = None

    def _note(self, *question: str) -> None:
        if self._asked is not None:
            self._asked.add(question)

    @cached_property
    def answers(self) -> Answers:
        """The answers to such questions, to be compared with those of other times."""
        return Answers(self)

    # -- texts -----------------------------------------------------------------------------------------------------

    @property
    def texts(self) -> Mapping[str, str]:
        """The text of every Python file, by path. ``holding``, ``has`` and ``module`` ask for less."""
        self._note(HOLDING)
        return self._texts

    def holding(self, *words: str) -> tuple[tuple[str, str], ...]:
        """Path and text of every Python file that holds all ``words``."""
        self._note(HOLDING, *words)
        if words not in self._holding:
            self._holding[words] = tuple(
                (path, text) for path, text in self._texts.items() if all(word in text for word in words)
            )
        return self._holding[words]

    def has(self, path: str) -> bool:
        """Whether there is such a Python file."""
        self._note(HAS, path)
        return path in self._texts

    def text_before(self, path: str) -> str | None:
        """The text of a Python file before the conversion that is under way."""
        self._note(BEFORE, path)
        return self._before.get(path)

    # -- modules ---------------------------------------------------------------------------------------------------

    @cached_property
    def resolver(self) -> Resolver:
        return Resolver(self)

    def module(self, path: str) -> Module | None:
        """The module at ``path``; None when there is none or it does not parse."""
        self._note(TEXT, path)
        return self._module(path)

    def _module(self, path: str) -> Module | None:
        if path != self._in_work:
            self._sought.add(path)
        if path in self._modules:
            self._modules.move_to_end(path)
        else:
            try:
                self._modules[path] = module = Module(path, self._texts[path])
                if path not in self._outlines:
                    self._outlines[path] = outline(module.scope)
            except (KeyError, SyntaxError, ValueError, RecursionError, MemoryError):
                self._modules[path] = self._outlines[path] = None
            else:
                self._make_room(path)
        return self._modules[path]

    def _make_room(self, path: str) -> None:
        """Let go of the modules that were used least lately, so that the one at ``path`` may be kept."""
        self._characters += len(self._texts[path])
        for oldest in list(self._modules):
            if self._characters <= _KEPT:
                return
            if oldest not in (path, self._in_work):
                self._let_go(oldest)

    def _let_go(self, path: str) -> None:
        released = self._modules.pop(path)
        if released is not None:
            self._characters -= len(released.text)
            released.release()

    def close(self) -> None:
        """Let go of all modules; those that are asked for again are parsed again."""
        for path in list(self._modules):
            self._let_go(path)

    def outline(self, path: str, name: str) -> Outline | None:
        """What the module at ``path`` offers, or so much of it as concerns ``name``; None when it does not parse."""
        self._note(EXPORT, path, name)
        if path not in self._outlines:
            text = self._texts.get(path)
            if text is not None and not self._takes_all(path, text) and not may_bind(text, name):
                return EMPTY
            self._module(path)
        return self._outlines[path]

    def _takes_all(self, path: str, text: str) -> bool:
        if path not in self._stars:  # asked once for each name that is sought through a package
            self._stars[path] = "import *" in text
        return self._stars[path]

    def take_up(self, path: str, text: str) -> Module | None:
        """The module at ``path``, which stays linked until another one is taken up; None if it has another text."""
        if self._texts.get(path) != text:
            return None
        done, self._in_work = self._in_work, path
        if done != path and done in self._modules and done not in self._sought:
            self._let_go(done)  # memory is freed faster while it is in the processor's cache
        return self._module(path)

    # -- imports ---------------------------------------------------------------------------------------------------

    def locate(self, target: str, importer: str) -> tuple[str, str] | None:
        """The path in this project that the dotted ``target`` reaches, and the part of ``target`` left over.

        Python looks beside the script first and then along sys.path, which usually holds the root or ``src``; so the
        importer's folder, each folder above it and ``src`` are tried in this order.
        """
        found = self.place(target, posixpath.dirname(importer))
        return None if found is not None and found[0] == importer and not target.startswith(".") else found

    def place(self, target: str, folder: str) -> tuple[str, str] | None:
        """The same for any importer in a folder."""
        self._note(PLACE, target, folder)
        key = (target, folder)
        if key not in self._located:
            self._located[key] = self._locate(target, folder)
        return self._located[key]

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
                if path in self._texts:
                    return path, ".".join(parts[length:])
        return None

    def submodule(self, package: str, name: str) -> str | None:
        """The path of the module ``name`` inside the package whose ``__init__.py`` is ``package``."""
        self._note(INSIDE, package, name)
        folder, _, file = package.rpartition("/")
        if file != "__init__.py":
            return None
        located = self._below(folder, [name], shortest=1)
        return located[0] if located is not None and not located[1] else None

    # -- the project as a whole --------------------------------------------------------------------------------------

    @property
    def imports_torch(self) -> bool:
        """Whether any file of the project imports torch."""
        self._note(TORCH)
        return self._imports_torch

    @cached_property
    def _imports_torch(self) -> bool:
        return any("import torch" in text or "from torch" in text for text in self._texts.values())

    @property
    def classes_with_own_cuda(self) -> frozenset[str]:
        """Names of the project's classes that define a method called ``cuda``."""
        self._note(OWN_CUDA)
        return self._classes_with_own_cuda

    @cached_property
    def _classes_with_own_cuda(self) -> frozenset[str]:
        names = set()
        for path, text in self._texts.items():
            module = self._module(path) if "def cuda(" in text else None
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
