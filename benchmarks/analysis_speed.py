"""Claim: reading a whole package costs little more than parsing it.

    python benchmarks/analysis_speed.py [DIRECTORY] [--package NAME==VERSION]

Prints the CPU seconds (user + system, children included) of `npuport analyze` and `npuport convert` as a multiple of a
process that runs `ast.parse` over the same files. All run one after the other, each in one process; the best of three
counts. Without DIRECTORY the source distribution of the package is fetched with pip.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tarfile
import tempfile
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


def cpu_seconds(command: list[str]) -> float:
    """User and system seconds of a command and its children.

    Raises:
        SystemExit: when the command misuses its input (exit code 2 or a signal).
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def best(command: list[str], runs: int = 3) -> float:
    return min(cpu_seconds(command) for _ in range(runs))


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
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--package", default="transformers==4.57.1")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tree = arguments.directory or fetch(arguments.package, Path(scratch))
        files = sum(1 for _ in tree.rglob("*.py"))
        npuport = [sys.executable, "-m", "npuport"]
        floor = best([sys.executable, "-c", PARSE, str(tree)])
        analyze = best([*npuport, "analyze", str(tree), "-j", "1", "--no-cache", "--fail-on", "never"])
        convert = best([*npuport, "convert", str(tree), "--check", "-j", "1", "--no-cache"])
        print(f"{tree.name}: {files} Python files, ast.parse {floor:.2f} s of CPU")
        print(f"analyze {analyze:.2f} s = {analyze / floor:.2f} x, convert {convert:.2f} s = {convert / floor:.2f} x")
        print(f"analyze + convert = {(analyze + convert) / floor:.2f} x ast.parse (goal: at most 4)")


if __name__ == "__main__":
    main()
