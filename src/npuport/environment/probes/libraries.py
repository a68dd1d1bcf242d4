"""What lies in the folders of torch, torch_npu and compiled extensions, and the C++ libraries that they load."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.environment.machine import Machine
from npuport.environment.snapshot import Extension, Libraries, Package, Torch, TorchNpu

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_ASSIGNED = re.compile(r"^(\w+)(?:\s*:[^=]*)?\s*=\s*'([^']*)'", re.MULTILINE)
_ABI = re.compile(r"_GLIBCXX_USE_CXX11_ABI=(\d)")
_STDCXX = re.compile(r"libstdc\+\+\.so\.6\.0\.(\d+)$")
# Packages with compiled parts that are built against torch_npu, and their folders.
_EXTENDED = {
    "mmcv": "mmcv",
    "mmcv-full": "mmcv",
    "dlinfer": "dlinfer",
    "dlinfer-ascend": "dlinfer",
    "torchvision-npu": "torchvision_npu",
    "vllm-ascend": "vllm_ascend",
    "mindspeed": "mindspeed",
}
_TORCH_NPU_NAMES = re.compile(r"c10_npu|at_npu|torch_npu|Acl(?:rt|nn)?[A-Z]")
_ATB_NAMES = re.compile(r"3atb")


def torch(machine: Machine, packages: Sequence[Package]) -> Torch | None:
    """torch's own version file and build flags."""
    folder = _folder(packages, "torch")
    text = machine.text(f"{folder}/torch/version.py") if folder else None
    if text is None:
        return None
    assigned = dict(_ASSIGNED.findall(text))
    abi = _ABI.search(machine.text(f"{folder}/torch/share/cmake/Torch/TorchConfig.cmake") or "")
    # Builds that no longer name the ABI in their flags are built with the compiler's default, which is the new one.
    return Torch(assigned.get("__version__", ""), assigned.get("cuda", ""), int(abi[1]) if abi else 1)


def torch_npu(machine: Machine, packages: Sequence[Package], chips: Sequence[str]) -> TorchNpu | None:
    """Whether the compiled part for this Python is there, and which of ``chips`` its library names."""
    folder = _folder(packages, "torch-npu")
    if folder is None:
        return None
    digits = "".join(machine.process.python.split(".")[:2])
    complete = any(
        name.startswith(f"_C.cpython-{digits}") or name in ("_C.so", "_C.abi3.so")
        for name in machine.names(f"{folder}/torch_npu")
    )
    library = machine.path(f"{folder}/torch_npu/lib/libtorch_npu.so")
    return TorchNpu(complete, tuple(chip for chip in chips if _holds(library, chip)))


def extensions(machine: Machine, packages: Sequence[Package]) -> tuple[Extension, ...]:
    """Compiled extensions on torch_npu, with the names that torch_npu and ATB as installed do not define."""
    home = _folder(packages, "torch-npu")
    if home is None:
        return ()
    torch_npu_library = machine.path(f"{home}/torch_npu/lib/libtorch_npu.so")
    found: list[Extension | None] = []
    for package in packages:
        if package.name in _EXTENDED:
            folder = f"{package.location}/{_EXTENDED[package.name]}"
            found += [
                _extension(machine, package.name, path, torch_npu_library, _TORCH_NPU_NAMES)
                for path in _shared_objects(machine, folder)
            ]
    atb = _atb_library(machine)
    operators = f"{home}/torch_npu/lib/libop_plugin_atb.so"
    if atb is not None and machine.exists(operators):
        found.append(_extension(machine, "torch-npu", operators, atb, _ATB_NAMES))
    return tuple(one for one in found if one is not None)


def libraries(machine: Machine, packages: Sequence[Package]) -> Libraries:
    """Copies of libgomp in packages, and the versions of libstdc++."""
    folders = dict.fromkeys(package.location for package in packages)
    copies = [
        f"{folder}/{name}/{library}"
        for folder in folders
        for name in machine.names(folder)
        if name.endswith(".libs")
        for library in machine.names(f"{folder}/{name}")
        if library.startswith("libgomp")
    ]
    system = (f"/usr/lib/{machine.process.arch}-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib")
    conda = machine.exists(f"{machine.process.prefix}/conda-meta")
    return Libraries(
        libgomp=tuple(copies),
        conda_libstdcxx=_newest(machine, (f"{machine.process.prefix}/lib",)) if conda else None,
        system_libstdcxx=_newest(machine, system),
    )


def _folder(packages: Sequence[Package], name: str) -> str | None:
    return next((package.location for package in packages if package.name == name), None)


def _newest(machine: Machine, folders: Sequence[str]) -> int | None:
    found = [int(match[1]) for folder in folders for name in machine.names(folder) if (match := _STDCXX.match(name))]
    return max(found, default=None)


def _holds(library: Path, text: str) -> bool:
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text.encode() + b"\0") >= 0
    except (OSError, ValueError):
        return False


def _shared_objects(machine: Machine, folder: str) -> Iterator[str]:
    for name in machine.names(folder):
        if name.endswith(".so"):
            yield f"{folder}/{name}"
        elif name in ("lib", "ops", "_C"):
            yield from (f"{folder}/{name}/{inner}" for inner in machine.names(f"{folder}/{name}") if ".so" in inner)


def _atb_library(machine: Machine) -> Path | None:
    home = machine.variables.get("ATB_HOME_PATH", "")
    library = f"{home}/lib/libatb.so"
    return machine.path(library) if home and machine.exists(library) else None


def _extension(machine: Machine, package: str, path: str, library: Path, names: re.Pattern[str]) -> Extension | None:
    """An extension compared with the library that should define what it wants; None if it is no shared object."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with machine.path(path).open("rb") as file:
            elf = ELFFile(file)
            needs, wanted = _needs(elf), _undefined(elf, names)
        with library.open("rb") as file:
            defined = _defined(ELFFile(file), wanted)
    except (OSError, ELFError, ValueError):
        return None
    return Extension(package, path, needs, tuple(sorted(wanted - defined)))


def _needs(elf: ELFFile) -> tuple[str, ...]:
    section = elf.get_section_by_name(".dynamic")
    return tuple(tag.needed for tag in section.iter_tags("DT_NEEDED")) if section else ()


def _undefined(elf: ELFFile, names: re.Pattern[str]) -> set[str]:
    section = elf.get_section_by_name(".dynsym")
    return {
        symbol.name
        for symbol in (section.iter_symbols() if section else ())
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL" and names.search(symbol.name)
    }


def _defined(elf: ELFFile, wanted: set[str]) -> set[str]:
    """Those of ``wanted`` that a library defines, by its hash table where it has one."""
    table = elf.get_section_by_name(".gnu.hash")
    if table is not None:
        return {name for name in wanted if table.get_symbol(name) is not None}
    section = elf.get_section_by_name(".dynsym")
    present = {one.name for one in (section.iter_symbols() if section else ()) if one["st_shndx"] != "SHN_UNDEF"}
    return wanted & present
