"""Claim: a second start of a project converts nothing, and other Python processes of a run start as fast as ever.

    python benchmarks/start_of_a_run.py [FOLDER]

Converts the first 200 Python files below FOLDER (by default those of transformers, as installed) as the import hook
does, twice, each time in a process of its own and with a cache of its own, and compiles them alone for comparison.
Then starts Python processes that do nothing, under a run and without one. CPU time throughout.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from npuport.runtime.children import environment

FILES = 200
STARTS = 20
CONVERT = f"""
import sys, time
from pathlib import Path
base = Path(sys.argv[1])
files = sorted(base.rglob("*.py"))[:{FILES}]
began = time.process_time()
from npuport.runtime.importer import converted_code
for file in files:
    converted_code(file, base)
print(time.process_time() - began)
"""
COMPILE = CONVERT.replace("from npuport.runtime.importer import converted_code\n", "").replace(
    "converted_code(file, base)", "compile(file.read_bytes(), str(file), 'exec')"
)


def seconds(program: str, folder: Path, cache: str) -> float:
    """The CPU time that a program of this module prints."""
    command = [sys.executable, "-c", program, os.fspath(folder)]
    done = subprocess.run(
        command, env={**os.environ, "XDG_CACHE_HOME": cache}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def start(variables: dict[str, str]) -> float:
    """Milliseconds of CPU time that a Python process takes which does nothing."""
    taken = []
    for _ in range(STARTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "pass"], env={**os.environ, **variables}, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1000 * statistics.median(taken)


def main() -> None:
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
    else:
        found = importlib.util.find_spec("transformers")
        if found is None or found.origin is None:
            raise SystemExit("transformers is not installed; name a folder of Python files")
        folder = Path(found.origin).parent
    with tempfile.TemporaryDirectory() as cache:
        alone = seconds(COMPILE, folder, cache)
        first, second = (seconds(CONVERT, folder, cache) for _ in range(2))
    print(
        f"{FILES} files of {folder.name}: {first:.2f} s, then {second:.2f} s; compiling them alone takes {alone:.2f} s"
    )
    plain, run = start({}), start({**environment(), "NPUPORT_DEVICE": "npu"})
    print(f"start of a Python process: {plain:.1f} ms, under a run {run:.1f} ms")


if __name__ == "__main__":
    main()
