"""Findings that are known and accepted, so that only new ones count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npuport.errors import UserError
from npuport.findings import Finding

SCHEMA = "npuport-baseline/1"


@dataclass(frozen=True)
class Compared:
    """What a baseline leaves: the new findings, how many it hides, and how many of its own are gone."""

    new: tuple[Finding, ...]
    hidden: int
    gone: int


def baseline_json(findings: Sequence[Finding], marks: Sequence[str]) -> bytes:
    """The baseline of these findings; each with its place and rule, for those who read it in a review."""
    entries = {mark: f"{finding.location.path} {finding.code}" for finding, mark in zip(findings, marks, strict=True)}
    return (json.dumps({"schema": SCHEMA, "findings": entries}, indent=1, ensure_ascii=True) + "\n").encode()


def compare(findings: Sequence[Finding], marks: Sequence[str], path: Path) -> Compared:
    """``findings`` without those in the baseline at ``path``.

    Raises:
        UserError: the file cannot be read, or is no baseline.
    """
    known = _read(path)
    new = tuple(finding for finding, mark in zip(findings, marks, strict=True) if mark not in known)
    return Compared(new, len(findings) - len(new), len(known.difference(marks)))


def _read(path: Path) -> frozenset[str]:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError("{path} does not exist. Make it with --write-baseline {path}.", path=path) from None
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror) from error
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UserError("{path} is no baseline of npuport. Make one with --write-baseline {path}.", path=path)
    return frozenset(document.get("findings", ()))
