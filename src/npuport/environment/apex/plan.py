"""What it takes to build Apex for Ascend on one machine, step by step, each with its reason.

Source of the steps: Ascend/apex, README, scripts/build.sh and scripts/docker/README.md. Only C++ is compiled
(``--cpp_ext``), no kernel, so that neither CANN nor an NPU is needed for the build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import Version

from npuport.environment.probes.packages import packages
from npuport.environment.probes.system import system
from npuport.facts.apex_builds import APEX_COMMIT, APEX_SETUPTOOLS, APEX_VERSION, apex_build_for
from npuport.findings import Sentence, say

if TYPE_CHECKING:
    from npuport.environment.machine import Machine
    from npuport.environment.snapshot import Package

ASCEND = "https://gitcode.com/Ascend/apex.git"
NVIDIA = "https://github.com/NVIDIA/apex.git"
_RED_HAT = {"openEuler", "centos", "rhel", "rocky", "almalinux", "fedora", "kylin", "euleros", "anolis", "bclinux"}
_DOCKER = "/etc/systemd/system/docker.service.d"
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


@dataclass(frozen=True)
class Step:
    """Commands of bash, and why they are there. ``$python``, ``$work`` and ``$torch_folder`` are set before."""

    reason: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class BuildPlan:
    """The steps, what they end in, and what keeps them from succeeding as far as this machine shows."""

    python: str
    torch: str
    wheel: str
    steps: tuple[Step, ...]
    blockers: tuple[Sentence, ...]
    notes: tuple[Sentence, ...]


def build_plan(machine: Machine) -> BuildPlan:
    """The plan for the Python that runs us, and the torch in it."""
    process = machine.process
    installed = {package.name: package for package in packages(machine)}
    torch = installed.get("torch")
    minor = ".".join(process.python.split(".")[:2])
    tag = f"cp{minor.replace('.', '')}"
    wheel = f"apex-{APEX_VERSION}-{tag}-{tag}-linux_{process.arch}.whl"
    red_hat = system(machine).os_id in _RED_HAT
    steps = (
        _tools(red_hat),
        _torch(minor),
        *_setuptools(installed.get("setuptools"), minor),
        _sources(machine),
        _patch(),
        *_lib64(torch, process.prefix),
        _compile(wheel),
        _install(wheel, installed.get("apex")),
    )
    return BuildPlan(
        process.executable,
        torch.version if torch else "",
        wheel,
        steps,
        tuple(_blockers(torch, minor)),
        tuple(_notes(machine, torch)),
    )


def _tools(red_hat: bool) -> Step:
    manager = "dnf install -y git patch gcc-c++ python3-devel" if red_hat else "apt-get install -y git patch g++"
    return Step(
        "The patch is applied with patch(1), and C++ is compiled against Python's headers.",
        (
            "for tool in git patch g++; do",
            '  command -v "$tool" > /dev/null || { echo "missing: $tool. As root: ' + manager + '" >&2; exit 1; }',
            "done",
        ),
    )


def _torch(minor: str) -> Step:
    return Step(
        "setup.py imports torch and links against its libraries: the build needs the same torch as training. The\n"
        "variable keeps torch from loading torch_npu, which would ask for CANN.",
        (
            "export TORCH_DEVICE_BACKEND_AUTOLOAD=0",
            'torch_folder=$("$python" -c "import os, torch; print(os.path.dirname(torch.__file__))")',
            'test -e "$torch_folder/lib/libtorch_python.so"',
            f'"$python" -c "import sys; sys.exit(sys.version_info[:2] != ({minor.replace(".", ", ")}))"',
        ),
    )


def _setuptools(package: Package | None, minor: str) -> list[Step]:
    """Nothing where the version fits, and from Python 3.12 on, which such an old setuptools does not know."""
    if Version(minor) >= Version("3.12"):
        return []
    if package is not None and Version(package.version) <= Version(APEX_SETUPTOOLS):
        return []
    return [
        Step(
            f"Apex is documented to build with setuptools {APEX_SETUPTOOLS} or older; this changes this Python's.",
            (f"\"$python\" -m pip install 'setuptools<={APEX_SETUPTOOLS}' wheel",),
        )
    ]


def _sources(machine: Machine) -> Step:
    known = next((name for name in _PROXIES if machine.variables.get(name)), None)
    none = "none is set; where the network needs one: export https_proxy=http://HOST:PORT"
    proxy = f"{known} is set" if known else none
    return Step(
        "Ascend's patch is for one commit of NVIDIA's Apex, not for its newest state.\n"
        f"git and pip take a proxy from the environment: {proxy}.",
        (
            'mkdir -p "$work"',
            'cd "$work"',
            'test ! -e ascend_apex || { echo "$work/ascend_apex exists: remove it first" >&2; exit 1; }',
            f"git clone --depth 1 {ASCEND} ascend_apex",
            f"git clone {NVIDIA} ascend_apex/apex",
            f"git -C ascend_apex/apex checkout --quiet {APEX_COMMIT}",
        ),
    )


def _patch() -> Step:
    return Step(
        "The patch changes NVIDIA's files; new ones lie in src. This is what scripts/build.sh does, step by step.",
        (
            "cd ascend_apex/apex",
            "patch -p1 < ../patch/npu.patch",
            "cp -r ../src/. .",
        ),
    )


def _lib64(torch: Package | None, prefix: str) -> list[Step]:
    if torch is None or "/lib64/" not in torch.location:
        return []
    return [
        Step(
            f"torch lies in {torch.location}, and setup.py looks in {prefix}/lib:\n"
            "without this, libtorch is not found when the extension is linked (openEuler, CentOS).",
            ("sed -i 's#/lib/python#/lib64/python#g' setup.py",),
        )
    ]


def _compile(wheel: str) -> Step:
    return Step(
        "C++ only (flatten and unflatten). NVIDIA's kernels are not built: FusedAdam and FusedLAMB are gone.",
        (
            '"$python" setup.py --cpp_ext bdist_wheel',
            f"test -e dist/{wheel} || {{ ls dist; exit 1; }}",
        ),
    )


def _install(wheel: str, apex: Package | None) -> Step:
    there = f"apex {apex.version} is installed here. " if apex is not None else ""
    return Step(
        f"{there}An old apex is uninstalled first, since pip takes one of the same version for the new one.",
        (
            '"$python" -m pip uninstall -y apex',
            f'"$python" -m pip install --no-deps "dist/{wheel}"',
        ),
    )


def _blockers(torch: Package | None, minor: str) -> list[Sentence]:
    if torch is None:
        return [say("torch is not installed in this Python, and Apex is linked against it")]
    build = apex_build_for(torch.version)
    if build is None:
        return [say("Apex for Ascend is not documented with torch {version}", version=torch.version)]
    if build.python and minor not in build.python:
        return [
            say(
                "Apex for Ascend is documented with torch {torch} for Python {pythons}, not {python}",
                torch=build.torch,
                pythons=", ".join(build.python),
                python=minor,
            )
        ]
    return []


def _notes(machine: Machine, torch: Package | None) -> list[Sentence]:
    build = apex_build_for(torch.version) if torch is not None else None
    notes = []
    if build is not None:
        notes.append(
            say(
                "torch {torch} goes with CANN {canns} in Apex's documents; the build itself needs no CANN",
                torch=build.torch,
                canns=", ".join(build.cann),
            )
        )
    if any(machine.exists(name) for name in ("/usr/bin/docker", "/var/run/docker.sock")):
        text = " ".join(machine.text(f"{_DOCKER}/{name}") or "" for name in machine.names(_DOCKER))
        if "PROXY" not in text.upper():
            notes.append(
                say(
                    "docker pull takes no proxy from the shell: for a build in scripts/docker, the daemon needs it in"
                    " {folder}/proxy.conf, then systemctl daemon-reload and systemctl restart docker",
                    folder=_DOCKER,
                )
            )
    notes.append(say("new code needs no Apex: npuport convert --unsafe-fixes turns it into torch.amp"))
    return notes
