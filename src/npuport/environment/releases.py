"""Versions as Ascend writes them: "8.3.RC1", "25.0.rc1.1", "24.1.0"."""

from __future__ import annotations

import re

from npuport.facts import ChipFamily, all_releases

_NEW_NAMES = (8, 5)  # from this CANN on folder and operator packages have other names
_NOT_FINAL = -1  # a release candidate comes before the release


def release_key(version: str) -> tuple[int, ...]:
    """A key that orders releases: 8.2.RC1 < 8.2.0 < 8.3.RC1; () where there is no number."""
    numbers: list[int] = []
    for word in re.findall(r"\d+|[A-Za-z]+\d*", version.split("+", 1)[0]):
        match = re.fullmatch(r"(?:rc|RC)(\d+)", word)
        if match:
            numbers += [_NOT_FINAL, int(match[1])]
        elif word.isdecimal():
            numbers.append(int(word))
        else:
            break
    return tuple(numbers)


def same_release(one: str, other: str) -> bool:
    """Whether both name one release; builds of it do not count (8.1.RC1 and 8.1.RC1.B100), nor do zeros at the end."""
    return _trimmed(one) == _trimmed(other) != ()


def _trimmed(version: str) -> tuple[int, ...]:
    key = list(release_key(version))
    while key and key[-1] == 0:
        key.pop()
    return tuple(key)


def table_release(cann: str) -> str:
    """The CANN in the table of releases that a version belongs to: itself, or what it patches (8.5.0 for 8.5.1)."""
    known = sorted({one.cann for one in all_releases() if one.cann}, key=release_key)
    key = release_key(cann)
    before = [one for one in known if release_key(one) <= key and release_key(one)[:2] == key[:2]]
    return before[-1] if before else cann


def operator_package(family: ChipFamily, cann: str) -> str:
    """The name of the package with a family's operators, such as "Ascend-cann-kernels-910b"."""
    return family.older_package if release_key(cann) < _NEW_NAMES and family.older_package else family.package


def set_env(cann: str) -> str:
    """The path of a toolkit's set_env.sh below the folder that Ascend's packages are installed into."""
    return "ascend-toolkit/set_env.sh" if release_key(cann) < _NEW_NAMES else "cann/set_env.sh"
