"""NVIDIA's Apex, and torch in its place: one plan for a file, for its parts share imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from npuport.facts import library
from npuport.findings import Applicability, Edit, Finding, Severity
from npuport.rules.apex.classes import Blocked, counterpart_edits
from npuport.rules.apex.mentions import PACKAGES, Imports, Mention, falls_back, imports, is_apex
from npuport.rules.apex.mixed_precision import Conversion
from npuport.rules.base import Context, Rule
from npuport.rules.libraries import is_guarded


@dataclass(frozen=True)
class Plan:
    """What becomes of Apex in one file: the edits, and what stays with the reason."""

    edits: tuple[Edit, ...]
    blocked: tuple[tuple[Mention, str], ...]
    found: Imports


@lru_cache(maxsize=1)
def _plan(context: Context) -> Plan:
    found = imports(context)
    own = {id(alias) for statement in found.statements if falls_back(statement) for alias in statement.names}
    mentions = tuple(mention for mention in found.mentions if id(mention.imported) not in own)
    imported = Imports(tuple(each for each in found.statements if not falls_back(each)), mentions)
    of_amp = [mention for mention in mentions if f"{mention.name}.".startswith("apex.amp.")]
    edits: list[Edit] = []
    converted: list[Mention] = []
    blocked: list[tuple[Mention, str]] = []
    for group in (of_amp, *([mention] for mention in mentions if mention not in of_amp)):
        found_edits, reason = _edits_of(group, context)
        if reason:
            blocked.append((group[0], reason))
        else:
            edits += found_edits
            converted += group
    if edits:
        edits += [edit for edit in imported.edits(converted, context) if not any(_holds(each, edit) for each in edits)]
    return Plan(tuple(sorted(set(edits))), tuple(blocked), imported)


def _edits_of(group: list[Mention], context: Context) -> tuple[list[Edit], str]:
    """The edits of mentions that are converted together, or the reason why they are not."""
    if not group:
        return [], ""
    try:
        if f"{group[0].name}.".startswith("apex.amp."):
            return list(Conversion(group, context).edits()), ""
        return list(counterpart_edits(group[0], context)), ""
    except Blocked as reason:
        return [], str(reason)


def _holds(outer: Edit, inner: Edit) -> bool:
    """Whether ``inner`` changes what ``outer`` takes away."""
    return outer.start <= inner.start and inner.end <= outer.end and outer.start < outer.end


class ApexImport(Rule):
    """NVIDIA's Apex, by import; the first import of a file carries the fix for all of it."""

    code = "NP221"
    name = "apex-import"
    severity = Severity.WARNING
    agnostic = True
    markers = tuple((word, rf"import.*\b{word}\b|\b{word}\b.*import") for word in PACKAGES)
    nodes = (ast.Import, ast.ImportFrom)

    def check(self, node: ast.AST, context: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        known = library("apex")
        if known is None or not is_apex(node) or context.project.locate("apex", context.module.path) is not None:
            return
        if falls_back(node):
            message = f"{_WHAT}; the program goes on without it"
            yield context.finding(self, node, message, severity=Severity.INFO, basis=known.basis, library="apex")
            return
        severity = Severity.INFO if is_guarded(node, context) else self.severity
        plan = _plan(context)
        if context.settings.target == "import" or node is not plan.found.statements[0]:
            yield context.finding(self, node, _WHAT, severity=severity, basis=known.basis, library="apex")
            return
        fix = context.fix(plan.edits, Applicability.UNSAFE, "use torch.amp and torch's classes", needs="torch")
        yield context.finding(
            self,
            node,
            f"{_WHAT}; {_INSTEAD}",
            fix=fix if plan.edits else None,
            severity=severity,
            basis=known.basis,
            library="apex",
            instead=known.replacement,
        )
        for mention, reason in plan.blocked:
            message = f"{mention.name} is not converted: {reason}"
            yield context.finding(self, mention.node, message, basis=known.basis, library="apex")


_WHAT = "NVIDIA's apex does not run on an NPU"
_INSTEAD = (
    "torch.amp and torch's own classes do the same; code that must keep apex needs Apex for Ascend, or npuport run,"
    " which has a stand-in"
)

RULES: tuple[type[Rule], ...] = (ApexImport,)
