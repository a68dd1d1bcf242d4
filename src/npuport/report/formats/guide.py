"""What a person has to do to port one tree, in order: a guide in Markdown, made from its findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from npuport.findings import Applicability, Finding
from npuport.report.formats.sarif import RuleHelp
from npuport.report.groups import Group, fix_level, group_of
from npuport.report.language import translate
from npuport.report.source_lines import repair, source_line
from npuport.source.files import SourceFile

_EXAMPLES = 3  # places shown with their code for each rule; the others are named


@dataclass(frozen=True, slots=True)
class GuideFacts:
    """What the guide says about the machine and the tree."""

    name: str
    path: str
    torch_version: str
    torch_npu_version: str | None
    chip: str
    script: str  # the likely training script, "" when unknown


def guide(
    facts: GuideFacts, findings: Sequence[Finding], sources: Mapping[str, SourceFile], rules: Mapping[str, RuleHelp]
) -> str:
    """The whole guide."""
    parts = [
        _beginning(facts),
        _libraries(findings),
        _rules(_by_hand(findings), sources, rules, translate("What has to be written by hand")),
        _rules(_to_read(findings), sources, rules, translate("What to read and decide")),
        _rules(_automatic(findings), sources, rules, translate("What can be replaced as it stands")),
        _rules(
            [one for one in findings if group_of(one) is Group.FASTER_AS],
            sources,
            rules,
            translate("What would be faster"),
        ),
        _end(facts),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _by_hand(findings: Sequence[Finding]) -> list[Finding]:
    return [one for one in findings if group_of(one) is Group.WILL_FAIL]


def _to_read(findings: Sequence[Finding]) -> list[Finding]:
    unsafe = [one for one in findings if group_of(one) is Group.MUST_CHANGE and fix_level(one) is Applicability.UNSAFE]
    return [*unsafe, *(one for one in findings if group_of(one) is Group.MAY_DIFFER)]


def _automatic(findings: Sequence[Finding]) -> list[Finding]:
    return [one for one in findings if group_of(one) is Group.MUST_CHANGE and fix_level(one) is Applicability.SAFE]


def _beginning(facts: GuideFacts) -> Iterator[str]:
    yield f"# {translate('Porting {name} to Ascend by hand', name=facts.name)}"
    yield ""
    yield translate(
        "`npuport convert` does most of this by itself; this guide is for those who make or review each step."
    )
    yield ""
    yield f"## {translate('The environment')}"
    yield ""
    pair = facts.torch_npu_version or facts.torch_version
    yield translate("torch and torch_npu must match exactly:")
    yield ""
    yield "```"
    yield f"pip install torch=={facts.torch_version} torch-npu=={pair}"
    yield "```"


def _libraries(findings: Sequence[Finding]) -> Iterator[str]:
    members = [one for one in findings if group_of(one) is Group.LIBRARIES]
    if not members:
        return
    yield ""
    yield f"## {translate('Libraries')}"
    yield ""
    for library, same in groupby(
        sorted(members, key=lambda one: str(one.evidence["library"])), lambda one: str(one.evidence["library"])
    ):
        places = list(same)
        where = ", ".join(dict.fromkeys(f"`{one.location.path}:{one.location.line}`" for one in places[:4]))
        yield f"- **{library}** ({where}): {places[0].message}"


def _rules(
    findings: Sequence[Finding], sources: Mapping[str, SourceFile], rules: Mapping[str, RuleHelp], title: str
) -> Iterator[str]:
    if not findings:
        return
    yield ""
    yield f"## {title}"
    ordered = sorted(findings, key=lambda one: (one.code, one.location))
    for (code, name), same in groupby(ordered, key=lambda one: (one.code, one.name)):
        places = list(same)
        yield ""
        yield f"### {code} {name}"
        yield ""
        help_ = rules.get(code)
        yield help_.summary if help_ else places[0].message
        for finding in places[:_EXAMPLES]:
            yield from _place(finding, sources)
        rest = [f"`{one.location.path}:{one.location.line}`" for one in places[_EXAMPLES:]]
        if rest:
            yield ""
            yield translate("The same in {places}.", places=", ".join(rest))


def _place(finding: Finding, sources: Mapping[str, SourceFile]) -> Iterator[str]:
    source = sources.get(finding.location.path)
    yield ""
    yield f"`{finding.location.path}:{finding.location.line}` {finding.message}"
    before = source_line(finding, source).strip() if source else ""
    if not before:
        return
    repaired = repair(finding, source) if source else None
    after = [*repaired.here, *(line for _, line in repaired.elsewhere)] if repaired else []
    yield ""
    yield "```diff"
    yield f"-{before}" if after else f" {before}"
    yield from (f"+{line.strip()}" for line in after)
    yield "```"


def _end(facts: GuideFacts) -> Iterator[str]:
    yield ""
    yield f"## {translate('Try it')}"
    yield ""
    yield translate("Without an NPU, on the real torch_npu over a simulated CANN, and then on the machine:")
    yield ""
    script = facts.script or "train.py"
    yield "```"
    yield f"npuport run --sim -- python {script}"
    yield f"python {script}"
    yield "```"
