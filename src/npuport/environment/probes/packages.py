"""Installed Python packages, from the folders of the search path. Nothing is imported: installations may be broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.parser import HeaderParser

from npuport.environment.machine import Machine
from npuport.environment.snapshot import Package

_FOLDER = re.compile(r"^(?P<name>.+?)-(?P<version>[^-]+)(?:-py[\d.]+)?\.(?:dist-info|egg-info)$")
_READ_FOR_NEEDS = {
    "accelerate", "apex", "deepspeed", "diffusers", "flash-attn", "lightning", "llamafactory", "mindspeed", "mmcv",
    "mmdet", "mmengine", "ms-swift", "peft", "sentence-transformers", "sglang", "timm", "torch-npu", "torchaudio",
    "torchdata", "torchtext", "torchvision", "torchvision-npu", "transformers", "triton-ascend", "trl", "verl", "vllm",
    "vllm-ascend", "xformers",
}  # fmt: skip


def packages(machine: Machine) -> tuple[Package, ...]:
    """Every distribution on the search path, in the order in which Python would find them."""
    return tuple(
        package
        for folder in dict.fromkeys(machine.process.search_path)
        for name in machine.names(folder)
        if (package := _package(machine, folder, name)) is not None
    )


def normalized(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _package(machine: Machine, folder: str, entry: str) -> Package | None:
    match = _FOLDER.match(entry)
    if match is None:
        return None
    name = normalized(match["name"])
    if name not in _READ_FOR_NEEDS:
        return Package(name, match["version"], folder)
    return Package(
        name=name,
        version=match["version"],
        location=folder,
        requires=tuple(_headers(machine, f"{folder}/{entry}/METADATA", "Requires-Dist")),
        tags=tuple(_headers(machine, f"{folder}/{entry}/WHEEL", "Tag")),
    )


def _headers(machine: Machine, path: str, header: str) -> Iterator[str]:
    text = machine.text(path)
    if text is not None:
        # Headers end at the first empty line; the description after it may be long.
        yield from HeaderParser().parsestr(text.split("\n\n", 1)[0]).get_all(header, [])
