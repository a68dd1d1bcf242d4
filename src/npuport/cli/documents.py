"""The rules' documents: in the installed package, or in tests/rules of a checkout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from npuport.report.formats.sarif import RuleHelp

_FILE = re.compile(r"(?P<code>NP\d{3})-(?P<name>[a-z0-9-]+)\.md")


@dataclass(frozen=True, slots=True)
class RuleDocument:
    """One rule's page."""

    code: str
    name: str
    path: Path

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


def rule_documents() -> list[RuleDocument]:
    """Every document, by code."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1] / "tests" / "rules"
    folder = checkout if checkout.is_dir() else package / "rules" / "documents"
    found = ((_FILE.fullmatch(path.name), path) for path in folder.glob("NP*.md"))
    return sorted(
        (RuleDocument(match["code"], match["name"], path) for match, path in found if match), key=lambda one: one.code
    )


def rule_help() -> dict[str, RuleHelp]:
    """What the documents say, by code."""
    return {document.code: _help(document) for document in rule_documents()}


def _help(document: RuleDocument) -> RuleHelp:
    text = document.text()
    paragraphs = [part.strip() for part in text.split("\n\n")]
    summary = " ".join(paragraphs[1].split()) if len(paragraphs) > 1 else document.name
    # What comes after is the rule's tests.
    return RuleHelp(document.name, summary, text.partition("\n## Cases")[0].strip() + "\n")
