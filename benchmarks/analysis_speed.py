"""Claim: reading a whole package costs little more than parsing it.

    python benchmarks/analysis_speed.py [DIRECTORY ...] [--package NAME==VERSION] [--runs N]

Prints the CPU seconds (user + system, children included) of `npuport analyze` and `npuport convert` as a multiple of a
process that runs `ast.parse` over the same files: each on its own without a cache; one after the other with a cache
that is empty before, as users run them; and both again, when all is known. One process each, the start included; the
best of N runs counts. npuport is compiled to bytecode, as pip leaves it. With several directories a last line adds all
up. Without one the source distribution of the package is fetched with pip.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

PARSE = """
import ast, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
for path in sorted(Path(sys.argv[1]).rglob("*.py")):
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        pass
"""


_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds(command: list[str], cache: str = "") -> float:
    """User and system seconds of a command and its children, whose user cache is the folder ``cache``.

    Raises:
        SystemExit: when the command misuses its input (exit code 2 or a signal).
    """
    environment = {**_ENVIRONMENT, **({"XDG_CACHE_HOME": cache} if cache else {})}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, env=environment
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


@dataclass(frozen=True)
class Seconds:
    """CPU seconds for one tree, or for several."""

    parse: float
    analyze: float
    convert: float
    analyze_first: float  # these with a cache, which is empty at first
    convert_then: float
    both_again: float

    def __str__(self) -> str:
        def times(seconds: float) -> str:
            return f"{seconds / self.parse:.2f} x"

        return (
            f"ast.parse {self.parse:.2f} s of CPU; without a cache analyze {times(self.analyze)}, convert"
            f" {times(self.convert)}, together {times(self.analyze + self.convert)}; with one analyze"
            f" {times(self.analyze_first)}, then convert {times(self.convert_then)}, together"
            f" {times(self.analyze_first + self.convert_then)}; both again {times(self.both_again)}"
        )


def measured(tree: Path) -> Seconds:
    """Each command once."""
    analyze = [sys.executable, "-m", "npuport", "analyze", str(tree), "-j", "1", "--fail-on", "never"]
    convert = [sys.executable, "-m", "npuport", "convert", str(tree), "-j", "1", "--check"]
    with tempfile.TemporaryDirectory() as cache:
        return Seconds(
            parse=cpu_seconds([sys.executable, "-c", PARSE, str(tree)]),
            analyze=cpu_seconds([*analyze, "--no-cache"]),
            convert=cpu_seconds([*convert, "--no-cache"]),
            analyze_first=cpu_seconds(analyze, cache),
            convert_then=cpu_seconds(convert, cache),
            both_again=cpu_seconds(analyze, cache) + cpu_seconds(convert, cache),
        )


def together(how: Callable[[Iterable[float]], float], several: Sequence[Seconds]) -> Seconds:
    """The figures of several made one, each by itself."""
    return Seconds(*(how(figures) for figures in zip(*map(astuple, several), strict=True)))


def fetch(package: str, into: Path) -> Path:
    """The unpacked source distribution of ``package``."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(into)]
    subprocess.run([*pip, package], check=True)
    (archive,) = into.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="data")
    (folder,) = (path for path in into.iterdir() if path.is_dir())
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directories", nargs="*", type=Path)
    parser.add_argument("--package", default="transformers==4.57.1")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        trees = arguments.directories or [fetch(arguments.package, Path(scratch))]
        best = []
        for tree in trees:
            best.append(together(min, [measured(tree) for _ in range(arguments.runs)]))
            print(f"{tree.name} ({sum(1 for _ in tree.rglob('*.py'))} Python files): {best[-1]}", flush=True)
    if len(best) > 1:
        print(f"all {len(best)}: {together(sum, best)}")


if __name__ == "__main__":
    main()
