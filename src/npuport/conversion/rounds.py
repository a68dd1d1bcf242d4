"""Converting every file of a tree, again and again until nothing changes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from npuport.conversion.changes import Change, changes
from npuport.conversion.convert import BrokenFixError, Converted, convert_text
from npuport.conversion.proofs import Prover, claims_of, judged
from npuport.conversion.residue import Occurrence, unexplained
from npuport.findings import Claim, Edit, Finding, Severity, Verdict
from npuport.rules.cache import Checked, FindingsCache, check
from npuport.rules.engine import that_may_ask_for_edits
from npuport.rules.settings import Settings
from npuport.source.files import SourceFile
from npuport.source.parallel import Failure, Progress, map_files
from npuport.source.project import Project

ROUNDS = 10
"""A round repairs what the one before put off because two fixes overlapped, or what only shows once another file is
converted. Real trees need two or three; a rule that never settles is a defect and must not loop."""


@dataclass(frozen=True, slots=True)
class ConvertedFile:
    """One file before and after."""

    source: SourceFile
    text: str
    changes: tuple[Change, ...] = ()

    @property
    def changed(self) -> bool:
        return self.text != self.source.text

    def encoded(self) -> bytes:
        return self.source.encode(self.text)


@dataclass(frozen=True)
class Conversion:
    """Every file of a tree, converted to a fixed point. ``left`` and ``unexplained`` are located in the new texts."""

    files: tuple[ConvertedFile, ...]
    left: tuple[Finding, ...]
    unexplained: tuple[Occurrence, ...]
    failures: tuple[Failure, ...]
    verdicts: tuple[Verdict, ...] = ()  # on every claim that a fix rested on; a claim may stand for several places

    @property
    def changed(self) -> tuple[ConvertedFile, ...]:
        return tuple(file for file in self.files if file.changed)

    @property
    def left_to_do(self) -> tuple[Finding, ...]:
        """What a person should look at: all that is left but mere information."""
        return tuple(finding for finding in self.left if finding.severity is not Severity.INFO)

    @property
    def edit_count(self) -> int:
        return sum(len(file.changes) for file in self.files)


@dataclass(frozen=True, slots=True)
class _Task:
    project: Project
    settings: Settings
    unsafe: bool
    frozen: frozenset[str]  # files that must stay as they are
    known: Mapping[str, list[Finding]]  # findings by path, of files checked before
    noting: bool  # what the findings of others depend on, for the cache
    verdicts: Mapping[Claim, Verdict] | None  # on the claims that fixes rest on; None if nobody wants a proof


@dataclass(frozen=True, slots=True)
class _Outcome:
    checked: Checked
    left: tuple[Finding, ...]
    converted: Converted | None  # None where nothing changes: texts of a whole tree need not go from process to process
    unexplained: tuple[Occurrence, ...]
    broken: Failure | None = None


@dataclass(slots=True)
class _Progressing:
    """One file on its way: its current form, and how it came about."""

    original: SourceFile
    current: SourceFile
    edits: list[Sequence[Edit]]
    changes: list[Change]

    def take(self, converted: Converted) -> None:
        self.changes += changes(self.current, converted, self.edits, self.original)
        self.edits.append(converted.edits)
        self.current = replace(self.current, text=converted.text)

    def revert(self) -> None:
        self.current, self.edits, self.changes = self.original, [], []


def convert_files(
    files: Sequence[SourceFile],
    settings: Settings,
    unsafe: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    cache: FindingsCache | None = None,
    prove: Prover | None = None,
) -> Conversion:
    """Convert ``files`` until another run would change nothing.

    With a ``cache``, what was found in the same files before is not sought again. With ``unsafe``, fused operators are
    put in too; where ``prove`` is given, only those of which it proves that they compute the same.
    A file that a fix would break, or whose fixes never settle, keeps its text and gets a failure.
    """
    settings = replace(settings, edits_only=True, fuse=unsafe)
    states = [_Progressing(file, file, [], []) for file in files]
    failures: dict[str, Failure] = {}
    outcomes: dict[str, _Outcome | Failure] = {}
    looked_at = states
    project: Project | None = None
    verdicts: dict[Claim, Verdict] | None = None if prove is None else {}
    for number in count():  # ends: from ROUNDS on, every round that moves anything freezes one more file
        everything = [state.current for state in states]
        earlier, project = project, Project(everything, before=files, earlier=project)
        if earlier is not None:
            earlier.close()
        remembered = cache.open(everything, settings, project, files if number else ()) if cache is not None else None
        if remembered is not None and number == 0:
            # What the conversion would find itself is part of what an analysis found.
            analysed = replace(settings, edits_only=False)
            remembered = remembered.filled_up(analysed, partial(that_may_ask_for_edits, settings=settings))
        known = remembered.findings if remembered is not None else {}
        task = _Task(project, settings, unsafe, frozenset(failures), known, remembered is not None, verdicts)
        current = [state.current for state in looked_at]
        latest = map_files(_convert_once, current, task, jobs, progress if number == 0 else None)
        if remembered is not None:
            remembered.keep(_new(latest, current, known))
        moved: set[str] = set()
        for state, outcome in zip(looked_at, latest, strict=True):
            path = state.current.path
            outcomes[path] = outcome
            if isinstance(outcome, Failure) or outcome.broken:
                broken = outcome if isinstance(outcome, Failure) else outcome.broken
                assert broken is not None
                moved |= {path} - failures.keys()
                failures.setdefault(path, broken)
                state.revert()
            elif outcome.converted is not None:
                moved.add(path)
                if number >= ROUNDS:
                    codes = ", ".join(sorted({finding.code for finding in outcome.converted.applied}))
                    failures[path] = Failure(path, codes, f"its fixes do not settle after {ROUNDS} rounds")
                    state.revert()
                else:
                    state.take(outcome.converted)
        if not moved and prove is not None and verdicts is not None:
            moved = _proved(outcomes, prove, verdicts)
        if not moved:
            break
        looked_at = [state for state in states if state.current.path in moved]
        importers = _importers(moved)
        for state in states:
            outcome = outcomes[state.current.path]
            undecided = not isinstance(outcome, Failure) and any(found.fix for found in outcome.left)
            if undecided and state.current.path not in moved and importers.search(state.current.text):
                looked_at.append(state)
    finished = [outcome for outcome in outcomes.values() if not isinstance(outcome, Failure)]
    return Conversion(
        files=tuple(ConvertedFile(state.original, state.current.text, tuple(state.changes)) for state in states),
        left=tuple(finding for outcome in finished for finding in outcome.left),
        unexplained=tuple(word for outcome in finished for word in outcome.unexplained),
        failures=tuple(failures[path] for path in sorted(failures)),
        verdicts=tuple((verdicts or {}).values()),
    )


def _proved(outcomes: Mapping[str, _Outcome | Failure], prove: Prover, verdicts: dict[Claim, Verdict]) -> set[str]:
    """The files with claims that had no verdict; ``verdicts`` has them now.

    Asked when all else has settled, for what a claim says depends on the text around it.
    """
    claims = {
        path: [claim for claim in claims_of(outcome.checked.findings) if claim not in verdicts]
        for path, outcome in outcomes.items()
        if not isinstance(outcome, Failure)
    }
    new = list(dict.fromkeys(claim for of_file in claims.values() for claim in of_file))
    if new:
        verdicts.update(zip(new, prove(new), strict=True))
    return {path for path, of_file in claims.items() if of_file}


def _new(
    latest: Sequence[_Outcome | Failure], files: Sequence[SourceFile], known: Collection[str]
) -> dict[str, Checked]:
    return {
        file.path: outcome.checked
        for file, outcome in zip(files, latest, strict=True)
        if not isinstance(outcome, Failure) and file.path not in known
    }


def _importers(moved: set[str]) -> re.Pattern[str]:
    """Matches in a file that imports one of the modules in ``moved``. A fix that waits there may become safe with them;
    a file without a finding gets none, for a conversion takes CUDA away and adds none."""
    names = {_module_name(path) for path in moved if path.endswith(".py")}
    choice = "|".join(sorted(map(re.escape, names))) or "(?!)"
    return re.compile(rf"\b(?:{choice})\b[\w., \t()]*\bimport\b|\bimport\b[\w., \t(]*\b(?:{choice})\b")


def _module_name(path: str) -> str:
    """``model`` for model.py, ``pkg`` for pkg/__init__.py."""
    parts = path.removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


def _convert_once(source: SourceFile, task: _Task) -> _Outcome:
    known = task.known.get(source.path)
    checked = Checked(known) if known is not None else check(source, task.project, task.settings, task.noting)
    now = [judged(finding, task.verdicts) for finding in checked.findings]
    converted, broken = Converted(source.text, (), tuple(now)), None
    if source.path not in task.frozen:
        try:
            converted = convert_text(source, now, task.unsafe)
        except BrokenFixError as error:
            broken = Failure(source.path, "", str(error))
    if converted.edits:
        return _Outcome(checked, converted.left, converted, ())
    # Only the round that changes nothing counts, and there the text is that of ``source``.
    return _Outcome(checked, converted.left, None, tuple(unexplained(source, checked.findings)), broken)
