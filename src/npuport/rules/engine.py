"""Runs the rules over one file: one walk serves them all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from npuport.findings import Finding, Location, Severity
from npuport.rules import registry
from npuport.rules.base import Context, Rule
from npuport.rules.entry_points import entry_point_finding, may_be_script
from npuport.rules.mentions import WORDS, mentions_in_other_file, mentions_in_python
from npuport.rules.settings import Settings
from npuport.rules.suppressions import suppress
from npuport.source.files import FileKind, SourceFile
from npuport.source.module import Module
from npuport.source.project import Project

__all__ = ["Settings", "all_rules", "check_file"]

all_rules = registry.all_rules


def check_file(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:
    """Every finding in one file of ``project``, in order of position; suppressed ones are left out. Pure."""
    if source.kind is not FileKind.PYTHON:
        return sorted(mentions_in_other_file(source), key=_order)
    if not (
        any(word in source.text for word in _gate()) or WORDS.search(source.text) or _is_bare_script(source, settings)
    ):
        return []
    try:
        module = Module(source.path, source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [_unparsable(source, error)]
    context = Context(module, project, settings)
    findings = _run(context)
    if settings.target == "import":
        findings = [_left_to_import(finding) for finding in findings]
        entry = entry_point_finding(context, findings)
        findings += [entry] if entry is not None else []
    findings += mentions_in_python(context, findings)
    return sorted(suppress(source, findings), key=_order)


def _is_bare_script(source: SourceFile, settings: Settings) -> bool:
    """Whether a file without a CUDA word of its own may be a script that needs the import."""
    return settings.target == "import" and may_be_script(source.text)


def _order(finding: Finding) -> tuple[int, int, str]:
    return finding.location.line, finding.location.column, finding.code


def _run(context: Context) -> list[Finding]:
    module = context.module
    nodes = module.nodes(_marker())
    aliases = _aliases(nodes)
    if aliases:
        names = "|".join(sorted(re.escape(name) for name in aliases))
        nodes = module.nodes(re.compile(rf"{_marker().pattern}|(?<!\w)(?:{names})(?!\w)"))
    interested = _interested()
    found: dict[tuple[object, ...], Finding] = {}
    for node in nodes:
        for rule in interested.get(type(node), ()):
            for finding in rule.check(node, context):
                found.setdefault((finding.code, finding.location, finding.message), finding)
    return list(found.values())


def _aliases(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that the marked imports and plain assignments bind, but that show no marker themselves."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return {name for name in names - {"torch", "os", "np", "*"} if not _marker().search(name)}


@cache
def _gate() -> tuple[str, ...]:
    """Plain words, one of which every file with a finding contains; looking for them costs next to nothing."""
    return tuple(dict.fromkeys(word for rule in all_rules() for word in _gate_words(rule)))


def _gate_words(rule: type[Rule]) -> list[str]:
    """The longest run of letters of each marker."""
    words = []
    for marker in rule.markers:
        runs = re.findall(r"[A-Za-z_]{2,}", re.sub(r"\\[a-zA-Z]|\(\?\w+\)|\[[^\]]*\]", " ", marker))
        if not runs:
            raise ValueError(f"{rule.code}: marker {marker!r} holds no plain word to look for first")
        words.append(max(runs, key=len))
    return words


@cache
def _marker() -> re.Pattern[str]:
    return re.compile("|".join(dict.fromkeys(f"(?:{marker})" for rule in all_rules() for marker in rule.markers)))


@cache
def _interested() -> dict[type[ast.AST], tuple[Rule, ...]]:
    table: dict[type[ast.AST], tuple[Rule, ...]] = {}
    for rule in all_rules():
        for kind in rule.nodes:
            table[kind] = (*table.get(kind, ()), rule())
    return table


def _unparsable(source: SourceFile, error: BaseException) -> Finding:
    line = getattr(error, "lineno", None) or 1
    column = getattr(error, "offset", None) or 1
    reason = getattr(error, "msg", None) or str(error) or type(error).__name__
    return Finding(
        code="NP900",
        name="unparsable-python",
        severity=Severity.ERROR,
        location=Location(source.path, line, column, line, column),
        message=f"this Python cannot parse the file ({reason}), so it is left as it is",
    )


def _left_to_import(finding: Finding) -> Finding:
    """With target "import" the code changes when it is imported; on disk nothing needs to."""
    if finding.fix is None:
        return finding
    return replace(finding, fix=None, severity=Severity.INFO, message=f"{finding.message}; changed when imported")
