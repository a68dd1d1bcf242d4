"""MkDocs hooks: the rules' own documents (tests/rules/*.md), which are also their tests, become pages."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RULE_DOCUMENTS = ROOT / "tests" / "rules"
INDEX_MARK = "<!-- every rule, from tests/rules -->"
ROLES = {"before": "Before", "after": "After", "report": "Reported", "noop": "Left alone", "with": "Beside it"}
FENCE = re.compile(r"^```(?P<language>[a-z+]+)(?P<role> .+)?$", re.MULTILINE)
HEADING = re.compile(r"\A# (?P<code>NP\d{3}) (?P<name>[a-z0-9-]+)$", re.MULTILINE)


def role_title(role: str) -> str:
    """What a reader sees above a block; the roles and options are those of tests/rules/documents.py."""
    kind, *words = shlex.split(role)
    options = dict(word.partition("=")[::2] for word in words)
    parts = [ROLES[kind]]
    if "file" in options:
        parts.append(options["file"])
    if "target" in options:
        parts.append(f"target {options['target']}")
    if "torch" in options:
        parts.append(f"torch {options['torch']}")
    if options.get("unsafe") == "true":
        parts.append("with unsafe fixes")
    return ", ".join(parts)


def page_from(document: str) -> str:
    """The Markdown of a documentation page: the same text, with titled code blocks."""

    def titled(fence: re.Match[str]) -> str:
        role = (fence["role"] or "").strip()
        return f'``` {fence["language"]} title="{role_title(role)}"' if role else fence[0]

    return FENCE.sub(titled, document)


def first_sentence(document: str) -> str:
    """The sentence after the heading, which says what the rule finds."""
    body = HEADING.sub("", document, count=1).strip()
    paragraph = " ".join(body.split("\n\n", 1)[0].split())
    return re.split(r"(?<=[.!?]) ", paragraph, maxsplit=1)[0]


def documents() -> dict[str, str]:
    """File name without suffix -> text, sorted by code."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(RULE_DOCUMENTS.glob("NP*.md"))}


def index(found: dict[str, str]) -> str:
    """A table of every rule that links to its page."""
    rows = ["| Rule | Name | What it finds |", "| --- | --- | --- |"]
    for stem, document in found.items():
        heading = HEADING.search(document)
        if heading is None:
            raise ValueError(f"{RULE_DOCUMENTS / stem}.md must begin with a heading such as `# NP101 cuda-device`")
        summary = first_sentence(document).replace("|", r"\|")
        rows.append(f"| [{heading['code']}](rules/{stem}.md) | `{heading['name']}` | {summary} |")
    return "\n".join(rows)


def on_files(files: Any, config: Any) -> Any:
    """Adds one generated page for each rule."""
    from mkdocs.structure.files import File

    for stem, document in documents().items():
        files.append(File.generated(config, f"rules/{stem}.md", content=page_from(document)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills the table on the page that asks for it."""
    return markdown.replace(INDEX_MARK, index(documents())) if INDEX_MARK in markdown else markdown
