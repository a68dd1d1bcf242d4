"""A toy checker for tests of the conversion: each rule replaces one word by another. It needs no knowledge of CUDA."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from npuport.findings import Applicability, Edit, Finding, Fix, Location, Severity
from npuport.rules.settings import Settings
from npuport.source.files import SourceFile
from npuport.source.project import Project
from npuport.source.text import LineIndex

Checker = Callable[[SourceFile, Project, Settings], list[Finding]]


def replacing(words: Mapping[str, str | None], level: Applicability = Applicability.SAFE) -> Checker:
    """A ``check_file`` that finds each whole word and replaces it; None reports it without a fix."""

    def check_file(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:  # noqa: ARG001
        found = []
        for number, (word, new) in enumerate(words.items()):
            for match in re.finditer(rf"\b{word}\b", source.text):
                fix = None if new is None else Fix((Edit(match.start(), match.end(), new),), level)
                found.append(finding_at(source, match.start(), match.end(), f"NP{101 + number}", fix))
        return found

    return check_file


def finding_at(source: SourceFile, start: int, end: int, code: str = "NP101", fix: Fix | None = None) -> Finding:
    """A finding of ``source`` between two offsets."""
    index = LineIndex(source.text)
    where = Location(source.path, *index.position(start), *index.position(end))
    return Finding(code, "a-word", Severity.ERROR, where, f"{source.text[start:end]} is a word", fix=fix)
