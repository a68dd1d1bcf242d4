"""Values of well-known libraries' settings that only suit CUDA, and what to write for an NPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Applicability, Basis, Severity


@dataclass(frozen=True)
class KnownSetting:
    """``replacement`` is None where the setting has to go, or where nothing has to be done (severity INFO)."""

    key: str
    value: str
    replacement: str | None
    applicability: Applicability | None
    severity: Severity
    note: str
    basis: Basis


def known_setting(key: str, value: str) -> KnownSetting | None:
    """What is known of a value under a key; case does not matter, nor whether words are joined by "-" or "_"."""
    return _by_name().get((_normal(key), _normal(value)))


@cache
def all_settings() -> tuple[KnownSetting, ...]:
    """Every entry, in the order of the table."""
    return tuple(
        KnownSetting(
            key=row["key"],
            value=row["value"],
            replacement=row["replacement"] or None,
            applicability=Applicability(row["applicability"]) if row["applicability"] else None,
            severity=Severity(row["severity"]),
            note=row["note"],
            basis=basis(row),
        )
        for row in rows("settings")
    )


@cache
def _by_name() -> dict[tuple[str, str], KnownSetting]:
    return {(_normal(one.key), _normal(one.value)): one for one in all_settings()}


def _normal(text: str) -> str:
    return text.lower().replace("-", "_")
