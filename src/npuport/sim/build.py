"""Compile once, keep the result: a directory in the user's cache, named by the hash of everything that went into it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import platformdirs

from npuport.sim.errors import SimulationUnavailable

NATIVE = Path(__file__).parent / "native"


def cache_directory() -> Path:
    """Where compiled parts are kept between runs."""
    return Path(platformdirs.user_cache_dir("npuport")) / "sim"


def key_of(files: Sequence[Path], *facts: str) -> str:
    """A name for what compiling ``files`` under ``facts`` (versions, compiler, flags) gives: 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    for fact in facts:
        digest.update(fact.encode() + b"\0")
    return digest.hexdigest()[:16]


def once(name: str, build: Callable[[Path], None]) -> Path:
    """The cached directory ``name``; ``build`` fills it first if there is none.

    Of several processes that start at once one builds and the others wait. A build that fails leaves nothing behind.
    """
    final = cache_directory() / name
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with _locked(final.with_suffix(".lock")):
        if final.is_dir():
            return final
        aside = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=final.parent))
        try:
            build(aside)
            aside.chmod(0o755)
            aside.rename(final)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    return final


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed, also if this process dies
        yield


def compiler_identity(compiler: str) -> str:
    """First line of ``compiler --version``."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.split("\n", 1)[0]


def compile_with(command: Sequence[str | os.PathLike[str]]) -> None:
    """Run one compiler command.

    Raises:
        SimulationUnavailable: the compiler failed; the text carries the first lines it wrote.
    """
    done = subprocess.run([os.fspath(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = "\n  ".join(done.stderr.strip().splitlines()[:12])
        raise SimulationUnavailable(
            f"compiling the simulated NPU failed:\n  {lines}",
            f"the command was: {' '.join(os.fspath(part) for part in command)}",
        )
