"""Findings of trees that were checked before, kept in the user's cache directory.

What a rule finds in a file may depend on other files of the tree. So each file is kept with its findings, a hash of its
own text, and what the check asked about the others; an answer that is another one today makes the findings unknown.
Settings, npuport itself and Python count for all. Nothing stale can come back, and a change of one file leaves the
findings in those that never asked for what has changed.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path

from npuport.entries import Entries
from npuport.findings import Finding
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import SourceFile
from npuport.source.project import Project
from npuport.source.questions import ABOUT_ONE_FILE, ABOUT_PATHS, Question

LIMIT = 200_000_000
"""Bytes of all entries together; those not used for longest are removed."""

_SMALLEST = 300_000  # characters; less is checked as fast as it is looked up
_READERS = ("PyYAML", "ahocorasick_rs", "packaging")  # what decides beside npuport


def default_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("npuport")) / "findings"


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings in one file, with the answers that the check got about other files; None where nobody noted them."""

    findings: list[Finding]
    answers: Mapping[Question, str] | None = None


def check(source: SourceFile, project: Project, settings: Settings, noting: bool) -> Checked:
    """Check one file; ``noting`` what the findings depend on takes a little longer."""
    if not noting:
        return Checked(check_file(source, project, settings))
    with project.noting() as asked:
        findings = check_file(source, project, settings)
    return Checked(findings, {question: project.answers.to(question) for question in asked})


@dataclass(frozen=True, slots=True)
class _File:
    findings: list[Finding]
    asked: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is known of a tree: hashes of all texts, and of the files that were checked the findings."""

    texts: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[Question, str] = field(default_factory=dict)
    files: Mapping[str, _File] = field(default_factory=dict)

    def still_so(self, texts: Mapping[str, str], project: Project) -> _Kept:
        """So much of it as is right for a project with these ``texts``, given as hashes."""
        changed = {path for path in self.texts.keys() | texts.keys() if self.texts.get(path) != texts.get(path)}
        moved = self.texts.keys() != texts.keys()

        def may_differ(kind: str, *about: str) -> bool:
            if kind in ABOUT_ONE_FILE:
                return about[0] in changed
            return moved if kind in ABOUT_PATHS else bool(changed)

        answers = {
            question: answer
            for question, answer in self.answers.items()
            if not may_differ(*question) or project.answers.to(question) == answer
        }
        files = {
            path: file
            for path, file in self.files.items()
            if path not in changed and all(question in answers for question in file.asked)
        }
        return _Kept(texts, answers, files)

    def with_those_of(self, other: _Kept, choose: Callable[[list[Finding]], list[Finding]]) -> _Kept:
        """What is known here, and ``choose`` of the findings that only the other one knows, about the same texts."""
        more = {path: file for path, file in other.files.items() if path not in self.files}
        chosen = {path: _File(choose(file.findings), file.asked) for path, file in more.items()}
        return _Kept(self.texts, {**other.answers, **self.answers}, {**self.files, **chosen})

    def with_new(self, checked: Mapping[str, Checked]) -> _Kept:
        """What is known here, and what was ``checked`` now."""
        answers, files = dict(self.answers), dict(self.files)
        for path, one in checked.items():
            if one.answers is not None:
                answers.update(one.answers)
                files[path] = _File(one.findings, tuple(one.answers))
        same = {question: question for question in answers}  # each is stored once
        files = {path: _File(file.findings, tuple(map(same.__getitem__, file.asked))) for path, file in files.items()}
        used = {question for file in files.values() for question in file.asked}
        return _Kept(self.texts, {question: answers[question] for question in used}, files)


@dataclass(frozen=True, slots=True)
class FindingsCache:
    """Findings by tree; ``tree`` is what this one is called, such as its directory.

    A folder that cannot be read or written, and a damaged entry, mean that nothing is known.
    """

    folder: Path
    tree: str = ""
    limit: int = LIMIT

    def open(
        self, files: Sequence[SourceFile], settings: Settings, project: Project, before: Sequence[SourceFile] = ()
    ) -> Remembered | None:
        """What is known of ``files``, which make up ``project``; None for so few that they are not worth keeping.

        ``before`` are the files as they were before the conversion that is under way, if one is.
        """
        if sum(len(file.text) for file in files) < _SMALLEST:
            return None
        old = {file.path: file.text for file in before}
        texts = {file.path: _digest(file, old.get(file.path)) for file in files}
        remembered = Remembered(self, f"{self.tree} {'converting' if before else ''}", project, _Kept(texts))
        return remembered.read(settings)

    def read(self, key: str) -> _Kept:
        """What is kept under ``key``."""
        body = self._entries.read(key)
        try:
            kept = pickle.loads(zlib.decompress(body)) if body else None
        except (zlib.error, pickle.PickleError, EOFError):
            return _Kept()
        return kept if isinstance(kept, _Kept) else _Kept()

    def write(self, key: str, kept: _Kept) -> None:
        """Keep it whole or not at all, whatever else runs at the same time."""
        self._entries.write(key, zlib.compress(pickle.dumps(kept), level=1))
        self._entries.shrink(self.limit)

    @property
    def _entries(self) -> Entries:
        return Entries(self.folder, ".findings")


@dataclass(frozen=True, slots=True)
class Remembered:
    """The files of a tree whose findings are known, for some settings."""

    cache: FindingsCache
    name: str
    project: Project
    kept: _Kept
    key: str = ""

    def read(self, settings: Settings) -> Remembered:
        """What is known of the same texts for ``settings``."""
        key = hashlib.sha256(repr((self.name, settings, _tools())).encode()).hexdigest()
        kept = self.cache.read(key).still_so(self.kept.texts, self.project)
        return replace(self, kept=kept, key=key)

    def filled_up(self, settings: Settings, choose: Callable[[list[Finding]], list[Finding]]) -> Remembered:
        """The same, and for files that are not known ``choose`` of the findings that are known for ``settings``."""
        if self.kept.files.keys() == self.kept.texts.keys():
            return self
        return replace(self, kept=self.kept.with_those_of(self.read(settings).kept, choose))

    @property
    def findings(self) -> dict[str, list[Finding]]:
        """The findings that are known, by path."""
        return {path: file.findings for path, file in self.kept.files.items()}

    def keep(self, checked: Mapping[str, Checked]) -> None:
        """Keep what was ``checked`` now for the next time, together with what was known."""
        if checked:
            self.cache.write(self.key, self.kept.with_new(checked))


def _digest(file: SourceFile, before: str | None) -> str:
    digest = hashlib.sha256(repr((file.kind.value, file.encoding, file.bom, len(file.text))).encode())
    for text in (file.text, before):
        digest.update(b"" if text is None else text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@cache
def _tools() -> tuple[str, ...]:
    """What checks: this Python, the libraries that read, and the text of npuport's own rules and facts."""
    package = Path(__file__).parents[1]
    own = hashlib.sha256()
    for folder in ("rules", "source", "facts"):
        for place in sorted((package / folder).rglob("*")):
            if place.is_file() and place.suffix != ".pyc":
                data = place.read_bytes()
                own.update(repr((place.relative_to(package).as_posix(), len(data))).encode() + data)
    own.update((package / "findings.py").read_bytes())
    return sys.version, own.hexdigest(), *(metadata.version(name) for name in _READERS)
