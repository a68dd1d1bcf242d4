"""Settings of libraries, what compiles, and files that stand in the way of an import."""

from __future__ import annotations

import re
from collections.abc import Sequence

from npuport.environment.machine import Machine
from npuport.environment.snapshot import Package, Settings, Tools

COMPILER, CMAKE = ("gcc", "--version"), ("cmake", "--version")

_VERSION = re.compile(r"(\d+\.\d+(?:\.\d+)?)\s*$", re.MULTILINE)
_PRECISION = re.compile(r"^mixed_precision:\s*['\"]?(\w+)", re.MULTILINE)
_SOURCES = {"torch_npu": "csrc", "torch": "csrc"}


def tools(machine: Machine) -> Tools:
    """The compiler and CMake on the path."""
    return Tools(_version_of(machine, COMPILER), _version_of(machine, CMAKE))


def settings(machine: Machine, packages: Sequence[Package]) -> Settings:
    """Settings that decide how training runs."""
    return Settings(
        accelerate_precision=_accelerate_precision(machine),
        deepspeed_exports=_deepspeed_exports(machine, packages),
        source_tree=_source_tree(machine),
        transfer_module=_transfer_module(machine),
        build_locks=_build_locks(machine),
    )


def _version_of(machine: Machine, command: tuple[str, ...]) -> str:
    answer = machine.run(command)
    match = _VERSION.search(answer.output) if answer.code == 0 else None
    return match[1] if match else ""


def _accelerate_precision(machine: Machine) -> str:
    named = machine.variables.get("ACCELERATE_MIXED_PRECISION", "")
    cache = machine.variables.get("HF_HOME") or f"{machine.process.home}/.cache/huggingface"
    match = _PRECISION.search(machine.text(f"{cache}/accelerate/default_config.yaml") or "")
    return named or (match[1] if match else "")


def _deepspeed_exports(machine: Machine, packages: Sequence[Package]) -> bool | None:
    folder = next((package.location for package in packages if package.name == "deepspeed"), None)
    text = machine.text(f"{folder}/deepspeed/launcher/runner.py") if folder else None
    return None if text is None else "export_envs()" in text or "HCCL" in text


def _source_tree(machine: Machine) -> str:
    folder = machine.process.folder
    for name, part in _SOURCES.items():
        here = machine.names(f"{folder}/{name}")
        if part in here and "__init__.py" in here and not any(entry.startswith("_C.") for entry in here):
            return f"{folder}/{name}"
    return ""


def _transfer_module(machine: Machine) -> str:
    paths = machine.variables.get("PYTHONPATH", "").split(":")
    return next((path for path in paths if path and machine.exists(f"{path}/transfer_to_npu.py")), "")


def _build_locks(machine: Machine) -> tuple[str, ...]:
    """torch keeps a build in torch_extensions/<Python and device>/<name>, with a file named lock while it runs."""
    root = machine.variables.get("TORCH_EXTENSIONS_DIR") or f"{machine.process.home}/.cache/torch_extensions"
    kinds = [f"{root}/{kind}" for kind in machine.names(root)]
    folders = kinds + [f"{kind}/{name}" for kind in kinds for name in machine.names(kind)]
    return tuple(f"{folder}/lock" for folder in folders if "lock" in machine.names(folder))
