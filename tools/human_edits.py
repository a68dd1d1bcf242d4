"""What a commit changed about devices in the files that were there before, statement by statement."""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

DEVICE = re.compile(r"cuda|npu|nccl|hccl|cann\b|cudnn|device|ascend|\bgpus?\b|nvidia|nvtx|backend", re.IGNORECASE)
"""What makes a change one of the device. A change of a line with none of these words, before and after, is none."""

OUTSIDE = re.compile(r"(^|/)(tests?|testing|docs?|\.github)/|(^|/)(test_|conftest)[^/]*$|_test\.py$|\.(md|rst|ipynb)$")
"""Files that are not the port: tests, documentation, and what runs them."""

_SHORT = 12  # lines of a compound statement that is looked at as one

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PROBE = re.compile(
    r"^_?(is|has|check|get|require)\w*(npu|ascend|device)\w*$|^_?(torch_)?npu\w*(available|version)$", re.I
)


@dataclasses.dataclass(frozen=True, order=True)
class Span:
    """Lines of a file, from 1, both included."""

    first: int
    last: int

    def overlaps(self, other: Span) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclasses.dataclass(frozen=True)
class HumanEdit:
    """One statement changed, or one block put in (``inserted``), by a commit.

    ``place``: the statement before the commit; for a block the line that it comes after. ``around``: lines in which a
    finding speaks of this edit: the statement itself; for a block its neighbours, and the ``if`` that it extends.
    ``plumbing``: only names, defines or imports the project's own test for an NPU, or imports torch_npu.
    """

    path: str
    place: Span
    around: tuple[Span, ...]
    function: Span
    inserted: bool
    old: str
    new: str
    plumbing: bool


@dataclasses.dataclass(frozen=True)
class _Hunk:
    start: int
    removed: tuple[str, ...]
    added: tuple[str, ...]


def git(repository: Path, *arguments: str) -> str:
    """The output of a git command on a bare repository.

    Raises:
        SystemExit: git fails; its own words are shown.
    """
    done = subprocess.run(
        ["git", f"--git-dir={repository}", *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)} in {repository}: {done.stderr.strip()}")
    return done.stdout


def human_edits(repository: Path, commit: str, path: str) -> Iterator[HumanEdit]:
    """The edits of one Python file that concern devices."""
    text = git(repository, "show", f"{commit}^:{path}")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    layout = _Layout(tree, text)
    diff = git(repository, "diff", "-U0", "-w", "--no-renames", f"{commit}^", commit, "--", path)
    for hunk in _hunks(diff):
        yield from _edits_of(hunk, path, layout)


def modified(repository: Path, commit: str) -> list[str]:
    """Python files that were there before the commit and still are, tests and documentation left out."""
    lines = git(repository, "diff", "--name-status", "--no-renames", f"{commit}^", commit).splitlines()
    paths = [line.split("\t")[1] for line in lines if line.startswith("M\t")]
    return [path for path in paths if path.endswith(".py") and not OUTSIDE.search(path)]


def _hunks(diff: str) -> Iterator[_Hunk]:
    start, removed, added = 0, list[str](), list[str]()
    for line in diff.splitlines():
        header = _HUNK.match(line)
        if header:
            if removed or added:
                yield _Hunk(start, tuple(removed), tuple(added))
            start, removed, added = int(header[1]), [], []
        elif line.startswith("-") and not line.startswith("---"):
            removed.append(line[1:])
        elif line.startswith("+") and not line.startswith("+++"):
            added.append(line[1:])
    if removed or added:
        yield _Hunk(start, tuple(removed), tuple(added))


class _Layout:
    """The statements of a module by line. A compound statement is its header; its body is statements of their own."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self.lines = text.splitlines()
        self.statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        self.headers = sorted({_header(node) for node in self.statements if not _is_docstring(node)})
        self.functions = [n for n in self.statements if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]

    def statement(self, line: int) -> Span | None:
        found = [span for span in self.headers if span.first <= line <= span.last]
        return min(found, key=lambda span: span.last - span.first) if found else None

    def function(self, line: int) -> Span:
        """The innermost function around a line; the whole file outside functions."""
        spans = [_whole(node) for node in self.functions if node.lineno <= line <= (node.end_lineno or 0)]
        return max(spans, key=lambda span: span.first) if spans else Span(0, len(self.lines) + 1)

    def neighbours(self, after: int, indent: int) -> tuple[Span, ...]:
        """Statements beside a block of this indentation that comes after a line, and those it would extend."""
        level = [
            node
            for node in self.statements
            if node.col_offset == indent and not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        ]
        around = [_whole(node) for node in level if node.lineno <= after < (node.end_lineno or 0)]
        before = [_near(node) for node in level if (node.end_lineno or 0) <= after]
        behind = [_near(node) for node in level if node.lineno > after]
        nearest = [max(before, key=lambda span: span.last)] if before else []
        nearest += [min(behind, key=lambda span: span.first)] if behind else []
        return tuple(around + [span for span in nearest if self.function(span.first) == self.function(after)])


def _edits_of(hunk: _Hunk, path: str, layout: _Layout) -> Iterator[HumanEdit]:
    old, new = _code(hunk.removed), _code(hunk.added)
    if not DEVICE.search(old + new) or old.split() == new.split():
        return
    if not old.strip():
        first = next((line for line in hunk.added if line.strip()), "")
        after = hunk.start + max(0, len(hunk.removed) - 1)
        inside = layout.statement(after)
        open_call = inside is not None and inside.first <= after < inside.last
        around = (inside,) if open_call and inside else layout.neighbours(after, len(first) - len(first.lstrip()))
        place = inside if open_call and inside else Span(after, after)
        plumbing = _is_plumbing("", new, layout, place)
        yield HumanEdit(path, place, around, layout.function(after), not open_call, "", new, plumbing)
        return
    touched: dict[Span, list[str]] = {}
    for offset, line in enumerate(hunk.removed):
        span = layout.statement(hunk.start + offset)
        if span is not None:
            touched.setdefault(span, []).append(line)
    speaking = [span for span, lines in touched.items() if DEVICE.search(_code(lines))] or list(touched)[:1]
    for span in speaking:
        whole = "\n".join(layout.lines[span.first - 1 : span.last])
        plumbing = _is_plumbing(whole, new, layout, span)
        text = _code(touched[span])
        yield HumanEdit(path, span, (span,), layout.function(span.first), False, text, new, plumbing)


def _is_plumbing(old: str, new: str, layout: _Layout, place: Span) -> bool:
    """Whether an edit only names what the project itself asks for an NPU by: imports, exports, definitions of it."""
    if (old and _only_imports(old)) or (
        not old and place.first != place.last and _only_imports(_joined(layout, place))
    ):
        return True
    try:
        body = ast.parse(_dedented(new)).body
    except SyntaxError:
        return bool(re.fullmatch(r"(\s*[\"']?\w*(npu|ascend)\w*[\"']?,?\s*)+", new, re.IGNORECASE))
    return not old and bool(body) and all(_is_probe(statement) for statement in body)


def _is_probe(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass():
            return True
        case ast.FunctionDef(name=name):
            return bool(_PROBE.fullmatch(name))
        case ast.Assign(targets=[ast.Name(id=name)]):
            return bool(_PROBE.fullmatch(name))
        case ast.If(body=body, orelse=rest):
            return all(_is_probe(one) for one in body + rest)
        case ast.Try(body=body, handlers=handlers):
            return all(_is_probe(one) for one in body) and any(isinstance(n, ast.Import) for n in body + handlers)
        case ast.Expr(value=ast.Constant()):
            return True
    return False


def _only_imports(text: str) -> bool:
    try:
        body = ast.parse(_dedented(text)).body
    except SyntaxError:
        return False
    return bool(body) and all(isinstance(one, ast.Import | ast.ImportFrom) for one in body)


def _joined(layout: _Layout, span: Span) -> str:
    return "\n".join(layout.lines[span.first - 1 : span.last])


def _dedented(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    return "\n".join(line[indent:] if not line[:indent].strip() else line for line in lines)


def _code(lines: Sequence[str]) -> str:
    """The lines without comments."""
    text = "\n".join(lines)
    kept = list(lines)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                kept[row - 1] = kept[row - 1][:column].rstrip()
    except (tokenize.TokenError, IndentationError):
        kept = [re.sub(r"(^|\s)#.*", "", line) for line in lines]
    return "\n".join(line for line in kept if line.strip())


def _header(node: ast.stmt) -> Span:
    body = getattr(node, "body", None)
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return Span(first, max(node.lineno, body[0].lineno - 1))
    return Span(first, node.end_lineno or node.lineno)


def _whole(node: ast.stmt) -> Span:
    return Span(node.lineno, node.end_lineno or node.lineno)


def _near(node: ast.stmt) -> Span:
    """A statement as the neighbour of another: what is far inside a long one is no neighbour."""
    whole = _whole(node)
    return whole if whole.last - whole.first < _SHORT else _header(node)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
