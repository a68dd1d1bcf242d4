"""What a rule about a file other than Python is, and what it may ask."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Location, Severity
from npuport.rules.npu_branches import tells_npus_apart
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project
from npuport.source.settings import Setting, settings_in
from npuport.source.text import LineIndex

# Who checks a project is another matter than who trains it.
_CI = re.compile(r"(?:^|/)(?:\.github|\.circleci|\.buildkite|\.gitlab|\.ci|ci)/|(?:^|/)\.gitlab-ci\.ya?ml$")


class FileRule(ABC):
    """One kind of CUDA setting outside Python. Rules keep no state, read no files and print nothing."""

    code: ClassVar[str]
    name: ClassVar[str]  # kebab-case, states the bad pattern
    severity: ClassVar[Severity]
    kinds: ClassVar[frozenset[FileKind]]

    @abstractmethod
    def check(self, file: OtherFile) -> Iterator[Finding]:
        """Findings in ``file``."""


@dataclass(frozen=True)
class OtherFile:
    """One file as these rules see it."""

    source: SourceFile
    settings: Settings
    project: Project | None = None  # whose Python code calls what C++ defines

    @property
    def text(self) -> str:
        return self.source.text

    @cached_property
    def index(self) -> LineIndex:
        return LineIndex(self.source.text)

    @cached_property
    def made(self) -> tuple[Setting, ...]:
        """The settings that the file makes."""
        return tuple(settings_in(self.source))

    @cached_property
    def has_npu_branches(self) -> bool:
        """Whether the file speaks of NPUs already."""
        return tells_npus_apart(self.source.text)

    @cached_property
    def is_ci(self) -> bool:
        """Whether the file says how the project is checked."""
        return _CI.search(self.source.path) is not None

    def finding(
        self,
        rule: FileRule,
        start: int,
        end: int,
        message: str,
        *,
        fix: Fix | None = None,
        basis: Basis | None = None,
        severity: Severity | None = None,
        **evidence: object,
    ) -> Finding:
        """A finding at character offsets. Files of CI are only worth knowing."""
        line, column = self.index.position(start)
        end_line, end_column = self.index.position(end)
        severity = severity or rule.severity
        return Finding(
            code=rule.code,
            name=rule.name,
            severity=Severity.INFO if self.is_ci else severity,
            location=Location(self.source.path, line, column, end_line, end_column),
            message=message,
            evidence={"kind": self.source.kind.value, **{k: v for k, v in evidence.items() if v is not None}},
            basis=basis,
            fix=fix,
        )

    def fix(self, edits: Iterable[Edit], applicability: Applicability, title: str = "") -> Fix | None:
        """A fix for an NPU alone: only where explicit NPU code is wanted, and never in what CI does."""
        if self.settings.target != "npu" or self.is_ci:
            return None
        if self.has_npu_branches and applicability is Applicability.SAFE:
            applicability = Applicability.UNSAFE
        return Fix(tuple(sorted(edits)), applicability, title)
