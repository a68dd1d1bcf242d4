"""Running every rule over every file of a tree."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from npuport.errors import UserError
from npuport.findings import Finding
from npuport.rules.cache import Checked, FindingsCache, check
from npuport.rules.engine import all_rules
from npuport.rules.files import FILE_RULES
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, Skipped, SourceFile, Tree
from npuport.source.parallel import Failure, Progress, map_files
from npuport.source.project import Project


@dataclass(frozen=True)
class Analysis:
    """What was found in a tree, in the order of files and of positions within them."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    failures: tuple[Failure, ...]
    files: dict[FileKind, int]
    settings: Settings
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every file that should have been read was read, and no rule failed."""
        return not self.failures and not any(skipped.unreadable for skipped in self.skipped)


def analyze(
    tree: Tree,
    settings: Settings,
    jobs: int | None = None,
    progress: Progress | None = None,
    cache: FindingsCache | None = None,
) -> Analysis:
    """Check every file of ``tree`` with every rule; ``jobs`` processes at most, one per processor by default.

    With a ``cache``, a tree that was checked before is not checked again.
    """
    start = time.perf_counter()
    findings, failures = _checked(tree.files, settings, jobs, progress, cache)
    return Analysis(
        findings=findings,
        skipped=tree.skipped,
        failures=failures,
        files=dict(Counter(file.kind for file in tree.files)),
        settings=settings,
        seconds=time.perf_counter() - start,
    )


def _checked(
    files: Sequence[SourceFile],
    settings: Settings,
    jobs: int | None,
    progress: Progress | None,
    cache: FindingsCache | None,
) -> tuple[tuple[Finding, ...], tuple[Failure, ...]]:
    project = Project(files)
    remembered = cache.open(files, settings, project) if cache is not None else None
    found = remembered.findings if remembered is not None else {}
    unknown = [file for file in files if file.path not in found]
    if progress and len(files) > len(unknown):
        progress(len(files) - len(unknown))
    results = map_files(_check, unknown, (project, settings, remembered is not None), jobs, progress)
    new = {file.path: one for file, one in zip(unknown, results, strict=True) if not isinstance(one, Failure)}
    if remembered is not None:
        remembered.keep(new)
    found.update((path, one.findings) for path, one in new.items())
    findings = tuple(finding for file in files for finding in found.get(file.path, ()))
    return findings, tuple(result for result in results if isinstance(result, Failure))


_ENGINE = re.compile(r"NP(?:[09]\d{0,2}|613|614)")  # findings that the engine makes itself, without a rule class


def _check(source: SourceFile, context: tuple[Project, Settings, bool]) -> Checked:
    return check(source, *context)


def select(findings: Iterable[Finding], chosen: Sequence[str], ignored: Sequence[str]) -> tuple[Finding, ...]:
    """The findings whose code or name is chosen (all when nothing is) and not ignored; "NP2" means every NP2xx.

    Raises:
        UserError: for a word that no rule answers to.
    """
    findings = tuple(findings)
    known = {(rule.code, rule.name) for rule in all_rules()} | {(rule.code, rule.name) for rule in FILE_RULES}
    known |= {(finding.code, finding.name) for finding in findings}
    for word in (*chosen, *ignored):
        if not any(_matches(code, name, word) for code, name in known) and not _ENGINE.fullmatch(word.upper()):
            raise UserError("no rule is called {word}. `npuport explain` lists them.", word=word)
    return tuple(
        finding
        for finding in findings
        if (not chosen or any(_matches(finding.code, finding.name, word) for word in chosen))
        and not any(_matches(finding.code, finding.name, word) for word in ignored)
    )


def _matches(code: str, name: str, word: str) -> bool:
    return code.startswith(word.upper()) or name == word
