"""What makes a finding the same one after the lines around it have moved."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from npuport.findings import Finding
from npuport.report.source_lines import source_line
from npuport.source.files import SourceFile


def fingerprints(findings: Sequence[Finding], sources: Mapping[str, SourceFile]) -> list[str]:
    """32 hexadecimal digits for each finding, from its rule, its file and its source line; equal ones are counted.

    Neither the line's number nor the wording of the message matters, so that edits elsewhere and new releases keep it.
    """
    seen: Counter[str] = Counter()
    found = []
    for finding in findings:
        source = sources.get(finding.location.path)
        line = source_line(finding, source).strip() if source else ""
        text = "\0".join((finding.code, finding.location.path, line))
        seen[text] += 1
        digest = hashlib.sha256(f"{text}\0{seen[text]}".encode("utf-8", "surrogateescape"))
        found.append(digest.hexdigest()[:32])
    return found
