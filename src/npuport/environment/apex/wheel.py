"""What a finished wheel says of itself: its name, its tags and its contents."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from npuport.environment.machine import Process
from npuport.errors import UserError
from npuport.facts.apex_builds import APEX_VERSION
from npuport.findings import Sentence, say

_ELF_MACHINES = {0xB7: "aarch64", 0x3E: "x86_64"}
_PARTS = {
    "apex/amp/frontend.py": "combine_grad",
    "apex/optimizers/__init__.py": "NpuFused",
}  # files of the patched Apex, and a word that only the patch brings


def wheel_faults(path: Path, process: Process) -> list[Sentence]:
    """What keeps a wheel from being Apex for Ascend for the Python that runs us; nothing if it is.

    Raises:
        UserError: the file cannot be read, or is no wheel.
    """
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
        with zipfile.ZipFile(path) as wheel:
            return [
                *_name_faults(str(name), str(version)),
                *_tag_faults(tags, process),
                *_content_faults(wheel, process.arch),
            ]
    except InvalidWheelFilename:
        raise UserError(
            "{path} is not named as a wheel is: {wanted}",
            path=path,
            wanted=f"apex-{APEX_VERSION}-cp310-cp310-linux_{process.arch}.whl",
        ) from None
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError("{path} cannot be read as a wheel ({error}): build it again", path=path, error=error) from None


def _name_faults(name: str, version: str) -> Iterator[Sentence]:
    if name != "apex":
        yield say("the wheel is {name}, not apex", name=name)
    elif version != APEX_VERSION:
        yield say(
            "the version is {version}, not {wanted}: NVIDIA's own Apex, or another project of that name",
            version=version,
            wanted=APEX_VERSION,
        )


def _tag_faults(tags: frozenset[Tag], process: Process) -> Iterator[Sentence]:
    wanted = f"cp{''.join(process.python.split('.')[:2])}"
    interpreters = {tag.interpreter for tag in tags}
    if wanted not in interpreters:
        yield say(
            "it is for {found}, and this Python is {wanted}: build with the Python that trains",
            found=", ".join(sorted(interpreters)),
            wanted=wanted,
        )
    platforms = {tag.platform for tag in tags}
    if not any(platform.endswith(process.arch) for platform in platforms):
        yield say(
            "it is for {found}, and this machine is {arch}", found=", ".join(sorted(platforms)), arch=process.arch
        )


def _content_faults(wheel: zipfile.ZipFile, arch: str) -> Iterator[Sentence]:
    names = set(wheel.namelist())
    for part, word in _PARTS.items():
        if part not in names:
            yield say("{part} is missing: this is not Apex", part=part)
        elif word not in wheel.read(part).decode(errors="replace"):
            yield say("{part} has no {word}: Ascend's patch was not applied", part=part, word=word)
    libraries = sorted(name for name in names if name.rpartition("/")[2].startswith("apex_C.") and name.endswith(".so"))
    if not libraries:
        yield say("apex_C is missing: build with --cpp_ext")
    for library in libraries:
        with wheel.open(library) as file:
            head = file.read(20)
        machine = (
            _ELF_MACHINES.get(int.from_bytes(head[18:20], "little"), "unknown") if head[:4] == b"\x7fELF" else None
        )
        if machine != arch:
            yield say("{library} is compiled for {machine}, not {arch}", library=library, machine=machine, arch=arch)
