"""Machines that do not exist: files below a temporary root, answers of commands, variables, and a process.

`trained_on()` is one on which nothing is wrong: eight Ascend910B3, driver 25.2.0, CANN 8.2.RC1, torch 2.5.1. A test
changes what its case is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from npuport.environment.machine import Answer, Machine, Process
from npuport.environment.probe import probe
from npuport.environment.snapshot import Environment

SITE = "/home/ada/venv/lib/python3.10/site-packages"
TOOLKIT = "/usr/local/Ascend/ascend-toolkit/8.2.RC1"
NNAL = "/usr/local/Ascend/nnal/atb/8.2.RC1"
TREE = object()
"""In place of a text: a folder."""


@dataclass(frozen=True)
class Link:
    """In place of a text: a symbolic link."""

    target: str


def npu_smi_info(chip: str = "910B3", count: int = 8, health: str = "OK", memory: int = 65536) -> str:
    """The table that `npu-smi info` prints for `count` devices."""
    rule = "+===========================+===============+====================================================+"
    lines = [
        "+------------------------------------------------------------------------------------------------+",
        "| npu-smi 25.2.0                   Version: 25.2.0                                               |",
        "+---------------------------+---------------+----------------------------------------------------+",
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|",
        "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |",
        rule,
    ]
    for number in range(count):
        lines += [
            f"| {number:<5} {chip:<19} | {health:<13} | 93.4        38                0    / 0             |",
            f"| 0                         | 0000:C{number}:00.0  | 0           0    / 0          3161 / {memory:<13} |",
            rule,
        ]
    lines += [
        "| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |",
        rule,
        "| No running processes found in NPU 0                                                            |",
    ]
    return "\n".join(lines) + "\n"


def distribution(
    name: str, version: str, *requires: str, tag: str = "py3-none-any", site: str = SITE
) -> dict[str, str]:
    """The files of an installed distribution that are read."""
    folder = f"{site}/{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    return {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}\nAbout it.\n",
        f"{folder}/WHEEL": f"Wheel-Version: 1.0\nTag: {tag}\n",
    }


def toolkit(
    version: str, path: str, arch: str = "aarch64", chips: Sequence[str] = ("ascend910b",)
) -> dict[str, object]:
    """The files of a CANN toolkit with the operator packages of some chips."""
    kernels = {f"{path}/opp/built-in/op_impl/ai_core/tbe/kernel/{chip}": TREE for chip in chips}
    return {
        f"{path}/{arch}-linux/ascend_toolkit_install.info": (
            f"package_name=Ascend-cann-toolkit\nversion={version}\ninnerversion=V100R001C22SPC001B231\narch={arch}\n"
            f"os=linux\npath={path}/{arch}-linux\n"
        ),
        f"{path}/opp_kernel/version.info": f"Version=8.2.0.0.201\nversion_dir={version}\n" if chips else "",
        f"{path}/set_env.sh": "export ASCEND_HOME_PATH\n",
        f"{path}/lib64/libascendcl.so": "",
        f"{path}/{arch}-linux/lib64/libhccl.so": "",
        **kernels,
    }


@dataclass(frozen=True)
class Faked:
    """What a machine holds. A file's value is its text, a `Link`, or `TREE`; None removes it."""

    files: Mapping[str, object]
    commands: Mapping[str, Answer]
    variables: Mapping[str, str]
    process: Process

    def having(self, files: Mapping[str, object] | None = None, **variables: str | None) -> Faked:
        """With these files and variables too; None takes one away."""
        return replace(
            self,
            files={**self.files, **(files or {})},
            variables={k: v for k, v in {**self.variables, **variables}.items() if v is not None},
        )

    def without(self, *beginnings: str) -> Faked:
        """Without the files whose paths begin so."""
        return replace(self, files={k: v for k, v in self.files.items() if not k.startswith(beginnings)})

    def answering(self, command: str, output: str | None, code: int | None = 0, timed_out: bool = False) -> Faked:
        """With this answer of a command; None for one that is not there."""
        answer = Answer(None if output is None else code, output or "", timed_out)
        return replace(self, commands={**self.commands, command: answer})

    def running(self, **changes: object) -> Faked:
        """With a process that differs."""
        return replace(self, process=replace(self.process, **changes))  # type: ignore[arg-type]

    def machine(self, root: Path) -> Machine:
        """Written below a folder."""
        for name, content in self.files.items():
            path = root / name.lstrip("/")
            if content is TREE:
                path.mkdir(parents=True, exist_ok=True)
            elif isinstance(content, Link):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(content.target)
            elif isinstance(content, bytes):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            elif content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(content), encoding="utf-8")
        return Machine(
            root, self.variables, lambda command: self.commands.get(" ".join(command), Answer(None)), self.process
        )

    def environment(self, root: Path) -> Environment:
        """As the probes see it."""
        return probe(self.machine(root))


def trained_on() -> Faked:
    """A machine on which training works."""
    files: dict[str, object] = {
        "/etc/os-release": 'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\n',
        "/etc/ascend_install.info": (
            "UserName=HwHiAiUser\nUserGroup=HwHiAiUser\nFirmware_Install_Type=full\n"
            "Firmware_Install_Path_Param=/usr/local/Ascend\nDriver_Install_Type=full\n"
            "Driver_Install_Path_Param=/usr/local/Ascend\nDriver_Install_For_All=no\n"
        ),
        "/usr/local/Ascend/driver/version.info": (
            "Version=25.2.0\nascendhal_version=7.35.23\n"
            "compatible_version_fw=[6.4.0,6.4.99],[7.0.0,7.7.99]\npackage_version=25.2.0\n"
        ),
        "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so": "",
        "/usr/local/Ascend/ascend-toolkit/8.2.RC1/opp/built-in": TREE,
        "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
        "/proc/sys/net/ipv4/ip_local_reserved_ports": "60000-60031\n",
        "/sys/class/net/lo": TREE,
        "/sys/class/net/enp189s0f0": TREE,
        "/etc/hccn.conf": "".join(f"address_{n}=192.168.100.10{n}\nnetmask_{n}=255.255.255.0\n" for n in range(8)),
        "/usr/local/Ascend/firmware/version.info": "Version=7.7.0.1.231\npackage_version=25.2.0\n",
        "/usr/local/Ascend/ascend-toolkit/latest": Link("8.2.RC1"),
        f"{NNAL}/version.info": "    Ascend-cann-atb : 8.2.RC1\n    Ascend-cann-atb Version : 8.2.RC1.B100\n",
        f"{NNAL}/atb/cxx_abi_0/lib/libatb.so": "",
        f"{NNAL}/atb/cxx_abi_1/lib/libatb.so": "",
        "/usr/local/Ascend/nnal/atb/latest": Link("8.2.RC1"),
        "/home/ada/venv/pyvenv.cfg": "home = /usr/bin\n",
        **toolkit("8.2.RC1", TOOLKIT),
        **{f"/dev/{name}": "" for name in ("davinci_manager", "devmm_svm", "hisi_hdc")},
        **{f"/dev/davinci{number}": "" for number in range(8)},
        **distribution("torch", "2.5.1", "numpy", tag="cp310-cp310-manylinux_2_17_aarch64"),
        f"{SITE}/torch/version.py": "__version__ = '2.5.1'\ncuda: Optional[str] = None\n",
        f"{SITE}/torch/share/cmake/Torch/TorchConfig.cmake": 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")\n',
        **distribution("torch_npu", "2.5.1.post1", "torch==2.5.1", tag="cp310-cp310-manylinux_2_17_aarch64"),
        f"{SITE}/torch_npu/__init__.py": "",
        f"{SITE}/torch_npu/lib/libtorch_npu.so": "Ascend910B3\0Ascend910A\0",
        f"{SITE}/torch_npu/_C.cpython-310-aarch64-linux-gnu.so": "",
        **distribution("torchvision", "0.20.1", "numpy", "torch==2.5.1"),
        **distribution("transformers", "4.51.3", "numpy>=1.17"),
    }
    for name, version in (
        ("numpy", "1.26.4"), ("attrs", "25.3.0"), ("decorator", "5.2.1"), ("sympy", "1.13.1"), ("cffi", "1.17.1"),
        ("PyYAML", "6.0.2"), ("pathlib2", "2.3.7"), ("psutil", "7.0.0"), ("protobuf", "3.20.3"), ("scipy", "1.13.1"),
        ("requests", "2.32.3"), ("absl_py", "2.2.2"), ("setuptools", "65.5.0"),
    ):  # fmt: skip
        files |= distribution(name, version)
    return Faked(
        files=files,
        commands={
            "npu-smi info": Answer(0, npu_smi_info()),
            "gcc --version": Answer(0, "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0\n"),
            "cmake --version": Answer(0, "cmake version 3.22.1\n"),
        },
        variables={
            "HOME": "/home/ada",
            "VIRTUAL_ENV": "/home/ada/venv",
            "ASCEND_HOME_PATH": "/usr/local/Ascend/ascend-toolkit/latest",
            "ASCEND_TOOLKIT_HOME": "/usr/local/Ascend/ascend-toolkit/latest",
            "ASCEND_OPP_PATH": "/usr/local/Ascend/ascend-toolkit/latest/opp",
            "ATB_HOME_PATH": "/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_0",
            "LD_LIBRARY_PATH": (
                "/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_0/lib:/usr/local/Ascend/ascend-toolkit/latest/lib64:"
                "/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/lib64/driver"
            ),
        },
        process=Process(
            arch="aarch64",
            host="node17",
            user="ada",
            uid=1000,
            groups=("HwHiAiUser", "ada"),
            home="/home/ada",
            folder="/home/ada/work",
            glibc="2.35",
            open_files=65536,
            shared_memory=64 << 30,
            python="3.10.12",
            executable="/home/ada/venv/bin/python",
            prefix="/home/ada/venv",
            platlibdir="lib",
            search_path=("/usr/lib/python3.10", SITE),
        ),
    )


def without_npu() -> Faked:
    """A laptop: no device, no driver, no CANN."""
    bare = trained_on().without("/usr/local/Ascend", "/etc/ascend_install.info", "/dev")
    named = dict.fromkeys(
        ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ATB_HOME_PATH", "LD_LIBRARY_PATH")
    )
    return bare.having(None, **named).answering("npu-smi info", None)
