"""The `key=value` files in which Ascend's packages keep their versions."""

from __future__ import annotations

import re

_RANGE = re.compile(r"\[([^\],]+)(?:,([^\]]*))?\]")


def values(text: str | None) -> dict[str, str]:
    """``Version=8.2.0`` lines (also ``name : value``) as a mapping with lower-case keys; the first of a key counts."""
    found: dict[str, str] = {}
    for line in (text or "").splitlines():
        key, mark, value = line.partition("=" if "=" in line else ":")
        if mark and not line.lstrip().startswith("#"):
            found.setdefault(key.strip().lower(), value.strip().strip('"'))
    return found


def ranges(text: str) -> tuple[tuple[str, str], ...]:
    """``[7.0.0,7.5.99],[8.0.0,8.9.9]`` as pairs of lowest and highest version."""
    return tuple((low.strip(), (high or low).strip()) for low, high in _RANGE.findall(text))
