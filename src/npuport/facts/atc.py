"""What is documented of ATC, which compiles a model into an .om: options, exclusions, limits, operators, AIPP."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Effect = Literal["refused", "refused by older", "second ignored", "advised"]


@dataclass(frozen=True)
class AtcOption:
    """An option such as "precision_mode"; ``values`` is empty where any text may be one."""

    name: str
    values: tuple[str, ...]
    families_without: tuple[str, ...]  # families of chips whose products do not support it
    given_up: bool
    basis: Basis


@dataclass(frozen=True)
class Setting:
    """An option, with the value it must have ("" for any); ``absent`` where it must not be there."""

    option: str
    value: str = ""
    absent: bool = False

    def __str__(self) -> str:
        return f"--{self.option}" + (f"={self.value}" if self.value else "")


@dataclass(frozen=True)
class AtcExclusion:
    """Two settings that cannot stand together; ``code`` is CANN's error, "" where none is known.

    What is "refused by older" versions is no longer in the newest documents; ``basis`` has the last that say it.
    """

    first: Setting
    second: Setting
    effect: Effect
    code: str
    basis: Basis


@dataclass(frozen=True)
class AtcRequirement:
    """A setting that needs one of others beside it."""

    setting: Setting
    needs: tuple[Setting, ...]
    effect: Effect
    code: str
    basis: Basis


@dataclass(frozen=True)
class AtcLimit:
    """The bounds of a number, both included."""

    low: int
    high: int
    basis: Basis


@dataclass(frozen=True)
class AtcOperator:
    """An ONNX operator that CANN registers a parser for, in these operator sets; None stands for any."""

    name: str
    domain: str
    opsets: frozenset[int] | None
    basis: Basis


@dataclass(frozen=True)
class AippField:
    """A field of an AIPP configuration; ``mode`` is the mode it belongs to, "" for both."""

    name: str
    mode: str
    kind: Literal["integer", "number", "switch", "word", "text"]
    low: float | None
    high: float | None
    words: tuple[str, ...]
    reserved: bool  # documented as without effect
    basis: Basis


def atc_option(name: str) -> AtcOption | None:
    """The entry of an option such as "precision_mode" or "precision-mode"."""
    return _options().get(name.replace("-", "_"))


def all_atc_options() -> tuple[AtcOption, ...]:
    """Every option, by name."""
    return tuple(_options().values())


@cache
def all_atc_exclusions() -> tuple[AtcExclusion, ...]:
    """Every pair of settings that exclude each other."""
    return tuple(
        AtcExclusion(
            _setting(row["first"]), _setting(row["second"]), cast("Effect", row["effect"]), row["code"], basis(row)
        )
        for row in rows("atc_exclusions")
    )


@cache
def all_atc_requirements() -> tuple[AtcRequirement, ...]:
    """Every setting that needs another."""
    return tuple(
        AtcRequirement(
            _setting(row["option"]),
            tuple(_setting(one) for one in row["needs"].split("|")),
            cast("Effect", row["effect"]),
            row["code"],
            basis(row),
        )
        for row in rows("atc_requirements")
    )


def atc_limit(name: str, family: str = "910") -> AtcLimit:
    """The bounds of a number such as "profiles" for a family of chips.

    Raises:
        KeyError: there is no such number.
    """
    return _limits()[name, family]


def atc_operator(domain: str, name: str) -> AtcOperator | None:
    """The entry of an operator such as ("ai.onnx", "Conv"); None if CANN's plugins register none."""
    return _operators().get((domain, name))


def all_atc_operators() -> tuple[AtcOperator, ...]:
    """Every operator, by name."""
    return tuple(_operators().values())


@cache
def all_aipp_fields() -> dict[str, AippField]:
    """Every field of an AIPP configuration, by name."""
    return {
        row["name"]: AippField(
            row["name"],
            row["mode"],
            cast("Literal['integer', 'number', 'switch', 'word', 'text']", row["kind"]),
            float(row["low"]) if row["low"] else None,
            float(row["high"]) if row["high"] else None,
            tuple(row["words"].split()),
            row["reserved"] == "yes",
            basis(row),
        )
        for row in rows("aipp_fields")
    }


def _setting(text: str) -> Setting:
    absent = text.startswith("no ")
    option, _, value = text.removeprefix("no ").partition("=")
    return Setting(option, value, absent)


@cache
def _options() -> dict[str, AtcOption]:
    return {
        row["name"]: AtcOption(
            row["name"],
            tuple(row["values"].split()),
            tuple(row["families_without"].split()),
            row["given_up"] == "yes",
            basis(row),
        )
        for row in rows("atc_options")
    }


@cache
def _limits() -> dict[tuple[str, str], AtcLimit]:
    return {
        (row["name"], family): AtcLimit(int(row["low"]), int(row["high"]), basis(row))
        for row in rows("atc_limits")
        for family in row["families"].split()
    }


@cache
def _operators() -> dict[tuple[str, str], AtcOperator]:
    return {
        (row["domain"], row["name"]): AtcOperator(
            row["name"], row["domain"], _numbers(row["opsets"]) if row["opsets"] else None, basis(row)
        )
        for row in rows("atc_operators")
    }


def _numbers(text: str) -> frozenset[int]:
    """The numbers of ``8-16 18``."""
    spans = (span.partition("-") for span in text.split())
    return frozenset(number for low, _, high in spans for number in range(int(low), int(high or low) + 1))
