"""What no other rule explains: CUDA words in comments, texts, names of the project's own, and files other than Python.

Nothing stays silent: after the rules have spoken, each CUDA word left over becomes a finding here that says what it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from npuport.findings import Finding, Location, Severity
from npuport.rules.base import Context
from npuport.source.scopes import BindingKind
from npuport.source.text import lowered, strings_and_comments
from npuport.source.words import WordSearch

# Words of the CUDA world in any spelling: inside identifiers, strings, comments. Kept apart from the list of the
# residue check on purpose; a test sees to it that this one is no smaller.
_WORDS = (
    "cuda", "nccl", "cudnn", "cublas", "cufft", "curand", "cusolver", "cusparse", "cutlass", "cupti", "nvidia", "nvtx",
    "nvcc", "nvrtc", "nvml", "nvlink", "nvjpeg", "nvshmem", "cupy", "tensorrt", "nsys", "nsight", "ptxas",
)  # fmt: skip
_SEARCH = WordSearch(_WORDS)


def has_words(text: str) -> bool:
    """Whether a text holds a word of the CUDA world."""
    return bool(_SEARCH.spans(text.lower()))


def find_words(text: str) -> list[tuple[int, int]]:
    """Start and end of every word of the CUDA world, in order."""
    return sorted((start, end) for _, start, end in _SEARCH.spans(lowered(text)))


def mentions_in_python(context: Context, findings: Iterable[Finding]) -> list[Finding]:
    """One finding a line for each kind of CUDA word that ``findings`` leave unexplained."""
    text = context.module.text
    index = context.module.lines
    covered = _Covered(findings)
    words = [(*index.position(start), start, end) for start, end in find_words(text)]
    words = [word for word in words if not covered.has(word[0], word[1])]
    if not words:
        return []
    spans = [(*match.span(), match.lastgroup) for match in strings_and_comments(text, words[-1][3])]
    made: dict[tuple[int, str], Finding] = {}
    cursor = 0
    for line, column, start, end in words:
        while cursor < len(spans) and spans[cursor][1] <= start:
            cursor += 1
        inside = spans[cursor][2] if cursor < len(spans) and spans[cursor][0] <= start else None
        kind = inside or "name"
        if (line, kind) not in made:
            made[line, kind] = _mention(context, line, column, whole_word(text, start, end), kind)
    return list(made.values())


def whole_word(text: str, start: int, end: int) -> str:
    """The identifier around a word."""
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_."):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] in "_."):
        end += 1
    return text[start:end].strip(".")


def _mention(context: Context, line: int, column: int, word: str, kind: str) -> Finding:
    messages = {
        "comment": "a comment speaks of CUDA; it runs nothing",
        "string": "a text speaks of CUDA; nothing here uses it as a device or a name",
        "name": _about_name(context, word),
    }
    code, name = ("NP902", "cuda-in-own-name") if kind == "name" else ("NP901", "cuda-in-text")
    return Finding(
        code=code,
        name=name,
        severity=Severity.INFO,
        location=Location(context.module.path, line, column, line, column + len(word)),
        message=messages[kind],
        evidence={"word": word},
    )


def _about_name(context: Context, word: str) -> str:
    first = word.partition(".")[0]
    for binding in context.module.scope.bindings.get(first, []):
        if binding.kind is BindingKind.IMPORT and binding.target.startswith(("torch.", "torch_npu.")):
            line = getattr(binding.node, "lineno", 1)
            return f"{first} is {binding.target}, which line {line} imports: what happens there happens here"
    return f"{word} is a name that no rule knows: if it is the project's own, it may keep its name"


class _Covered:
    """The places that findings explain: their ranges, and whole lines for identical words beside them."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.ranges: list[Location] = [finding.location for finding in findings]
        self.lines: dict[int, list[Location]] = {}
        for place in self.ranges:
            for line in range(place.line, place.end_line + 1):
                self.lines.setdefault(line, []).append(place)

    def has(self, line: int, column: int) -> bool:
        for place in self.lines.get(line, ()):
            after = (line, column) >= (place.line, place.column)
            before = (line, column) < (place.end_line, place.end_column)
            if after and before:
                return True
        return False
