"""Whether code already tells NPUs from other devices."""

from __future__ import annotations

import re

from npuport.source.text import STRING_OR_COMMENT

_NPU = re.compile(r"(?i)(?<![a-z])(?:torch_)?npu(?![a-z])")


def tells_npus_apart(text: str) -> bool:
    """Whether a name, or a text of one word such as "npu:0", speaks of NPUs. Comments and prose decide nothing."""
    named = [match.start() for match in _NPU.finditer(text)]
    if not named:
        return False
    spans = [(match.start(), match.end(), match.group()) for match in STRING_OR_COMMENT.finditer(text)]
    cursor = 0
    for start in named:
        while cursor < len(spans) and spans[cursor][1] <= start:
            cursor += 1
        inside = cursor < len(spans) and spans[cursor][0] <= start
        if not inside or not (spans[cursor][2].startswith("#") or re.search(r"\s", spans[cursor][2])):
            return True
    return False
