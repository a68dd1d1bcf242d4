"""Operating system, user, Python, and the environment variables that matter to training on an NPU."""

from __future__ import annotations

import re
import shlex

from npuport.environment.machine import Machine
from npuport.environment.snapshot import Python, System, User
from npuport.facts import all_ascend_variables

# Names, or beginnings of names, of variables that anything here reads; others stay with their owner.
_VARIABLES = (
    "ACCELERATE_", "ACL_", "ACLNN_", "ASCEND", "ATB_", "COMBINED_ENABLE", "CONDA_PREFIX", "CPU_AFFINITY_CONF",
    "CUBLAS_", "CUDA_", "CUDNN_", "DEVICE_ID", "DS_ACCELERATOR", "GLOO_", "HCCL_", "HTTP_PROXY", "HTTPS_PROXY",
    "INF_NAN_", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_", "MULTI_STREAM_", "NCCL_",
    "NO_PROXY", "NPU_", "NVIDIA_", "OMP_NUM_THREADS", "OOM_SNAPSHOT_", "P2P_HCCL_", "PER_STREAM_QUEUE", "PROF_CONFIG_",
    "PYTHONPATH", "PYTORCH_", "RANK", "STREAMS_PER_DEVICE", "TASK_QUEUE_ENABLE", "TE_PARALLEL_", "TORCH_",
    "TORCHINDUCTOR_", "VIRTUAL_ENV", "WORLD_SIZE", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip
_CREDENTIALS = re.compile(r"//[^/@\s]*@")
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def system(machine: Machine) -> System:
    """The operating system."""
    release = _release(machine.text("/etc/os-release") or machine.text("/usr/lib/os-release") or "")
    return System(
        os_id=release.get("ID", ""),
        os_version=release.get("VERSION_ID", ""),
        arch=machine.process.arch,
        glibc=machine.process.glibc,
        container=any(map(machine.exists, _CONTAINER_MARKS)) or _in_pod(machine),
        shared_memory=machine.process.shared_memory,
    )


def user(machine: Machine) -> User:
    """Who runs."""
    process = machine.process
    return User(
        name=process.user,
        uid=process.uid,
        groups=process.groups,
        home=process.home,
        host=process.host,
        folder=process.folder,
        open_files=process.open_files,
    )


def python(machine: Machine) -> Python:
    """The Python that training would run in."""
    process = machine.process
    if machine.exists(f"{process.prefix}/conda-meta"):
        kind = "conda"
    elif machine.exists(f"{process.prefix}/pyvenv.cfg"):
        kind = "venv"
    else:
        kind = "system"
    return Python(
        version=process.python,
        executable=process.executable,
        prefix=process.prefix,
        kind=kind,
        platlibdir=process.platlibdir,
        search_path=process.search_path,
    )


def variables(machine: Machine) -> dict[str, str]:
    """The variables that matter here, sorted by name, without the passwords of proxies."""
    return {
        name: _CREDENTIALS.sub("//", value)
        for name, value in sorted(machine.variables.items())
        if name.startswith(_VARIABLES)
    }


def active_environment(machine: Machine) -> bool:
    """Whether the Python is the one that the shell would start: a virtual environment wins over conda's."""
    active = machine.variables.get("VIRTUAL_ENV") or machine.variables.get("CONDA_PREFIX")
    return not active or machine.real(active) == machine.real(machine.process.prefix)


def dead_paths(machine: Machine) -> tuple[str, ...]:
    """The variables of CANN and HCCL whose file or folder does not exist."""
    return tuple(
        one.name
        for one in all_ascend_variables()
        if one.kind in ("file", "folder") and (value := machine.variables.get(one.name)) and not machine.exists(value)
    )


def real_paths(machine: Machine) -> dict[str, str]:
    """The folders on search paths and in CANN's variables, by the path with its links followed."""
    folders = [
        path
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ATB_HOME_PATH")
        for path in machine.variables.get(name, "").split(":")
        if path
    ]
    return {path: machine.real(path) for path in (folder.rstrip("/") for folder in folders)}


def _release(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, mark, value = line.partition("=")
        if mark:
            words = shlex.split(value) if value.count('"') % 2 == 0 and value.count("'") % 2 == 0 else [value]
            found[name.strip()] = " ".join(words)
    return found


def _in_pod(machine: Machine) -> bool:
    groups = machine.text("/proc/1/cgroup") or ""
    return any(word in groups for word in ("docker", "kubepods", "containerd", "libpod"))
