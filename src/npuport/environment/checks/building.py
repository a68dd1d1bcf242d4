"""What compiles extensions on this machine."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.environment.checks.registry import Problem, check
from npuport.environment.releases import release_key
from npuport.environment.snapshot import Environment
from npuport.findings import say

_OLDEST_COMPILER = (8,)  # the first GCC with <filesystem>
_CMAKE = (3, 18)  # what torch_npu's documents install


@check("ND601")
def no_compiler(env: Environment) -> Iterator[Problem]:
    """No compiler or no CMake."""
    missing = [name for name, version in (("gcc", env.tools.compiler), ("cmake", env.tools.cmake)) if not version]
    if missing and env.has_npu:
        install = {
            "ubuntu": "apt-get install -y build-essential cmake",
            "debian": "apt-get install -y build-essential cmake",
        }
        yield Problem(
            say("Not on PATH: {names}.", names=", ".join(missing)),
            say("Install them where extensions are to be built."),
            (f"sudo {install.get(env.system.os_id, 'dnf install -y gcc gcc-c++ make cmake')}",),
        )


@check("ND602")
def old_compiler(env: Environment) -> Iterator[Problem]:
    """GCC or CMake are too old for extensions of current torch."""
    if env.tools.compiler and release_key(env.tools.compiler) < _OLDEST_COMPILER and env.has_npu:
        yield Problem(
            say("GCC {version} is on PATH.", version=env.tools.compiler),
            say("Install GCC 11 or later where extensions are to be built, or use a container image."),
        )
    if env.tools.cmake and release_key(env.tools.cmake) < _CMAKE and env.has_npu:
        yield Problem(
            say("CMake {version} is on PATH; torch_npu's documents install 3.18.", version=env.tools.cmake),
            say("Install a newer one."),
            ("pip install 'cmake>=3.18,<4'",),
        )


@check("ND603")
def site_packages_in_lib64(env: Environment) -> Iterator[Problem]:
    """Packages lie in lib64 and Apex for Ascend may be built here."""
    if env.python.platlibdir == "lib64" and env.has_npu and env.package("apex") is None:
        yield Problem(
            say("Packages of this Python lie in lib64 ({os}).", os=env.system.os_id),
            say(
                "Before building Apex for Ascend, write lib64 for lib in its setup.py where torch's folder is composed."
            ),
        )


@check("ND604")
def build_lock(env: Environment) -> Iterator[Problem]:
    """A build of a torch extension left its lock."""
    for path in env.settings.build_locks:
        yield Problem(
            say("{path} is there.", path=path),
            say("If no program builds the extension now, remove it."),
            (f"rm '{path}'",),
        )
