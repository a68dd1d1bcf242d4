"""Reads the rules' documents: each fenced block with a role is a test of its rule.

    ```python before [file=NAME] [torch=2.4] [target=import] [chip=Ascend910A] [apex=ascend] [unsafe=true]
    ```python after [file=NAME]     what conversion makes of the block before it
    ```python report [file=NAME] [severity=warning] [says="words of the message"]
    ```python noop [file=NAME]      no finding of the rule, not a byte changed
    ```python with file=NAME        another file of the same project, for the block that follows

Several ``before`` blocks in a row, each with a file of its own, are one project.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROLES = ("before", "after", "report", "noop", "with")
OPTIONS = ("file", "torch", "target", "chip", "apex", "unsafe", "severity", "says")
DEFAULT_FILE = "case.py"

_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<language>[a-z+]+) (?P<role>.+)\n(?P<text>(?:.*\n)*?)(?P=fence)$", re.MULTILINE
)
_TITLE = re.compile(r"\A# (?P<code>NP\d{3}) (?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)\n")


@dataclass
class Case:
    """One test: the files of a small project, what is expected of them, and where the document says so."""

    kind: str  # "before", "report" or "noop"
    line: int
    options: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """A rule's document. ``code`` and ``name`` are those of its title."""

    path: Path
    code: str
    name: str
    cases: tuple[Case, ...]


class DocumentError(ValueError):
    """The document is not written as this module's text says."""


def read(path: Path) -> Document:
    """The document at ``path``.

    Raises:
        DocumentError: naming the line.
    """
    text = path.read_text(encoding="utf-8")
    title = _TITLE.match(text)
    if title is None:
        raise DocumentError(f"{path.name}:1: must begin with a title such as `# NP101 cuda-device-string`")
    return Document(path, title["code"], title["name"], tuple(_cases(path, text)))


def _cases(path: Path, text: str) -> Iterator[Case]:
    beside: dict[str, str] = {}
    case: Case | None = None
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 1
        role, options = _role(fence["role"], f"{path.name}:{line}")
        file = options.pop("file", DEFAULT_FILE)
        if role == "with":
            beside[file] = fence["text"]
        elif role == "after":
            if case is None or case.kind != "before" or file not in case.files or file in case.after:
                raise DocumentError(f"{path.name}:{line}: no `before` block for this `after`")
            case.after[file] = fence["text"]
        elif role == "before" and case is not None and case.kind == "before" and not case.after:
            if file in case.files:
                raise DocumentError(f"{path.name}:{line}: the `before` block above has no `after`")
            case.files[file] = fence["text"]
            case.options |= options
        else:
            if case is not None:
                yield _complete(path, case)
            case = Case(role, line, options, {file: fence["text"]}, beside)
            beside = {}
    if case is not None:
        yield _complete(path, case)


def _complete(path: Path, case: Case) -> Case:
    if case.kind == "before" and not case.after:
        raise DocumentError(f"{path.name}:{case.line}: a `before` block without `after`")
    return case


def _role(text: str, where: str) -> tuple[str, dict[str, str]]:
    role, *rest = shlex.split(text)
    if role not in ROLES:
        raise DocumentError(f"{where}: unknown role {role!r}; choose from {', '.join(ROLES)}")
    options = dict(part.partition("=")[::2] for part in rest)
    unknown = options.keys() - set(OPTIONS)
    if unknown:
        raise DocumentError(f"{where}: unknown option {', '.join(sorted(unknown))}; choose from {', '.join(OPTIONS)}")
    return role, options
