"""What a check asks about the files of a project, as questions whose answers can be compared in a later run."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from npuport.source.outline import Defined, Imported, Outline

if TYPE_CHECKING:
    from npuport.source.project import Project

Question = tuple[str, ...]
"""The kind, and what the question is about."""

TEXT, EXPORT, BEFORE = "text", "export", "before"  # about one file, whose path comes first
HAS, PLACE, INSIDE = "has", "place", "inside"  # about the paths of all files
HOLDING, OWN_CUDA, TORCH = "holding", "own cuda", "imports torch"  # about the texts of all files

ABOUT_ONE_FILE = frozenset({TEXT, EXPORT, BEFORE})
ABOUT_PATHS = frozenset({HAS, PLACE, INSIDE})


class Answers:
    """What a project answers, in short: where two answers are equal, nobody who asked sees a difference."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[Question, str] = {}

    def to(self, question: Question) -> str:
        if question not in self._known:
            self._known[question] = self._found(*question)
        return self._known[question]

    def _found(self, kind: str, *about: str) -> str:
        project = self._project
        if kind == TEXT:
            return self._digest(project.texts.get(about[0]))
        if kind == EXPORT:
            return _export(project.outline(*about), about[1])
        if kind == BEFORE:
            return self._digest(project.text_before(about[0]))
        if kind == HAS:
            return str(project.has(about[0]))
        if kind == PLACE:
            return repr(project.place(*about))
        if kind == INSIDE:
            return repr(project.submodule(*about))
        if kind == HOLDING:
            return self._digest(repr([(path, self.to((TEXT, path))) for path, _ in project.holding(*about)]))
        if kind == OWN_CUDA:
            return repr(sorted(project.classes_with_own_cuda))
        assert kind == TORCH, kind
        return str(project.imports_torch)

    @staticmethod
    def _digest(text: str | None) -> str:
        return "" if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _export(outline: Outline | None, name: str) -> str:
    """What the resolver learns of a name from an outline. Who looks at a definition itself asks for the text too."""
    if outline is None:
        return "unreadable"
    exported = outline.exports.get(name)
    if exported is None:
        return f"from {' '.join(outline.stars)}"
    if isinstance(exported, Imported):
        return f"import {exported.target}"
    if isinstance(exported, Defined):
        return "class" if exported.is_class else "function"
    return "computed"
