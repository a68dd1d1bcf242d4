"""Versions as Ascend writes them: "8.3.RC1", "25.0.rc1.1", "24.1.0"."""

from __future__ import annotations

import re

_NOT_FINAL = -1  # a release candidate comes before the release


def release_key(version: str) -> tuple[int, ...]:
    """A key that orders releases: 8.2.RC1 < 8.2.0 < 8.3.RC1; () where there is no number."""
    numbers: list[int] = []
    for word in re.findall(r"\d+|[A-Za-z]+\d*", version.split("+", 1)[0]):
        match = re.fullmatch(r"(?:rc|RC)(\d+)", word)
        if match:
            numbers += [_NOT_FINAL, int(match[1])]
        elif word.isdigit():
            numbers.append(int(word))
        else:
            break
    return tuple(numbers)


def same_release(one: str, other: str) -> bool:
    """Whether both name one release; a build number after it does not count: 8.1.RC1 and 8.1.RC1.B100."""
    first, second = release_key(one), release_key(other)
    short = min(len(first), len(second))
    return short > 1 and first[:short] == second[:short]
