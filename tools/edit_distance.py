"""How far npuport's edits are from those of people who ported public projects.

For each commit of edit_distance_commits.csv: the tree before it is converted, and our edits and findings in the files
that the commit changed are laid beside the commit's own. Two shares come out:

- covered: of the commit's device edits, those where we change the same statement or a finding of ours says something,
- unwanted: of our edits, those that no person would want there.

What cannot be decided by rule is read once and written down, with its reason, in edit_distance_readings.csv. The
repositories are public; clone them bare (``git clone --bare``) as REPOSITORIES/OWNER+NAME/repo. Exit code 1: an edit is
not read yet, or a reading no longer has its edit.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from human_edits import HumanEdit, Span, git, human_edits, modified

from npuport.conversion.changes import Change
from npuport.conversion.rounds import convert_files
from npuport.findings import Finding, Severity
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile, decode
from npuport.source.project import Project

HERE = Path(__file__).parent
Key = tuple[str, str, str, int, str]
VERDICTS = {
    "human": ("no device", "plumbing", "needless", "covered", "missed"),
    "ours": ("wanted", "later", "unwanted"),
}


@dataclasses.dataclass(frozen=True)
class Commit:
    """A row of the list: who ported what, and for which target, as npuport calls it.

    ``group``: "tuned" where rules were corrected on the commit, "held out" where it was measured before anyone looked.
    """

    repository: str  # owner/name
    commit: str
    target: str
    group: str
    about: str


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a person found. ``line`` is one of the tree before the commit. ``side``: whose edit it is.

    Verdicts on the commit's edits: ``covered`` and ``missed`` count; left out are ``no device``, ``plumbing`` (it only
    serves how the author spelled the port) and ``needless`` (torch or a library does it by now). On ours: ``wanted``,
    ``later`` (the line is gone from the repository's newest commit), ``unwanted``.
    """

    repository: str
    commit: str
    path: str
    line: int
    side: str
    verdict: str
    reason: str

    @property
    def key(self) -> Key:
        return self.repository, self.commit[:8], self.path, self.line, self.side


@dataclasses.dataclass(frozen=True)
class Compared:
    """One edit with its verdict; "" is one that nobody has read."""

    commit: Commit
    path: str
    line: int
    side: str
    verdict: str
    text: str
    why: str

    @property
    def key(self) -> Key:
        return self.commit.repository, self.commit.commit[:8], self.path, self.line, self.side


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path, help="folder of bare clones, OWNER+NAME/repo")
    parser.add_argument("--only", default="", help="the commits whose OWNER/NAME@ID begins so")
    parser.add_argument("--group", default="", help='"tuned" or "held out": the commits of this group')
    parser.add_argument("--show", action="store_true", help="print every edit, with its verdict")
    options = parser.parse_args(arguments)
    commits = [Commit(**row) for row in _rows("edit_distance_commits.csv")]
    commits = [one for one in commits if f"{one.repository}@{one.commit}".startswith(options.only)]
    commits = [one for one in commits if options.group in ("", one.group)]
    readings = {one.key: one for one in _readings()}
    results = [(commit, list(compare(options.repositories, commit, readings))) for commit in commits]
    every = [edit for _, edits in results for edit in edits]
    for edit in every:
        if options.show or not edit.verdict:
            print(f"{','.join(map(str, edit.key))},{edit.verdict or '?'} [{edit.why}]\n{edit.text}\n")
    for group in dict.fromkeys(commit.group for commit in commits):
        print(f"\n{group}\n")
        print("\n".join(table([result for result in results if result[0].group == group])))
    used = {edit.key for edit in every if edit.why == "read"}
    chosen = {(one.repository, one.commit[:8]) for one in commits}
    stale = [key for key in readings if key[:2] in chosen and key not in used]
    for key in stale:
        print("no longer needed:", *key)
    unread = sum(not edit.verdict for edit in every)
    if unread or stale:
        print(f"{unread} edits not read, {len(stale)} readings without an edit")
    return 1 if unread or stale else 0


def compare(repositories: Path, commit: Commit, readings: Mapping[Key, Reading]) -> Iterator[Compared]:
    """Every edit of the commit, and of ours in the files it changed, with its verdict."""
    repository = repositories / commit.repository.replace("/", "+") / "repo"
    paths = modified(repository, commit.commit)
    settings = Settings(target=commit.target)
    files = _files_before(repository, commit.commit)
    project = Project(files)
    conversion = convert_files(files, settings, jobs=1)
    converted = {file.source.path: file for file in conversion.files if file.source.path in set(paths)}
    for path, file in converted.items():
        human = list(human_edits(repository, commit.commit, path))
        ours = file.changes
        findings = check_file(file.source, project, settings)
        for edit in human:
            why = "rule" if edit.plumbing else covered_by(edit, [_span(change) for change in ours], findings)
            verdict = "plumbing" if edit.plumbing else "covered" if why else ""
            yield _read(Compared(commit, path, edit.place.first, "human", verdict, _shown(edit), why), readings)
        for change in ours:
            same = any(_span(change).overlaps(span) for edit in human for span in edit.around)
            verdict = "plumbing" if _is_plumbing(change) else "wanted" if same else ""
            why = "rule" if verdict else ""
            yield _read(Compared(commit, path, change.line, "ours", verdict, _change(change), why), readings)


def covered_by(edit: HumanEdit, ours: Sequence[Span], findings: Sequence[Finding]) -> str:
    """What of ours speaks of a person's edit; "" for nothing.

    An edit of ours in its statement (beside it, for a block put in), a finding there, or one in the same function on a
    statement that uses a name of torch's device modules that the block put in uses too. Mentions (NP9xx) and mere
    information, such as that code may stay, do not count.
    """
    if any(span.overlaps(place) for span in ours for place in edit.around):
        return "edit"
    speaking = [one for one in findings if not one.code.startswith("NP9") and one.severity is not Severity.INFO]
    for one in speaking:
        where = Span(one.location.line, one.location.end_line)
        if any(where.overlaps(place) for place in edit.around):
            return one.code
    if edit.inserted:
        names = set(re.findall(r"\b(?:npu|cuda|xpu)\.(\w+)", edit.new))
        for one in speaking:
            where = Span(one.location.line, one.location.line)
            symbol = str(one.evidence.get("symbol", "")).rpartition(".")[2]
            if symbol in names and where.overlaps(edit.function):
                return f"{one.code} in this function"
    return ""


def _read(one: Compared, readings: Mapping[Key, Reading]) -> Compared:
    reading = readings.get(one.key)
    return dataclasses.replace(one, verdict=reading.verdict, why="read") if reading else one


def table(results: Iterable[tuple[Commit, Sequence[Compared]]]) -> Iterator[str]:
    """The Markdown table, a row for each commit and the totals."""
    yield "| Commit | Target | Device edits | Covered | Ours | Unwanted |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    total = [0, 0, 0, 0]
    for commit, edits in results:
        numbers = _numbers(edits)
        total = [sum(pair) for pair in zip(total, numbers, strict=True)]
        link = (
            f"[{commit.repository} {commit.commit[:8]}](https://github.com/{commit.repository}/commit/{commit.commit})"
        )
        yield _row(link, commit.target, numbers)
    yield _row("**Total**", "", total)


def _row(name: str, target: str, numbers: Sequence[int]) -> str:
    human, covered, ours, unwanted = numbers
    return f"| {name} | {target} | {human} | {_share(covered, human)} | {ours} | {_share(unwanted, ours)} |"


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "-"


def _numbers(edits: Sequence[Compared]) -> list[int]:
    left_out = ("no device", "plumbing", "needless")
    human = [edit.verdict for edit in edits if edit.side == "human" and edit.verdict not in left_out]
    ours = [edit.verdict for edit in edits if edit.side == "ours" and edit.verdict != "plumbing"]
    return [len(human), human.count("covered"), len(ours), ours.count("unwanted")]


def _files_before(repository: Path, commit: str) -> list[SourceFile]:
    """The Python files before the commit, one git process for all of them."""
    names = git(repository, "ls-tree", "-r", "--name-only", f"{commit}^").splitlines()
    paths = [name for name in names if name.endswith(".py")]
    wanted = "".join(f"{commit}^:{path}\n" for path in paths).encode()
    command = ["git", f"--git-dir={repository}", "cat-file", "--batch"]
    stream = io.BytesIO(subprocess.run(command, input=wanted, capture_output=True, check=True).stdout)
    files = []
    for path in paths:
        header = stream.readline().split()
        if header[1] != b"blob":  # a file too large for the clone
            continue
        data = stream.read(int(header[2]))
        stream.readline()
        try:
            files.append(decode(path, data, FileKind.PYTHON))
        except ValueError:
            continue
    return files


def _is_plumbing(change: Change) -> bool:
    """Whether a change only puts in what others of the file need: an import, or the constant with the device's name."""
    added = change.after.replace(change.before, "", 1) if change.before in change.after else ""
    lines = [line for line in added.splitlines() if line.strip()]
    return bool(lines) and all(re.match(r"import |from |DEVICE_TYPE = ", line) for line in lines)


def _span(change: Change) -> Span:
    return Span(change.line, change.line + max(0, change.before.count("\n") - 1))


def _shown(edit: HumanEdit) -> str:
    return _lines("- ", edit.old) + _lines("+ ", edit.new)


def _change(change: Change) -> str:
    codes = " ".join(sorted({reason.code for reason in change.reasons}))
    return f"{codes}\n{_lines('- ', change.before)}{_lines('+ ', change.after)}"


def _lines(mark: str, text: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


def _rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _readings() -> Iterator[Reading]:
    for row in _rows("edit_distance_readings.csv"):
        if row["verdict"] not in VERDICTS.get(row["side"], ()) or not row["reason"].strip():
            raise SystemExit(f"edit_distance_readings.csv: {row} needs a verdict that fits its side, and a reason")
        yield Reading(**{**row, "line": int(row["line"])})  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main())
