"""The first contact: what a port needs, in a screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from npuport.findings import Applicability, Finding
from npuport.report.groups import Group, fix_level, group_of
from npuport.report.language import counted, language, translate
from npuport.report.text import printable

_COLOUR = {
    Group.WILL_FAIL: "red",
    Group.MUST_CHANGE: "yellow",
    Group.MAY_DIFFER: "yellow",
    Group.FASTER_AS: "cyan",
    Group.LIBRARIES: "",
    Group.WORTH_KNOWING: "dim",
}
_KIND_NAMES = {
    "python": "Python",
    "notebook": "notebook",
    "yaml": "YAML",
    "json": "JSON",
    "toml": "TOML",
    "ini": "INI",
    "dockerfile": "Dockerfile",
    "cpp": "C++",
    "cuda": "CUDA",
    "makefile": "Makefile",
}
_MAIN_KINDS = 4
_PLACES = 3


@dataclass(frozen=True)
class SummaryFacts:
    """What the summary says beside the findings."""

    name: str  # of the project
    files: Mapping[str, int]  # by kind
    torch_version: str
    chip: str
    seconds: float
    automatic: int  # lines, as in the JSON's effort
    to_read: int
    by_hand: int


def summary(facts: SummaryFacts, findings: Sequence[Finding], width: int) -> Iterable[Text]:
    """Head line, one line for each group with its first places, the effort in lines."""
    yield _head(facts, width)
    yield Text()
    yield from _table(findings, width)
    if not findings:
        yield Text("  " + translate("nothing to report: no CUDA reference was found"))
    yield Text()
    yield Text(_effort(facts))


def _head(facts: SummaryFacts, width: int) -> Text:
    files = file_counts(facts.files)
    head = f"{printable(facts.name)} · {files} · torch {facts.torch_version}, {facts.chip}"
    time = f"{facts.seconds:.1f} s"
    return Text(head + " " * max(2, min(width, 100) - cell_len(head) - len(time)) + time, style="bold")


def file_counts(files: Mapping[str, int]) -> str:
    """``15 Python files, 2 YAML, 3 other``; ``files`` by kind."""
    counts = sorted(files.items(), key=lambda item: (item[0] != "python", -item[1], item[0]))
    named = [_count(kind, number) for kind, number in counts[:_MAIN_KINDS]]
    rest = sum(number for _, number in counts[_MAIN_KINDS:])
    if rest:
        named.append(translate("{number} other", number=f"{rest:,}"))
    return ", ".join(named)


def _count(kind: str, number: int) -> str:
    name = _KIND_NAMES.get(kind, kind)
    if kind == "python":
        return counted(number, "Python file")
    return f"{number:,} {name}{'s' if kind == 'notebook' and number != 1 and language() == 'en' else ''}"


def _table(findings: Sequence[Finding], width: int) -> Iterable[Text]:
    """A row for each group, its places in one column; a row that is too long for ``width`` takes two lines."""
    members: dict[Group, list[Finding]] = {group: [] for group in Group}
    for finding in findings:
        members[group_of(finding)].append(finding)
    label_width = max(cell_len(translate(group.value)) for group in Group)
    count_width = max((len(f"{len(found):,}") for found in members.values()), default=0)
    rows = [
        (_lead(group, label_width, count_width, found), _places(found)) for group, found in members.items() if found
    ]
    indent = 2 + label_width + 3 + count_width + 3
    column = max((lead.cell_len for lead, places in rows if lead.cell_len + 2 + cell_len(places) <= width), default=0)
    for lead, places in rows:
        gap = max(column - lead.cell_len, 0) + 2
        if lead.cell_len + gap + cell_len(places) > width:
            gap = 2
        if lead.cell_len + gap + cell_len(places) <= width:
            yield lead.append(" " * gap).append(places, "dim")
        else:
            yield lead
            yield Text.assemble(" " * indent, (places, "dim"))


def _lead(group: Group, label_width: int, count_width: int, members: Sequence[Finding]) -> Text:
    label = translate(group.value)
    padding = " " * (label_width - cell_len(label) + 3)
    count = f"{len(members):>{count_width},}   "
    return Text.assemble("  ", (label, _COLOUR[group]), padding, count, _what(group, members))


def _what(group: Group, members: Sequence[Finding]) -> str:
    names = Counter(_subject(group, finding) for finding in members).most_common()
    shown = ", ".join(f"{name} {number}" if number > 1 else name for name, number in names[:3])
    more = f", …{len(names) - 3}" if len(names) > 3 else ""
    return f"{shown}{more}{_fixes(group, members)}"


def _subject(group: Group, finding: Finding) -> str:
    return printable(str(finding.evidence["library"])) if group is Group.LIBRARIES else finding.name


def _fixes(group: Group, members: Sequence[Finding]) -> str:
    if group is not Group.MUST_CHANGE:
        return ""
    safe = sum(fix_level(finding) is Applicability.SAFE for finding in members)
    if safe == len(members):
        return "; " + translate("all with a safe fix")
    return "; " + translate("{number} with a safe fix", number=safe)


def _places(members: Sequence[Finding]) -> str:
    places = list(dict.fromkeys(f"{finding.location.path}:{finding.location.line}" for finding in members))
    return printable(" ".join(places[:_PLACES])) + (" …" if len(places) > _PLACES else "")


def _effort(facts: SummaryFacts) -> str:
    effort = translate(
        "Effort: {automatic} lines automatic, {to_read} to read, {by_hand} by hand.",
        automatic=f"{facts.automatic:,}",
        to_read=f"{facts.to_read:,}",
        by_hand=f"{facts.by_hand:,}",
    )
    joint = "" if language() == "zh" else " "
    return effort + (joint + translate("No blockers.") if facts.by_hand == 0 else "")
