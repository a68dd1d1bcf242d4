"""Driver, firmware, devices, CANN and NNAL, from version files, the kernel's folders and `npu-smi info`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from npuport.environment.machine import Machine
from npuport.environment.probes.version_files import ranges, values
from npuport.environment.snapshot import Cann, Devices, Driver, Nnal, Npu, NpuProcess, Smi

INSTALL_ROOTS = ("/usr/local/Ascend", "~/Ascend", "/opt/Ascend", "/home/developer/Ascend")
NPU_SMI = ("npu-smi", "info")
MANAGERS = ("davinci_manager", "devmm_svm", "hisi_hdc")

_HUAWEI = "0x19e5"
_ACCELERATOR = "0x1200"  # PCI class of processing accelerators
_CHIP_ROW = re.compile(r"^\|\s*(\d+)\s+([A-Za-z0-9_-]+)\s*\|\s*([A-Za-z]+)\s*\|")
_MEMORY_ROW = re.compile(r"^\|\s*\d+(?:\s+\d+)?\s*\|\s*[0-9A-Fa-f]{4}:[0-9A-Fa-f:.]+\s*\|(.*)\|")
_PROCESS_ROW = re.compile(r"^\|\s*(\d+)\s+\d+\s*\|\s*(\d+)\s*\|([^|]*)\|\s*(\d+)\s*\|\s*$")
_OF = re.compile(r"(\d+)\s*/\s*(\d+)")
_KERNEL_FOLDERS = ("opp/built-in/op_impl/ai_core/tbe/kernel", "opp/built-in/op_impl/ai_core/tbe/kernel/config")


def driver(machine: Machine) -> Driver | None:
    """The installed driver, None without its version file."""
    installed = values(machine.text("/etc/ascend_install.info"))
    folder = installed.get("driver_install_path_param", "/usr/local/Ascend").rstrip("/") + "/driver"
    text = machine.text(f"{folder}/version.info")
    if text is None:
        return None
    version = values(text)
    for_all = installed.get("driver_install_for_all")
    return Driver(
        version=version.get("version", ""),
        path=folder,
        firmware_ranges=ranges(version.get("compatible_version_fw", "")),
        for_all=None if for_all is None else for_all == "yes",
        group=installed.get("usergroup", "HwHiAiUser"),
    )


def firmware(machine: Machine) -> str | None:
    """The version of the firmware package, such as "7.5.0.1.129"; None without its version file."""
    installed = values(machine.text("/etc/ascend_install.info"))
    folder = installed.get("firmware_install_path_param", "/usr/local/Ascend").rstrip("/") + "/firmware"
    return values(machine.text(f"{folder}/version.info")).get("version")


def npu_smi(machine: Machine) -> tuple[Smi, tuple[Npu, ...], tuple[NpuProcess, ...]]:
    """What `npu-smi info` answers: whether it does, the devices, and the programs on them."""
    answer = machine.run(NPU_SMI)
    if answer.timed_out:
        return Smi("slow"), (), ()
    if answer.code is None:
        return Smi("missing"), (), ()
    rows = npu_rows(answer.output)
    if answer.code != 0 or not rows:
        lines = [line.strip() for line in answer.output.splitlines() if line.strip()]
        return Smi("failed", lines[-1] if lines else ""), (), ()
    return Smi("ok"), rows, npu_processes(answer.output)


def chips(npus: Sequence[Npu]) -> tuple[str, ...]:
    """The chips of the devices, each once, as CANN names them: ("Ascend910B3",)."""
    return tuple(sorted({f"Ascend{one.chip.removeprefix('Ascend')}" for one in npus}))


def npu_rows(output: str) -> tuple[Npu, ...]:
    """The devices in the table of `npu-smi info`: two lines for each chip, the second with its memory."""
    found: list[Npu] = []
    chip: re.Match[str] | None = None
    for line in output.splitlines():
        first, second = _CHIP_ROW.match(line), _MEMORY_ROW.match(line)
        if first:
            chip = first
        elif second and chip:
            used = _OF.findall(second[1])
            memory = used[-1] if used else None  # device memory is the last column of both layouts
            found.append(
                Npu(
                    number=int(chip[1]),
                    chip=chip[2],
                    health=chip[3],
                    memory_used=int(memory[0]) if memory else None,
                    memory=int(memory[1]) if memory else None,
                )
            )
    return tuple(found)


def npu_processes(output: str) -> tuple[NpuProcess, ...]:
    """The programs in the table of `npu-smi info`."""
    return tuple(
        NpuProcess(int(match[1]), int(match[2]), match[3].strip(), int(match[4]))
        for line in output.splitlines()
        if (match := _PROCESS_ROW.match(line))
    )


def devices(machine: Machine) -> Devices:
    """NPUs on the PCI bus and their nodes in /dev."""
    names = machine.names("/dev")
    nodes = sorted(int(name[7:]) for name in names if re.fullmatch(r"davinci\d+", name))
    managers = tuple(name for name in MANAGERS if name in names)
    paths = [f"/dev/davinci{number}" for number in nodes] + [f"/dev/{name}" for name in managers]
    unusable = tuple(path for path in paths if not os.access(machine.path(path), os.R_OK | os.W_OK))
    return Devices(pci=_pci(machine), nodes=tuple(nodes), managers=managers, unusable=unusable)


def _pci(machine: Machine) -> tuple[str, ...]:
    found = []
    for name in machine.names("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{name}"
        if (machine.text(f"{folder}/vendor") or "").strip() == _HUAWEI:
            kind, device = (machine.text(f"{folder}/{part}") or "" for part in ("class", "device"))
            found += [device.strip().removeprefix("0x")] if kind.startswith(_ACCELERATOR) else []
    return tuple(found)


def canns(machine: Machine) -> tuple[Cann, ...]:
    """Every toolkit in the usual places and where the variables point, each once."""
    named = [machine.variables.get(name, "") for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")]
    in_use = {machine.real(path) for path in named if path}
    places: dict[str, None] = dict.fromkeys(in_use)
    for root in INSTALL_ROOTS:
        base = root.replace("~", machine.process.home, 1)
        for name in machine.names(base):
            if name == "cann" or name.startswith("cann-"):
                places[machine.real(f"{base}/{name}")] = None
        for name in machine.names(f"{base}/ascend-toolkit"):
            places[machine.real(f"{base}/ascend-toolkit/{name}")] = None
    found = (_cann(machine, path, path in in_use) for path in places)
    return tuple(sorted((one for one in found if one), key=lambda one: (not one.active, one.path)))


def _cann(machine: Machine, path: str, active: bool) -> Cann | None:
    for arch in ("aarch64", "x86_64"):
        info = values(machine.text(f"{path}/{arch}-linux/ascend_toolkit_install.info"))
        if info.get("version"):
            break
    else:
        info = values(machine.text(f"{path}/ascend_toolkit_install.info"))
        arch = info.get("arch", "")
    if not info.get("version"):
        return None
    kernels = {
        name for folder in _KERNEL_FOLDERS for name in machine.names(f"{path}/{folder}") if name.startswith("ascend")
    }
    operators = values(machine.text(f"{path}/{arch}-linux/ascend_ops_install.info"))
    older = values(machine.text(f"{path}/opp_kernel/version.info"))
    return Cann(
        path=path,
        version=info["version"],
        arch=info.get("arch", arch),
        kernels=tuple(sorted(kernels)),
        kernels_version=operators.get("version") or older.get("version_dir", ""),
        active=active,
    )


def nnal(machine: Machine) -> Nnal | None:
    """NNAL's ATB where ATB_HOME_PATH points, else in the usual places."""
    named = machine.variables.get("ATB_HOME_PATH", "")
    places = [named.rstrip("/").rsplit("/", 2)[0]] if named else []
    places += [root.replace("~", machine.process.home, 1) + "/nnal/atb/latest" for root in INSTALL_ROOTS]
    for place in places:
        version = values(machine.text(f"{place}/version.info")).get("ascend-cann-atb")
        if version:
            abis = tuple(name for name in machine.names(f"{place}/atb") if name.startswith("cxx_abi_"))
            return Nnal(path=machine.real(place), version=version, abis=abis)
    return None
