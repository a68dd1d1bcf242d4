"""The one door to the machine: files below a root, environment variables, commands with a time limit, this process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from npuport.errors import UserError

_OTHER_PYTHON = 10.0  # seconds that another Python may take to start
_TEXT_LIMIT = 4 << 20  # bytes; no file that is read here is larger


@dataclass(frozen=True)
class Answer:
    """What a command said. ``code`` is None where it was not found or did not end in time."""

    code: int | None
    output: str = ""
    timed_out: bool = False


Runner = Callable[[Sequence[str]], Answer]


@dataclass(frozen=True)
class Process:
    """What a process knows of itself and its kernel, and the Python that training would run in."""

    arch: str  # "aarch64" or "x86_64"
    host: str
    user: str
    uid: int
    groups: tuple[str, ...]
    home: str
    folder: str  # where it was started
    glibc: str  # "2.35"; empty where the C library is another
    open_files: int | None  # soft limit; None means no limit
    shared_memory: int | None  # bytes of /dev/shm
    python: str  # "3.11.4"
    executable: str
    prefix: str
    platlibdir: str  # "lib64" on openEuler and its relatives
    search_path: tuple[str, ...]  # sys.path without archives


@dataclass(frozen=True)
class Machine:
    """Read-only access. Paths are those of the machine ("/etc/os-release"); files are looked up below ``root``."""

    root: Path
    variables: Mapping[str, str]
    run: Runner
    process: Process

    def path(self, name: str) -> Path:
        """Where a file of the machine lies."""
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str | None:
        """The text of a file; None if it cannot be read."""
        try:
            with self.path(name).open("rb") as file:
                return file.read(_TEXT_LIMIT).decode("utf-8", errors="replace")
        except (OSError, ValueError):
            return None

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        try:
            return self.path(name).exists()
        except (OSError, ValueError):
            return False

    def names(self, folder: str) -> tuple[str, ...]:
        """What a folder holds, sorted; empty if it cannot be read."""
        try:
            return tuple(sorted(entry.name for entry in self.path(folder).iterdir()))
        except (OSError, ValueError):
            return ()

    def real(self, name: str) -> str:
        """The path with its links followed, as the machine calls it."""
        try:
            found = self.path(name).resolve()
            return "/" + found.relative_to(self.root.resolve()).as_posix()
        except (OSError, ValueError):
            return name


def this_machine(time_limit: float, python: Path | None = None) -> Machine:
    """The machine that runs us, with the Python that runs us or another; a command may take ``time_limit`` seconds.

    Raises:
        UserError: ``python`` does not answer.
    """
    process = this_process()
    if python is not None:
        process = replace(process, **_python_facts(python))
    return Machine(Path("/"), dict(os.environ), lambda command: run_command(command, time_limit), process)


def _python_facts(python: Path) -> dict[str, Any]:
    """What another Python says of itself. It imports nothing of its packages."""
    program = (
        "import json, platform, sys; print(json.dumps(dict(python=platform.python_version(), "
        "executable=sys.executable, prefix=sys.prefix, platlibdir=getattr(sys, 'platlibdir', 'lib'), "
        "search_path=sys.path)))"
    )
    answer = run_command((os.fspath(python), "-c", program), _OTHER_PYTHON)
    try:
        facts: dict[str, Any] = json.loads(answer.output.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise UserError("{python} does not run as a Python. Check the path.", python=python) from error
    # With -c the first entry is the current directory, as it would be in an interactive session.
    return {**facts, "search_path": tuple(path for path in facts["search_path"] if path and not path.endswith(".zip"))}


def run_command(command: Sequence[str], time_limit: float) -> Answer:
    """Run a command that only reads, without a terminal, in English."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except OSError as error:
        return Answer(None, str(error))
    try:
        output, _ = child.communicate(timeout=time_limit)
    except subprocess.TimeoutExpired:
        # Not waited for: a program that hangs in the driver does not end, even when it is killed.
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        return Answer(None, timed_out=True)
    return Answer(child.returncode, output.decode(errors="replace"))


def this_process() -> Process:
    """The running process; nothing is imported that a broken installation could lack."""
    import platform

    uid = getattr(os, "getuid", lambda: -1)()
    return Process(
        arch=platform.machine(),
        host=platform.node(),
        user=_user(uid),
        uid=uid,
        groups=_groups(),
        home=_home(),
        folder=_folder(),
        glibc=_glibc(),
        open_files=_open_files(),
        shared_memory=_size_of("/dev/shm"),
        python=platform.python_version(),
        executable=sys.executable,
        prefix=sys.prefix,
        platlibdir=sys.platlibdir,
        search_path=tuple(os.fspath(Path(path).absolute()) for path in sys.path if not path.endswith(".zip")),
    )


def _folder() -> str:
    try:
        return os.fspath(Path.cwd())
    except OSError:
        return ""


def _home() -> str:
    try:
        return os.fspath(Path.home())
    except RuntimeError:
        return ""


def _user(uid: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def _groups() -> tuple[str, ...]:
    try:
        import grp
    except ImportError:
        return ()
    known = {group.gr_gid: group.gr_name for group in grp.getgrall()}
    return tuple(sorted(known.get(number, str(number)) for number in {*os.getgroups(), os.getgid()}))


def _glibc() -> str:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    except (AttributeError, OSError, ValueError):
        return ""


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _size_of(folder: str) -> int | None:
    try:
        found = os.statvfs(folder)
    except (AttributeError, OSError):
        return None
    return found.f_frsize * found.f_blocks
