"""Runs the rules over one file: one walk serves them all."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from operator import or_

from npuport.findings import Finding, Location, Severity
from npuport.rules import registry
from npuport.rules.base import Context, Rule
from npuport.rules.entry_points import entry_point_finding, may_be_script
from npuport.rules.files import findings_in_other_file
from npuport.rules.mentions import has_words, mentions_in_python
from npuport.rules.notebooks import findings_in_notebook
from npuport.rules.npu_branches import beside_npu_branch
from npuport.rules.settings import Settings
from npuport.rules.suppressions import COMMENT, suppress
from npuport.source.files import FileKind, SourceFile
from npuport.source.module import Module
from npuport.source.project import Project
from npuport.source.text import LineIndex, line_index
from npuport.source.words import WordSearch

__all__ = ["Settings", "all_rules", "check_file", "that_may_ask_for_edits"]

all_rules = registry.all_rules


def check_file(source: SourceFile, project: Project, settings: Settings) -> list[Finding]:
    """Every finding in one file of ``project``, in order of position; suppressed ones are left out. Pure."""
    if source.kind is FileKind.NOTEBOOK:
        in_cells = findings_in_notebook(source, lambda code: check_file(code, project, settings))
        if in_cells is not None:
            return sorted(in_cells, key=_order)
    if source.kind is not FileKind.PYTHON:
        return sorted(findings_in_other_file(source, settings, project), key=_order)
    # Where a comment may silence a rule, it has to run, or the comment would seem unused.
    active = _active(settings if COMMENT not in source.text else replace(settings, edits_only=False))
    texts = active.search.places(source.text)
    hits = active.hits(line_index(source.text), texts)
    if not hits and not has_words(source.text) and not _is_bare_script(source, settings):
        return []
    try:
        module = _module(source, project)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [_unparsable(source, error)] if active.ask_for_edits(hits) or has_words(source.text) else []
    context = Context(module, project, settings)
    findings = _run(context, active, hits, texts.keys()) if hits else []
    if settings.target == "import":
        findings = [_left_to_import(finding) for finding in findings]
        entry = entry_point_finding(context, findings)
        findings += [entry] if entry is not None else []
    findings += mentions_in_python(context, findings)
    found = sorted(suppress(source, findings), key=_order)
    return that_may_ask_for_edits(found, settings) if settings.edits_only else found


def that_may_ask_for_edits(findings: Iterable[Finding], settings: Settings) -> list[Finding]:
    """``findings`` without those of rules that never ask for an edit."""
    without = _without_edits(settings.fuse)
    return [finding for finding in findings if finding.code not in without]


@cache
def _without_edits(fuse: bool) -> frozenset[str]:
    return frozenset(rule.code for rule in all_rules() if not _may_edit(rule, fuse))


def _may_edit(rule: type[Rule], fuse: bool) -> bool:
    return rule.edits or (fuse and rule.fuses)


def _module(source: SourceFile, project: Project) -> Module:
    """The parsed module, shared with the project where it is of this very text."""
    return project.take_up(source.path, source.text) or Module(source.path, source.text)


def _is_bare_script(source: SourceFile, settings: Settings) -> bool:
    """Whether a file without a CUDA word of its own may be a script that needs the import."""
    return settings.target == "import" and may_be_script(source.text)


def _order(finding: Finding) -> tuple[int, int, int, str]:
    return finding.location.cell or 0, finding.location.line, finding.location.column, finding.code


def _run(context: Context, active: _Active, hits: dict[int, int], texts: Set[str]) -> list[Finding]:
    module = context.module
    placed = module.placed_nodes(hits)
    more = _hits_through(_aliases((node for node, _ in placed), active), module, active, texts)
    if more:
        hits = {line: hits.get(line, 0) | more.get(line, 0) for line in hits.keys() | more.keys()}
        placed = module.placed_nodes(hits)
    wanted = _Wanted(hits)
    found: dict[tuple[object, ...], Finding] = {}
    seen: tuple[int, int] | None = None
    for node, statement in placed:
        if statement is not seen:  # the nodes of a statement come one after the other
            seen, interested = statement, active.by_node(wanted.by(statement))
        for rule in interested.get(type(node), ()):
            for finding in rule.check(node, context):
                if context.agnostic and not rule.agnostic and finding.fix is not None:
                    finding = replace(finding, fix=None)  # noqa: PLW2901 - it would be right on an NPU alone
                if context.has_npu_branches and _may_be_for_cuda(finding) and _is_for_cuda(node, context):
                    finding = _left_to_cuda(finding)  # noqa: PLW2901
                found.setdefault((finding.code, finding.location, finding.message), finding)
    return list(found.values())


def _may_be_for_cuda(finding: Finding) -> bool:
    """Whether a finding says that something is CUDA's, which a branch for CUDA may be."""
    return finding.code.startswith(("NP1", "NP2", "NP301", "NP302", "NP501", "NP502", "NP504"))


def _is_for_cuda(node: ast.AST, context: Context) -> bool:
    """Whether ``node`` is in a branch, or in a module, that has another one for NPUs beside it."""
    return context.has_counterpart or beside_npu_branch(node, context.module)


def _left_to_cuda(finding: Finding) -> Finding:
    message = f"{finding.evidence.get('symbol') or 'this'} is for CUDA, beside a branch for NPUs: it may stay"
    return replace(finding, severity=Severity.INFO, message=message, fix=None)


def _aliases(nodes: Iterable[ast.AST], active: _Active) -> dict[str, str]:
    """Names that these nodes bind to something with a marker's text, and what they stand for: ``tc`` for
    ``torch.cuda`` by ``import torch.cuda as tc`` or ``tc = torch.cuda``."""
    bound: list[tuple[str, str]] = []
    marked: dict[str, int] = {}  # the rules that what a variable was given so far is shown to
    for node in nodes:
        if isinstance(node, ast.Import):
            bound += [(alias.asname, alias.name) for alias in node.names if alias.asname]
        elif isinstance(node, ast.ImportFrom):
            origin = f"{'.' * node.level}{node.module or ''}"
            bound += [(alias.asname or alias.name, f"{origin}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Call):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            text = ast.unparse(node.value).replace("\n", " ") if names else ""
            rules = active.rules_marked(text)
            bound += [(name, text) for name in names if rules & ~marked.get(name, 0)]
            marked.update((name, marked.get(name, 0) | rules) for name in names)
    meanings: dict[str, str] = {}
    for name, text in dict.fromkeys(bound):
        if name not in ("torch", "*") and active.may_mark(text):
            meanings[name] = f"{meanings[name]} {text}" if name in meanings else text
    return meanings


def _hits_through(aliases: dict[str, str], module: Module, active: _Active, texts: Set[str]) -> dict[int, int]:
    """The lines that hold a match of a marker once each alias is spelled out, with the rules of those markers."""
    uses: dict[int, list[tuple[int, str]]] = {}
    for alias in aliases:
        for line, column in module.lines.places_naming(alias):
            uses.setdefault(line, []).append((column - 1, alias))
    if not uses:
        return {}
    numbers = sorted(uses)
    spelled = [_spelled_out(module.lines.line(number), uses[number], aliases) for number in numbers]
    found = active.hits_spelled_out(LineIndex("\n".join(spelled)), texts)
    return {numbers[line - 1]: rules for line, rules in found.items()}


def _spelled_out(line: str, uses: Iterable[tuple[int, str]], aliases: dict[str, str]) -> str:
    """A line with what its aliases, given with their columns from 0, stand for in their places."""
    for column, alias in sorted(uses, reverse=True):
        line = f"{line[:column]}{aliases[alias]}{line[column + len(alias) :]}"
    return line


class _Wanted:
    """The rules, as bits, that a statement is shown to: those with a marker on one of its lines."""

    def __init__(self, hits: dict[int, int]) -> None:
        self._lines = sorted(hits)
        self._rules = [hits[line] for line in self._lines]
        self._known: dict[tuple[int, int], int] = {}

    def by(self, statement: tuple[int, int]) -> int:
        """The rules for a statement from its first line to its last."""
        if statement not in self._known:
            first = bisect.bisect_left(self._lines, statement[0])
            last = bisect.bisect_right(self._lines, statement[1])
            self._known[statement] = reduce(or_, self._rules[first:last], 0)
        return self._known[statement]


@dataclass(frozen=True)
class _Marker:
    """A pattern sought on the lines that hold a plain text, in files that hold a text of each group in ``needs``."""

    written: str
    needs: tuple[tuple[str, ...], ...]
    rules: int  # bits

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when its text is first met: most never are, and hundreds take a tenth of a short run."""
        return re.compile(self.written, re.MULTILINE)

    def rests(self, present: Collection[str]) -> bool:
        return not all(any(text in present for text in group) for group in self.needs)


@dataclass(frozen=True)
class _Active:
    """The rules that apply to a port, arranged for speed: all texts are sought at once, then patterns on few lines."""

    rules: tuple[Rule, ...]  # in the order of their bits
    markers: dict[str, tuple[_Marker, ...]]  # by the plain text
    followed: dict[str, tuple[_Marker, ...]]  # those whose rules care for names that stand for what they match
    search: WordSearch
    editing: int  # the bits of the rules that may ask for an edit
    _by_node: dict[int, dict[type[ast.AST], tuple[Rule, ...]]] = field(default_factory=dict)

    def hits(self, lines: LineIndex, places: Mapping[str, list[int]]) -> dict[int, int]:
        """The lines that hold a match of a marker, with its rules, by the ``places`` of all texts that are sought."""
        return _lines_marked(lines, places, self.markers, places)

    def hits_spelled_out(self, lines: LineIndex, in_file: Set[str]) -> dict[int, int]:
        """The same for lines that are spelled out, and the rules that follow names; ``in_file`` are the texts of it."""
        places = self.search.places(lines.text)
        return _lines_marked(lines, places, self.followed, places.keys() | in_file)

    def by_node(self, wanted: int) -> dict[type[ast.AST], tuple[Rule, ...]]:
        """The rules among ``wanted``, as bits, by the types of nodes that they are shown."""
        known = self._by_node.get(wanted)
        if known is None:
            known = self._by_node[wanted] = {}
            for place, rule in enumerate(self.rules):
                for kind in rule.nodes if wanted >> place & 1 else ():
                    known[kind] = (*known.get(kind, ()), rule)
        return known

    def may_mark(self, text: str) -> bool:
        """Whether a line with this piece of code may hold a match of a marker whose rules follow names."""
        return any(word in self.followed for word in self.search.places(text))

    def rules_marked(self, text: str) -> int:
        """The rules, as bits, of the markers that this piece of code itself holds a match of, in any file."""
        markers = (marker for word in self.search.places(text) for marker in self.followed.get(word, ()))
        return reduce(or_, (one.rules for one in markers if not one.needs and one.pattern.search(text)), 0)

    def ask_for_edits(self, hits: dict[int, int]) -> bool:
        """Whether a rule that may ask for an edit has a marker among ``hits``."""
        return any(rules & self.editing for rules in hits.values())


def _lines_marked(
    lines: LineIndex,
    places: Mapping[str, list[int]],
    markers: Mapping[str, tuple[_Marker, ...]],
    present: Collection[str],
) -> dict[int, int]:
    found: dict[int, int] = {}
    for word in markers.keys() & places.keys():
        for marker in markers[word]:
            if not marker.rests(present):
                for line in lines.lines_at(places[word], marker.pattern):
                    found[line] = found.get(line, 0) | marker.rules
    return found


@cache
def _active(settings: Settings) -> _Active:
    rules = [
        rule
        for rule in all_rules()
        if rule.applies(settings) and (_may_edit(rule, settings.fuse) or not settings.edits_only)
    ]
    markers, followed = (
        _markers(rules, range(len(rules))),
        _markers(rules, [n for n, r in enumerate(rules) if r.follows_names]),
    )
    needed = {text for rule in rules for group in rule.needs for text in group}
    editing = sum(1 << place for place, rule in enumerate(rules) if _may_edit(rule, settings.fuse))
    return _Active(tuple(rule() for rule in rules), markers, followed, WordSearch({*markers, *needed}), editing)


def _markers(rules: Sequence[type[Rule]], places: Iterable[int]) -> dict[str, tuple[_Marker, ...]]:
    """The markers of the rules at ``places``, by their plain texts."""
    bits: dict[tuple[str, str, tuple[tuple[str, ...], ...]], int] = {}
    for place in places:
        rule = rules[place]
        for marker in rule.markers:
            word, pattern = (_plain_word(rule, marker), marker) if isinstance(marker, str) else marker
            key = word, pattern, rule.needs
            bits[key] = bits.get(key, 0) | 1 << place
    markers: dict[str, tuple[_Marker, ...]] = {}
    for (word, pattern, needs), of_rules in bits.items():
        markers[word] = (*markers.get(word, ()), _Marker(pattern, needs, of_rules))
    return markers


def _plain_word(rule: type[Rule], marker: str) -> str:
    """The longest text that every match of a marker contains.

    Raises:
        ValueError: when there is none; each file would have to be searched with a regular expression.
    """
    plain = re.sub(r"\[[^\]]*\]|\(\?[^)]*\)|\\[bBwWsSdD]|.[*?]|[+^$(){}]", "\n", marker.replace(r"\.", "\0"))
    runs = [run.replace("\0", ".") for run in re.findall(r"[\w \-\0]{2,}", plain)]
    if not runs or "|" in marker:
        raise ValueError(f"{rule.code}: marker {marker!r} must hold one plain text; write alternatives as markers")
    return str(max(runs, key=len))


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
