"""A simulated run as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

from npuport.report import run_words
from npuport.report.language import counted, language, translate
from npuport.report.migration_page import embedded
from npuport.report.migration_summary import effect_words
from npuport.report.pages import template
from npuport.report.run_words import Document


def _statuses() -> dict[str, str]:
    """Words for the status of an operator on the chip, worst first."""
    return {
        "refused": translate("refused"),
        "cpu": translate("CPU fallback"),
        "partly_cpu": translate("partly CPU"),
        "untested": translate("untested dtype"),
        "unknown": translate("unknown"),
        "composed": translate("made of others"),
        "native": translate("native"),
    }


def _causes() -> dict[str, str]:
    """Why the host waits."""
    return {
        "value": translate("reads a value"),
        "shape": translate("a shape depends on values"),
        "copy": translate("copies to the host"),
        "wait": translate("waits explicitly"),
    }


def _directions() -> dict[str, str]:
    return {
        "host to device": translate("host to device"),
        "device to host": translate("device to host"),
        "device to device": translate("device to device"),
    }


def run_page(document: Document) -> str:
    """The page, in the user's language. It carries the whole document as JSON, too."""
    return template("run.html.j2").render(
        document=document,
        migration=document.get("migration"),
        effects=effect_words(),
        embedded=embedded(document),
        words=run_words,
        statuses=_statuses(),
        causes=_causes(),
        directions=_directions(),
        t=translate,
        counted=counted,
        language=language(),
    )
