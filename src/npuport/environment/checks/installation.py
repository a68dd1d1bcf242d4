"""Compiled parts of packages: for which system, Python and torch_npu they are built, and which libraries they meet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.environment.checks.registry import Problem, check
from npuport.environment.releases import release_key
from npuport.environment.snapshot import Environment
from npuport.findings import say

_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_")
_LIBGOMP = "libgomp"


@check("ND312")
def extension_for_other_torch_npu(env: Environment) -> Iterator[Problem]:
    """An extension wants names that the installed torch_npu does not define."""
    for one in env.extensions:
        if one.package != "torch-npu" and one.undefined:
            more = f" (+{len(one.undefined) - 2})" if len(one.undefined) > 2 else ""
            yield Problem(
                say("{package}: {path} wants {names}, which torch_npu here does not define.", package=one.package,
                    path=one.path, names=", ".join(one.undefined[:2]) + more),
                say("Build or install {package} for this torch_npu, or install the torch_npu it was built with.",
                    package=one.package),
                tuple(_rebuild(one.package)),
            )  # fmt: skip


@check("ND313")
def mmcv_without_npu(env: Environment) -> Iterator[Problem]:
    """MMCV's operators were compiled without NPU kernels, or not at all."""
    if not env.has_npu:
        return
    if env.package("mmcv-lite") is not None:
        yield Problem(
            say("mmcv-lite is installed, which has no operators."),
            say("Build MMCV from source after torch_npu is installed."),
            tuple(_rebuild("mmcv")),
        )
    for one in env.extensions:
        if one.package in ("mmcv", "mmcv-full") and not any("torch_npu" in name for name in one.needs):
            yield Problem(
                say("{path} is not linked with torch_npu.", path=one.path),
                say("Build MMCV from source after torch_npu is installed."),
                tuple(_rebuild("mmcv")),
            )


@check("ND316")
def wheel_for_newer_system(env: Environment) -> Iterator[Problem]:
    """torch or torch_npu come from a wheel for a newer glibc, another Python or processor."""
    here = release_key(env.system.glibc)
    for name in ("torch", "torch-npu"):
        package = env.package(name)
        wanted = [(int(a), int(b)) for tag in (package.tags if package else ()) for a, b in _MANYLINUX.findall(tag)]
        if package is not None and wanted and here and here < min(wanted):
            yield Problem(
                say("{package} {version} is built for glibc {wanted}; this system has {glibc}.", package=name,
                    version=package.version, wanted=".".join(map(str, min(wanted))), glibc=env.system.glibc),
                say("Use a newer system, such as a container image, or an older release."),
            )  # fmt: skip
        arches = {arch for tag in (package.tags if package else ()) for arch in ("aarch64", "x86_64") if arch in tag}
        if package is not None and arches and env.system.arch not in arches:
            yield Problem(
                say("{package} {version} is built for {wanted}; this machine is {arch}.", package=name,
                    version=package.version, wanted=", ".join(sorted(arches)), arch=env.system.arch),
                say("Install it again on this machine."),
                (f"pip install --force-reinstall --no-deps {name}=={package.version}",),
            )  # fmt: skip


@check("ND317")
def libgomp_in_several_copies(env: Environment) -> Iterator[Problem]:
    """Several packages bring a libgomp along on aarch64, and none is loaded first."""
    if env.system.arch != "aarch64" or len(env.libraries.libgomp) < 2 or not env.has_npu:
        return
    if _LIBGOMP not in env.variables.get("LD_PRELOAD", ""):
        first = next((path for path in env.libraries.libgomp if "/torch.libs/" in path), env.libraries.libgomp[0])
        yield Problem(
            say("{number} packages bring a libgomp: {paths}.", number=len(env.libraries.libgomp),
                paths=", ".join(env.libraries.libgomp)),
            say("If an import ends with cannot allocate memory in static TLS block, import torch first or preload it."),
            (f"export LD_PRELOAD={first}",),
        )  # fmt: skip


@check("ND318")
def old_libstdcxx_of_conda(env: Environment) -> Iterator[Problem]:
    """conda's libstdc++ is older than the system's."""
    conda, system = env.libraries.conda_libstdcxx, env.libraries.system_libstdcxx
    if conda is not None and system is not None and conda < system and env.has_npu:
        yield Problem(
            say(
                "conda's libstdc++.so.6.0.{conda} is older than the system's 6.0.{system}.", conda=conda, system=system
            ),
            say("Install a newer one in the environment."),
            ("conda install -c conda-forge 'libstdcxx-ng>=12'",),
        )


@check("ND319")
def started_in_source_tree(env: Environment) -> Iterator[Problem]:
    """The current directory holds the sources of torch or torch_npu."""
    if env.settings.source_tree:
        yield Problem(
            say("{folder} is a folder of sources without compiled parts.", folder=env.settings.source_tree),
            say("Start Python in another directory."),
            ('cd "$HOME" || return',),
        )


@check("ND320")
def torch_npu_incomplete(env: Environment) -> Iterator[Problem]:
    """torch_npu without its compiled part for this Python."""
    package = env.package("torch-npu")
    if package is not None and env.torch_npu is not None and not env.torch_npu.complete:
        yield Problem(
            say("torch_npu {version} has no _C for Python {python}.", version=package.version,
                python=env.python.version),
            say("Install it again with the pip of this Python."),
            (f"{env.python.executable} -m pip install --force-reinstall --no-deps torch-npu=={package.version}",),
        )  # fmt: skip


@check("ND321")
def torch_npu_not_loaded(env: Environment) -> Iterator[Problem]:
    """torch is told not to load torch_npu."""
    if env.variables.get("TORCH_DEVICE_BACKEND_AUTOLOAD") == "0" and env.has_npu:
        yield Problem(
            say("TORCH_DEVICE_BACKEND_AUTOLOAD is 0."),
            say("Unset it, or import torch_npu in each program."),
            ("unset TORCH_DEVICE_BACKEND_AUTOLOAD",),
        )


@check("ND326")
def other_python_active(env: Environment) -> Iterator[Problem]:
    """An environment is active, and another Python was looked at."""
    active = env.variables.get("VIRTUAL_ENV") or env.variables.get("CONDA_PREFIX")
    if active and not env.active_environment:
        yield Problem(
            say(
                "The active environment is {active}; this looked at {prefix}.", active=active, prefix=env.python.prefix
            ),
            say("Look at the Python that trains."),
            (f"npuport doctor --python {active}/bin/python",),
        )


def _rebuild(package: str) -> Iterator[str]:
    if package.startswith("mmcv"):
        yield "pip uninstall -y mmcv mmcv-full mmcv-lite"
        yield "git clone https://github.com/open-mmlab/mmcv"
        build = "python setup.py build_ext && python setup.py develop"
        yield f"(cd mmcv && export MMCV_WITH_OPS=1 FORCE_NPU=1 && {build})"
