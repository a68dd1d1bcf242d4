"""What the probes found, as plain values: the input of every check, and what `--json` writes and `--compare` reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class System:
    """The operating system. ``os_id`` and ``os_version`` are those of /etc/os-release."""

    os_id: str
    os_version: str
    arch: str
    glibc: str
    container: bool
    shared_memory: int | None  # bytes of /dev/shm


@dataclass(frozen=True)
class User:
    """Who runs, and where."""

    name: str
    uid: int
    groups: tuple[str, ...]
    home: str
    host: str
    folder: str
    open_files: int | None  # soft limit; None means no limit


@dataclass(frozen=True)
class Python:
    """The Python that training would run in. ``kind`` is "conda", "venv" or "system"."""

    version: str
    executable: str
    prefix: str
    kind: str
    platlibdir: str
    search_path: tuple[str, ...]


@dataclass(frozen=True)
class Package:
    """An installed distribution. ``requires`` are its Requires-Dist lines, read for the packages that matter here."""

    name: str  # normalised (PEP 503)
    version: str
    location: str  # the folder of the search path that holds it
    requires: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()  # of its wheel, such as "cp311-cp311-manylinux_2_28_aarch64"


@dataclass(frozen=True)
class Driver:
    """/usr/local/Ascend/driver/version.info. ``firmware_ranges`` are the firmware versions it works with."""

    version: str
    path: str
    firmware_ranges: tuple[tuple[str, str], ...]
    for_all: bool | None  # installed with --install-for-all; None if nothing says so
    group: str  # whose members may use the devices otherwise


@dataclass(frozen=True)
class Npu:
    """A row of `npu-smi info`. Memory in MiB; ``chip`` as it is printed, such as "910B3"."""

    number: int
    chip: str
    health: str
    memory_used: int | None
    memory: int | None


@dataclass(frozen=True)
class NpuProcess:
    """A program that holds memory (MiB) of an NPU, as `npu-smi info` lists it."""

    npu: int
    pid: int
    name: str
    memory: int


@dataclass(frozen=True)
class Smi:
    """`npu-smi info`: "ok", "missing", "failed" or "slow" (no answer in time), with its last line where it failed."""

    state: str
    message: str = ""


@dataclass(frozen=True)
class Devices:
    """What the kernel shows: PCI devices of Huawei's NPUs, /dev/davinciN, and the managing nodes that exist."""

    pci: tuple[str, ...]  # device ids, such as "d802"
    nodes: tuple[int, ...]
    managers: tuple[str, ...]
    unusable: tuple[str, ...]  # nodes that this user may not open


@dataclass(frozen=True)
class Cann:
    """An installed CANN toolkit. ``kernels`` are the chips with operator packages, such as "ascend910b"."""

    path: str
    version: str
    arch: str
    kernels: tuple[str, ...]
    kernels_version: str
    active: bool  # ASCEND_HOME_PATH or ASCEND_TOOLKIT_HOME points to it


@dataclass(frozen=True)
class Nnal:
    """Ascend Transformer Boost. ``abis`` are the C++ ABIs it is installed for ("cxx_abi_0", "cxx_abi_1")."""

    path: str
    version: str
    abis: tuple[str, ...]


@dataclass(frozen=True)
class Torch:
    """What lies in torch's own folder. ``cuda`` is the CUDA it is built for, empty for a CPU build."""

    version: str  # as torch/version.py says, which pip's records may contradict
    cuda: str
    cxx11_abi: int


@dataclass(frozen=True)
class TorchNpu:
    """What lies in torch_npu's own folder. ``chips`` are those of this machine that its library names."""

    complete: bool  # the compiled part for this Python is there
    chips: tuple[str, ...]


@dataclass(frozen=True)
class Extension:
    """A compiled extension. ``undefined`` are names of torch_npu or ATB that it wants and nothing here defines."""

    package: str
    path: str
    needs: tuple[str, ...]  # libraries, such as "libtorch_npu.so"
    undefined: tuple[str, ...]


@dataclass(frozen=True)
class Libraries:
    """C and C++ run-time libraries that clash. Numbers are those behind libstdc++.so.6.0."""

    libgomp: tuple[str, ...]  # copies that packages bring along
    conda_libstdcxx: int | None
    system_libstdcxx: int | None


@dataclass(frozen=True)
class Tools:
    """Versions of what compiles; empty where it is missing."""

    compiler: str
    cmake: str


@dataclass(frozen=True)
class Network:
    """The host's network as HCCL meets it, and that of the devices."""

    interfaces: tuple[str, ...]
    port_range: tuple[int, int] | None  # from which the kernel gives ports to any program
    reserved_ports: str
    listening: tuple[int, ...]
    firewall: bool
    device_addresses: dict[str, str]  # /etc/hccn.conf: device number and IP
    tls: dict[str, int]  # device number and switch, 0 or 1


@dataclass(frozen=True)
class RankTable:
    """The file that RANK_TABLE_FILE names. ``state``: "ok", "missing", "link" or "broken" (then ``problem``)."""

    path: str
    state: str
    problem: str
    document: dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """Settings of libraries that decide how training runs."""

    accelerate_precision: str  # mixed_precision in accelerate's own configuration; empty without one
    deepspeed_exports: bool | None  # its launcher hands on the accelerator's variables; None without DeepSpeed
    source_tree: str  # a folder of torch's or torch_npu's sources in which the process was started
    transfer_module: str  # where on the paths an old transfer_to_npu lies
    build_locks: tuple[str, ...]  # lock files that builds of torch extensions left behind, or hold


@dataclass(frozen=True)
class Environment:
    """One machine, as one process saw it."""

    system: System
    user: User
    python: Python
    packages: tuple[Package, ...]
    driver: Driver | None
    firmware: str | None
    smi: Smi
    npus: tuple[Npu, ...]
    npu_processes: tuple[NpuProcess, ...]
    chips: tuple[str, ...]  # each once, as CANN names them: ("Ascend910B3",)
    devices: Devices
    canns: tuple[Cann, ...]
    nnal: Nnal | None
    torch: Torch | None
    torch_npu: TorchNpu | None
    extensions: tuple[Extension, ...]
    libraries: Libraries
    tools: Tools
    network: Network
    rank_table: RankTable | None
    settings: Settings
    active_environment: bool  # the Python is that of VIRTUAL_ENV or CONDA_PREFIX, or neither is set
    dead_paths: tuple[str, ...]  # variables of CANN whose file or folder does not exist
    real_paths: dict[str, str]  # folders of search paths and CANN's variables, with links followed
    variables: dict[str, str] = field(default_factory=dict)  # those that matter here, nobody's secrets

    def package(self, name: str) -> Package | None:
        """The installed distribution that Python would import: the first on the search path."""
        return next((one for one in self.packages if one.name == name), None)

    @property
    def cann(self) -> Cann | None:
        """The toolkit in use: the one that the variables name, else the only one."""
        active = next((one for one in self.canns if one.active), None)
        return active or (self.canns[0] if len(self.canns) == 1 else None)

    @property
    def has_npu(self) -> bool:
        """Whether anything shows that NPUs are or should be here."""
        return bool(self.npus or self.driver or self.devices.pci or self.devices.nodes)
