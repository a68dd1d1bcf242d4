"""NVIDIA's Apex, and torch in its place: one plan for a file, for its parts share imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from npuport.facts import apex_name, library
from npuport.findings import Applicability, Edit, Finding, Severity
from npuport.rules.apex import for_ascend
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
    of_amp = [mention for mention in mentions if _is_amp(mention)]
    edits: list[Edit] = []
    converted: list[Mention] = []
    blocked: list[tuple[Mention, str]] = []
    ascend = context.settings.apex == "ascend"
    if ascend:
        edits += for_ascend.initialize_edits(of_amp, context)
    groups = _groups_for_ascend(mentions) if ascend else _groups(mentions)
    for group in groups:
        found_edits, reason = _edits_of(group, context)
        if reason:
            blocked.append((group[0], reason))
        else:
            edits += found_edits
            converted += [] if ascend and for_ascend.stays(group[0]) else group
    if edits:
        edits += [edit for edit in imported.edits(converted, context) if not any(_holds(each, edit) for each in edits)]
    return Plan(tuple(sorted(set(edits))), tuple(blocked), imported)


def _groups(mentions: Sequence[Mention]) -> list[list[Mention]]:
    """The parts of apex.amp, which are right together only, and each other mention by itself."""
    of_amp = [mention for mention in mentions if _is_amp(mention)]
    return [each for each in (of_amp, *([mention] for mention in mentions if mention not in of_amp)) if each]


def _is_amp(mention: Mention) -> bool:
    return f"{mention.name}.".startswith("apex.amp.")


def _groups_for_ascend(mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Optimizers of one import together, for their import is renamed; apex.amp stays as it is."""
    others = [mention for mention in mentions if not _is_amp(mention)]
    groups: dict[int, list[Mention]] = {}
    for mention in others:
        groups.setdefault(id(mention.imported) if for_ascend.stays(mention) else id(mention), []).append(mention)
    return list(groups.values())


def _edits_of(group: list[Mention], context: Context) -> tuple[list[Edit], str]:
    """The edits of mentions that are converted together, or the reason why they are not."""
    try:
        if context.settings.apex == "ascend" and for_ascend.stays(group[0]):
            return list(for_ascend.optimizer_edits(group, context)), ""
        if _is_amp(group[0]):
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
    follows_names = False

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
        stays = context.settings.apex == "stand-in" or context.settings.target == "import"
        plan = None if stays else _plan(context)
        if plan is None or node is not plan.found.statements[0]:
            yield context.finding(self, node, _WHAT, severity=severity, basis=known.basis, library="apex")
            return
        title, message = _TO[context.settings.apex]
        needs = "torch" if any(edit.new.startswith("torch.") for edit in plan.edits) else None
        fix = context.fix(plan.edits, Applicability.UNSAFE, title, needs=needs)
        yield context.finding(
            self,
            node,
            f"{_WHAT}; {message}",
            fix=fix if plan.edits else None,
            severity=severity,
            basis=known.basis,
            library="apex",
            instead=known.replacement,
        )
        for mention, reason in plan.blocked:
            advice = apex_name(mention.name)
            message = f"{mention.name} is not converted: {reason}{f'; instead, {advice.instead}' if advice else ''}"
            basis = advice.basis if advice is not None else known.basis
            yield context.finding(self, mention.node, message, basis=basis, library="apex")


_WHAT = "NVIDIA's apex does not run on an NPU"
_TO = {
    "torch": (
        "use torch.amp and torch's classes",
        "torch.amp and torch's own classes do the same; code that must keep apex needs Apex for Ascend, or npuport run,"
        " which has a stand-in",
    ),
    "ascend": (
        "use Apex for Ascend",
        "Apex for Ascend does, which npuport apex build-plan says how to build; combine_ddp=True has it average"
        " gradients in one tensor, in the place of DistributedDataParallel",
    ),
}  # what is done, and the end of the message, by Settings.apex

RULES: tuple[type[Rule], ...] = (ApexImport,)
