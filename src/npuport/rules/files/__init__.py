"""Files other than Python: what their settings, commands and requirements mean for a port, line by line.

Nothing stays silent: each line with a CUDA word that no rule explains becomes a finding that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from npuport.findings import Finding, Location, Severity
from npuport.rules.files.base import FileRule, OtherFile
from npuport.rules.files.extensions import CudaSource
from npuport.rules.files.requirements import requirement_findings
from npuport.rules.files.scripts import (
    CudaImage,
    CudaVariableInScript,
    CudaWheel,
    NvidiaToolInScript,
    OldLauncherInScript,
)
from npuport.rules.files.values import (
    BFloat16InSettings,
    CudaChoiceInSettings,
    CudaDeviceInSettings,
    NcclBackendInSettings,
)
from npuport.rules.mentions import find_words, whole_word
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project

FILE_RULES: tuple[type[FileRule], ...] = (
    CudaDeviceInSettings,
    NcclBackendInSettings,
    CudaChoiceInSettings,
    BFloat16InSettings,
    CudaVariableInScript,
    NvidiaToolInScript,
    CudaImage,
    CudaWheel,
    OldLauncherInScript,
    CudaSource,
)
_ENCODED = 200  # characters; longer words are pictures and the like in base64


def findings_in_other_file(source: SourceFile, settings: Settings, project: Project | None = None) -> Iterator[Finding]:
    """Every finding in a file that is not Python."""
    file = OtherFile(source, settings, project)
    found = [*requirement_findings(file)]
    for rule in FILE_RULES:
        if source.kind in rule.kinds:
            found += rule().check(file)
    yield from found
    yield from _left_over(file, found)


def _left_over(file: OtherFile, found: Iterable[Finding]) -> Iterator[Finding]:
    """One finding for each further line that holds a CUDA word."""
    explained = {line for finding in found for line in range(finding.location.line, finding.location.end_line + 1)}
    for start, end in find_words(file.text):
        line, column = file.index.position(start)
        word = whole_word(file.text, start, end)
        if line in explained or len(word) >= _ENCODED:
            continue
        explained.add(line)
        yield Finding(
            code="NP903",
            name="cuda-outside-python",
            severity=Severity.INFO if file.is_ci or _only_says(file, start) else Severity.WARNING,
            location=Location(file.source.path, line, column, line, column + len(word)),
            message=f"{word}: no rule knows what this line does with it; read it",
            evidence={"word": word, "kind": file.source.kind.value},
        )


def _only_says(file: OtherFile, place: int) -> bool:
    """Whether a word is read by people alone: in a document, a comment, an address, or a sentence."""
    if file.source.kind is FileKind.TEXT:
        return True
    line = file.index.position(place)[0]
    begin = file.index.starts[line - 1]
    text = file.text[begin:].partition("\n")[0]
    before = text[: place - begin]
    if re.search(r"(?:^|\s)(?:#|//)", before) or re.search(r"https?://\S*$", before):
        return True
    sentence = re.match(r"\s*(?:- )?[\"']?[\w -]+[\"']?\s*[:=]\s*(.*)", text)
    return sentence is not None and file.source.kind in _SETTINGS and _is_prose(sentence[1])


_SETTINGS = (FileKind.YAML, FileKind.TOML, FileKind.INI, FileKind.JSON)


def _is_prose(value: str) -> bool:
    """Whether a value is words in a row: no path, no call, no assignment."""
    words = value.strip("\"', ").split()
    return len(words) >= 3 and not re.search(r"[$=/\\{}\[\]|&;]", value)
