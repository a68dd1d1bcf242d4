"""Codes and texts of errors on Ascend: what CANN and torch_npu call them, and what is known to lie behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Role = Literal["cause", "effect", "harmless"]

_TORCH_NPU_MODULES = {"00": "torch_npu", "01": "operators", "02": "distributed", "03": "graph", "04": "profiler"}
_TORCH_NPU_MEANINGS = {
    "001": "invalid parameter",
    "002": "invalid type",
    "003": "invalid value",
    "004": "invalid pointer",
    "005": "internal error",
    "006": "memory error",
    "007": "feature not supported",
    "008": "resource not found",
    "009": "resource unavailable",
    "010": "system call failed",
    "011": "timeout",
    "012": "permission error",
    "100": "a call of ACL failed",
    "200": "a call of HCCL failed",
    "300": "a call of GE failed",
    "999": "exception of the application",
}
_COMPONENTS = {
    "E1": "GE, ATC",
    "W1": "GE, ATC",
    "E2": "FE",
    "E3": "AI CPU",
    "E4": "TEFusion",
    "W4": "TEFusion",
    "EE": "runtime",
    "WE": "runtime",
    "EH": "ACL",
    "EI": "HCCL",
    "EJ": "HCCP",
    "EK": "profiling",
    "EL": "driver",
    "EP": "dump",
    "EZ": "operators",
}
_NUMBERS = {
    "1": "a wrong use or environment",
    "2": "resources",
    "3": "the application's data",
    "5": "an internal error",
}

_CODE = re.compile(r"\b(?:ERR\d{5}|[EW][A-Z0-9]\d{4})\b")
_NUMBER = re.compile(r"(?:code|ret|errno|err|result|error)\w*(?: is)?\W{1,4}(\d{6})\b", re.IGNORECASE)


@dataclass(frozen=True)
class ErrorCode:
    """A code such as "507015", "EI0006" or "ERR01007", and what its authority calls it."""

    code: str
    name: str  # the constant of CANN's header, the title in CANN's list, or torch_npu's words
    component: str  # what reports it, such as "HCCL"; for six digits the class of the error; "" if not known
    basis: Basis

    @property
    def meaning(self) -> str:
        """The name as words: nothing that it does not say."""
        bare = re.sub(r"^(ACL_ERROR_RT_|ACL_ERROR_GE_|ACL_ERROR_|ACLNN_ERR_)", "", self.name)
        return bare.replace("_", " ").lower() if bare else ""


@dataclass(frozen=True)
class KnownError:
    """Something that goes wrong on Ascend machines, how it shows, why, and what to do, in order.

    ``role`` is "cause", "effect" (it follows from something before it, often on another rank) or "harmless".
    """

    name: str
    codes: tuple[str, ...]
    text: re.Pattern[str] | None
    role: Role
    cause: str
    steps: tuple[str, ...]
    basis: Basis

    def shows_in(self, text: str) -> bool:
        """Whether ``text`` has the words of this error; codes are not looked at."""
        return self.text is not None and self.text.search(text) is not None


def error_code(code: str) -> ErrorCode | None:
    """What is known of a code; None for a code that no authority names."""
    wanted = code.upper()
    if wanted.startswith("ERR"):
        return _of_torch_npu(wanted)
    if wanted in _codes():
        return _codes()[wanted]
    if re.fullmatch(r"E[A-Z0-9]9999", wanted):
        component = _COMPONENTS.get(wanted[:2], "")
        return ErrorCode(wanted, "Inner_Error", component, Basis("CANN documents", "documented", "August 2026"))
    return None


def known_error(text: str) -> KnownError | None:
    """What lies behind a message or a code; None if that is not known.

    A cause goes before what only follows from one, and words before codes: the code beside them is the general one.
    """
    by_words = [one for one in all_known_errors() if one.shows_in(text)]
    by_code = [found for code in codes_in(text) if (found := _by_code().get(code)) is not None]
    return min(by_words + by_code, key=lambda one: one.role != "cause", default=None)


def codes_in(text: str) -> Iterator[str]:
    """The codes in a text, in order: lettered ones anywhere, six digits only where they are called a code."""
    found = [(match.start(), match.group()) for match in _CODE.finditer(text)]
    found += [(match.start(1), match.group(1)) for match in _NUMBER.finditer(text)]
    if re.fullmatch(r"\d{6}", text.strip()):
        found.append((0, text.strip()))
    yield from dict.fromkeys(code for _, code in sorted(found))


@cache
def all_known_errors() -> tuple[KnownError, ...]:
    """Every entry, in the order of the table: the first whose words are met holds."""
    return tuple(
        KnownError(
            name=row["name"],
            codes=tuple(row["codes"].split()),
            text=re.compile(row["text"]) if row["text"] else None,
            role=cast("Role", row["role"]),
            cause=row["cause"],
            steps=tuple(row["steps"].split(" // ")),
            basis=basis(row),
        )
        for row in rows("known_errors")
    )


def all_error_codes() -> tuple[ErrorCode, ...]:
    """Every code that an authority lists, in the order of the table."""
    return tuple(_codes().values())


def _of_torch_npu(code: str) -> ErrorCode | None:
    module, meaning = _TORCH_NPU_MODULES.get(code[3:5]), _TORCH_NPU_MEANINGS.get(code[5:])
    if meaning is None or (module is None and code[3:5] != "99"):
        return None
    return ErrorCode(code, meaning, module or "unknown module", Basis("torch_npu source", "documented", "2.13.0"))


@cache
def _codes() -> dict[str, ErrorCode]:
    return {
        row["code"]: ErrorCode(
            code=row["code"],
            name=row["name"],
            component=_NUMBERS.get(row["code"][0], "") or _COMPONENTS.get(row["code"][:2], ""),
            basis=basis(row),
        )
        for row in rows("error_codes")
    }


@cache
def _by_code() -> dict[str, KnownError]:
    """The entry that stands for a code; the first that lists it."""
    found: dict[str, KnownError] = {}
    for entry in all_known_errors():
        for code in entry.codes:
            found.setdefault(code, entry)
    return found
