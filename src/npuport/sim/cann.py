"""The stand-in for CANN's C libraries, under the real torch_npu.

What it must define is read from the installed torch_npu: the functions its libraries import and nothing else on the
machine supplies, and the operators (``aclnn*``) it looks up by name while it runs. Functions that behave are written
in ``native/cann``; of the others, an imported function is generated so that torch_npu loads, and fails with its name
when it is called; a looked-up function stays absent, which torch_npu reports by itself. An operator that is called
fails and names itself: the simulation computes operators above CANN.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

from npuport.sim import build
from npuport.sim.requirements import Installation

_MAIN = "libascendcl.so"  # holds everything; the other libraries only name it
_OPERATORS = "libopapi.so"
_LOOKED_UP = (
    "libascend_hal.so",
    "libhcomm.so",
    "libmsprofiler.so",
    "libmspti.so",
    "libms_tools_ext.so",
    _OPERATORS,
)  # opened by name while torch_npu runs


def ensure(installation: Installation) -> Path:
    """The directory with the stand-in's libraries, compiled on first use (2 to 3 s)."""
    return build.once(_name(installation), lambda target: _build(installation, target))


def is_built(installation: Installation) -> bool:
    """Whether ``ensure`` would return at once."""
    return (build.cache_directory() / _name(installation)).is_dir()


@functools.cache
def _name(installation: Installation) -> str:
    sources = [*(build.NATIVE / "cann").iterdir(), Path(__file__)]
    return f"cann-{build.key_of(sources, installation.torch_npu, build.compiler_identity(installation.c_compiler))}"


def _lay_out_home(target: Path) -> None:
    """The directories torch_npu expects under ASCEND_HOME_PATH before it goes on."""
    for name in ("opp", "runtime", "compiler"):
        (target / name).mkdir()


def library_names(installation: Installation) -> list[str]:
    """Libraries such as ``libhccl.so`` that torch_npu's own libraries need and nobody supplies, main library first."""
    supplied = {
        path.name
        for directory in (installation.torch_directory, installation.torch_npu_directory)
        for path in directory.rglob("*.so*")
    }
    needed = {name for library in _loaded_libraries(installation.torch_npu_directory) for name in _needed(library)}
    missing = {name for name in needed - supplied if name.endswith(".so")}
    return [_MAIN, *sorted(missing - {_MAIN, *_LOOKED_UP}), *_LOOKED_UP]


def _build(installation: Installation, target: Path) -> None:
    _lay_out_home(target)
    compiler, main = installation.c_compiler, target / _MAIN
    objects = [_compiled(compiler, source, target, "-O2") for source in sorted((build.NATIVE / "cann").glob("*.c"))]
    link: list[str | Path] = [
        compiler,
        "-shared",
        f"-Wl,-soname,{_MAIN}",
        "-o",
        main,
        *objects,
        "-lrt",
        "-lpthread",
        "-ldl",
    ]
    build.compile_with(link)
    absent = imported_functions(installation.torch_npu_directory) - _defined(main)
    build.compile_with([*link, _generated(compiler, target, "absent", _failing_functions(absent))])
    missing = operator_names(installation.torch_npu_directory) - _defined(main)
    operators = _generated(compiler, target, "operators", _failing_operators(missing))
    # A library without any code has no unwind table, which PyTorch's memory traces warn about.
    nothing = _generated(compiler, target, "nothing", "int npuport_nothing(void) { return 0; }\n")
    for name in library_names(installation)[1:]:
        options: list[str | Path] = [
            f"-Wl,-soname,{name}",
            "-Wl,--no-as-needed",
            "-Wl,-rpath,$ORIGIN",
            "-L",
            target,
            "-l:" + _MAIN,
        ]
        code = operators if name == _OPERATORS else nothing
        build.compile_with([compiler, "-shared", "-o", target / name, code, *options])


def _compiled(compiler: str, source: Path, target: Path, optimisation: str) -> Path:
    result = target / f"{source.stem}.o"
    include = build.NATIVE / "cann"
    build.compile_with([compiler, "-std=gnu11", optimisation, "-fPIC", "-I", include, "-c", source, "-o", result])
    return result


def _generated(compiler: str, target: Path, name: str, text: str) -> Path:
    source = target / f"{name}.c"
    source.write_text(text)
    return _compiled(compiler, source, target, "-O0")


def imported_functions(torch_npu: Path) -> set[str]:
    """Functions of CANN that torch_npu's libraries import and none of them defines.

    C functions by their name; of C++ only the graph engine's (namespace ``ge``, imported up to torch_npu 2.6), by
    their mangled name.
    """
    return {name for name in undefined_symbols(torch_npu) if re.match(r"(acl|rt[A-Z]|Msprof|Hccl|_Z)", name)}


def undefined_symbols(torch_npu: Path) -> set[str]:
    """What torch_npu's libraries import and none of them defines: CANN's, Python's, and the C functions of PyTorch."""
    wanted: set[str] = set()
    defined: set[str] = set()
    for library in _loaded_libraries(torch_npu):
        here, missing = _symbols(library)
        defined |= here
        wanted |= missing
    return wanted - defined


def operator_names(torch_npu: Path) -> set[str]:
    """Operators that torch_npu looks up by name in CANN's operator library, for example ``aclnnAdd``."""
    names: set[str] = set()
    for library in _loaded_libraries(torch_npu):
        names |= {match.decode() for match in re.findall(rb"(?<=\0)aclnn[A-Z][A-Za-z0-9]*(?=\0)", library.read_bytes())}
    return {name.removesuffix("GetWorkspaceSize") for name in names}


def _loaded_libraries(torch_npu: Path) -> list[Path]:
    """What ``import torch_npu`` loads; its graph engine (torchair) is another matter and stays out."""
    return sorted([*torch_npu.glob("*.so"), *(path for path in torch_npu.glob("lib/*.so") if "atb" not in path.name)])


def _is_of_torch(name: str) -> bool:
    """Whether a mangled C++ name is none of the graph engine's: torch's own, which are many."""
    return name.startswith("_Z") and not name.startswith(("_ZN2ge", "_ZNK2ge"))


def _symbols(library: Path) -> tuple[set[str], set[str]]:
    """Names that ``library`` defines, and names it imports without saying from which version of which library."""
    from elftools.elf.elffile import ELFFile

    defined: set[str] = set()
    missing: set[str] = set()
    with library.open("rb") as file:
        elf = ELFFile(file)
        versions = elf.get_section_by_name(".gnu.version")
        for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if not symbol.name or _is_of_torch(symbol.name):
                continue
            if symbol["st_shndx"] != "SHN_UNDEF":
                defined.add(symbol.name)
            elif symbol["st_info"]["bind"] != "STB_WEAK" and (
                versions is None or versions.get_symbol(index)["ndx"] in ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")
            ):
                missing.add(symbol.name)
    return defined, missing


def _defined(library: Path) -> set[str]:
    return _symbols(library)[0]


def _needed(library: Path) -> list[str]:
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as file:
        return [
            tag.needed
            for tag in ELFFile(file).get_section_by_name(".dynamic").iter_tags()
            if tag.entry.d_tag == "DT_NEEDED"
        ]


# Loading torch_npu 2.6 registers its graph operators; nobody looks them up outside of graph mode.
_REGISTRATION = "_ZN2ge23OperatorCreatorRegister"


def _failing_functions(names: Iterable[str]) -> str:
    lines = ['#include "stand_in.h"']
    for name in sorted(names):
        if name.startswith(_REGISTRATION):
            lines.append(f"void {name}(void) {{}}")
        elif name.startswith("_Z"):  # a constructor has no way to fail
            lines.append(f'void {name}(void) {{ npuport_abort("{name}"); }}')
        else:
            lines.append(f'aclError {name}(void) {{ return npuport_not_simulated("{name}"); }}')
    return "\n".join([*lines, ""])


def _failing_operators(names: Iterable[str]) -> str:
    lines = ['#include "stand_in.h"']
    for name in sorted(names):
        lines.append(f'aclError {name}GetWorkspaceSize(void) {{ return npuport_no_reference("{name}"); }}')
        lines.append(f'aclError {name}(void) {{ return npuport_no_reference("{name}"); }}')
    return "\n".join([*lines, ""])
