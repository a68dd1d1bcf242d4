"""A wish for an environment, as people write it: "torch 2.7, Ascend910B3, Python 3.11, aarch64, openEuler 22.03"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from packaging.version import InvalidVersion, Version

from npuport.environment.releases import table_release
from npuport.environment.snapshot import Environment
from npuport.errors import UserError
from npuport.facts import chip, chip_family

_NAMES = {
    "torch": "torch",
    "pytorch": "torch",
    "torch_npu": "torch_npu",
    "torch-npu": "torch_npu",
    "cann": "cann",
    "python": "python",
    "py": "python",
    "driver": "driver",
    "hdk": "driver",
    "chip": "chip",
    "arch": "arch",
    "os": "system",
}
_ARCHES = {"aarch64": "aarch64", "arm64": "aarch64", "arm": "aarch64", "x86_64": "x86_64", "x86-64": "x86_64",
           "amd64": "x86_64", "x86": "x86_64"}  # fmt: skip
_SYSTEMS = ("openeuler", "ubuntu", "debian", "kylin", "centos", "euleros", "rhel", "rocky", "ctyunos", "anolis", "uos",
            "bclinux", "kylinos")  # fmt: skip
_FAMILIES = ("A2", "A3")
_GLUED = re.compile(rf"^({'|'.join([*_NAMES, *_SYSTEMS])})[-_:]?(\d[\w.+-]*)$", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s,;=、，；]+")


@dataclass(frozen=True)
class Request:
    """What is asked for; empty where it is left open. Versions may be short: torch "2.7" is any 2.7.x."""

    torch: str = ""
    torch_npu: str = ""
    cann: str = ""
    python: str = ""  # "3.11"
    driver: str = ""
    chip: str = ""  # as CANN names it: "Ascend910B3"
    family: str = ""
    arch: str = ""
    system: str = ""  # "openEuler 22.03"


def request_from_text(text: str) -> Request:
    """The wish in a text.

    Raises:
        UserError: a word is not understood; the message names it.
    """
    found: dict[str, str] = {}
    for field, value in _parts(text):
        if found.get(field, value) != value:
            raise UserError(
                "the plan asks for both {one} and {other}. Ask for one of them.", one=found[field], other=value
            )
        found[field] = value
    if not found:
        raise UserError("the plan is empty. For example: npuport doctor --plan 'torch 2.7, Ascend910B3, Python 3.11'")
    return _checked(Request(**found))


def request_from_machine(env: Environment) -> Request:
    """What a machine fixes: chip, processor, system, Python and CANN."""
    known = chip(env.chips[0]) if len(env.chips) == 1 else None
    return _checked(
        Request(
            cann=table_release(env.cann.version) if env.cann else "",
            python=".".join(env.python.version.split(".")[:2]),
            driver=env.driver.version if env.driver else "",
            chip=known.name if known else "",
            arch=env.system.arch,
            system=f"{env.system.os_id} {env.system.os_version}".strip(),
        )
    )


def _parts(text: str) -> Iterator[tuple[str, str]]:
    words = [word for word in _SEPARATORS.split(text) if word]
    while words:
        word = words.pop(0)
        glued = _GLUED.match(word)
        if glued:
            word, words = glued[1], [glued[2], *words]
        name = word.lower()
        if name in _SYSTEMS:
            version = words.pop(0) if words and words[0][0].isdecimal() else ""
            yield "system", f"{word} {version}".strip()
        elif name in _NAMES and _NAMES[name] == "system":
            continue
        elif name in _NAMES and words:
            yield from _named(_NAMES[name], words.pop(0))
        elif name in _ARCHES:
            yield "arch", _ARCHES[name]
        elif word.upper() in _FAMILIES:
            yield "family", word.upper()
        elif (known := chip(word)) is not None:
            yield "chip", known.name
        elif name not in ("atlas", "linux", "and", "with", "on", "for"):
            raise UserError(
                "the plan does not understand {word}. It understands torch, torch_npu, CANN, Python and driver with a "
                "version, a chip, a processor and a system, for example: torch 2.7, Ascend910B3, Python 3.11, aarch64, "
                "openEuler 22.03",
                word=word,
            )


def _named(field: str, value: str) -> Iterator[tuple[str, str]]:
    if field == "chip":
        known = chip(value)
        if known is None:
            raise UserError(
                "the plan does not know the chip {word}. `npuport explain Ascend910B3` shows one.", word=value
            )
        yield "chip", known.name
    elif field == "arch":
        yield "arch", _ARCHES.get(value.lower(), value)
    elif field == "python":
        yield "python", ".".join(value.split(".")[:2])
    else:
        yield field, value


def _checked(request: Request) -> Request:
    for value in filter(None, (request.torch, request.torch_npu, request.python)):
        _require_version(value)
    if request.arch not in ("", *_ARCHES.values()):
        raise UserError("the plan knows the processors aarch64 and x86_64, not {word}.", word=request.arch)
    known = chip(request.chip) if request.chip else None
    if known is not None:
        return replace(request, family=chip_family(known.family).name)
    return request


def _require_version(text: str) -> None:
    try:
        Version(text)
    except InvalidVersion as error:
        raise UserError("{word} is no version. For example: torch 2.7.1", word=text) from error
