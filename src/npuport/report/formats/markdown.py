"""Findings as Markdown: for a pull request's comment or an issue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from npuport.findings import Finding
from npuport.report.groups import Group, group_of
from npuport.report.language import counted, translate
from npuport.report.text import fix_words

Work = Mapping[str, tuple[int, int, int]]  # by file: lines automatic, to read, by hand


def markdown(name: str, findings: Sequence[Finding], work: Work) -> str:
    """The findings by what they mean for the port, and the work by file."""
    return "\n".join([*_head(name, findings, work), *_groups(findings), *_work(work), ""])


def _head(name: str, findings: Sequence[Finding], work: Work) -> Iterator[str]:
    automatic, to_read, by_hand = (sum(lines[place] for lines in work.values()) for place in range(3))
    yield f"# {translate('Porting {name} to Ascend', name=name)}"
    yield ""
    yield translate(
        "Effort: {automatic} lines automatic, {to_read} to read, {by_hand} by hand.",
        automatic=f"{automatic:,}",
        to_read=f"{to_read:,}",
        by_hand=f"{by_hand:,}",
    )
    yield f"{counted(len(findings), 'finding')}."


def _groups(findings: Sequence[Finding]) -> Iterator[str]:
    for group in Group:
        members = sorted(
            (one for one in findings if group_of(one) is group), key=lambda one: (one.code, one.location.path)
        )
        if not members or group is Group.WORTH_KNOWING:
            continue
        yield ""
        yield f"## {translate(group.value)} ({len(members):,})"
        for (code, rule), same in groupby(members, key=lambda one: (one.code, one.name)):
            yield ""
            yield f"**{code}** {rule}"
            yield ""
            for finding in same:
                where = finding.location
                yield f"- `{where.path}:{where.line}` {_escaped(finding.message)} ({fix_words(finding)})"


def _work(work: Work) -> Iterator[str]:
    busy = {path: lines for path, lines in work.items() if any(lines)}
    if not busy:
        return
    yield ""
    yield f"## {translate('Work by file, in lines')}"
    yield ""
    heads = (translate("file"), translate("automatic"), translate("to read"), translate("by hand"))
    yield f"| {' | '.join(heads)} |"
    yield "| --- | ---: | ---: | ---: |"
    for path, lines in sorted(busy.items(), key=lambda item: (-item[1][2], -item[1][1], item[0])):
        yield f"| `{path}` | {' | '.join(f'{number:,}' for number in lines)} |"


def _escaped(text: str) -> str:
    return re.sub(r"([*_`<>|\\])", r"\\\1", text)
