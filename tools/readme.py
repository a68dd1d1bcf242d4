"""Refreshes the output that both READMEs show: `python tools/readme.py`. A test fails while it is out of date."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READMES = {"README.md": "en", "README.zh.md": "zh"}
# Commands that write nothing into the repository; a simulated run is too long to repeat here.
COMMAND = re.compile(r"^\$ npuport ((?:analyze|convert) .*)\n((?:(?!\$ |```).*\n)*)", re.MULTILINE)
SECONDS = re.compile(r"\d+\.\d s$", re.MULTILINE)
NEXT_STEPS = re.compile(r"^(?:Next:|下一步：).*\Z", re.MULTILINE | re.DOTALL)


def output(arguments: list[str], language: str) -> str:
    """What npuport prints in the repository's root; what goes to ``-o DIR`` is written elsewhere and shown as DIR."""
    with tempfile.TemporaryDirectory() as aside:
        elsewhere = str(Path(aside) / "out")
        given = arguments[arguments.index("-o") + 1] if "-o" in arguments else elsewhere
        argv = [elsewhere if argument == given else argument for argument in arguments]
        program = [sys.executable, "-c", "from npuport.cli import main; main()", *argv]
        environment = {**os.environ, "NPUPORT_LANG": language, "COLUMNS": "100"}
        run = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if run.returncode > 1:
            raise SystemExit(f"npuport {shlex.join(argv)} ended with {run.returncode}: {run.stderr}")
        return run.stdout.replace(elsewhere, given)


def refreshed(text: str, language: str) -> str:
    """The README with today's output, without its advice on next steps. The time taken stays as it was."""

    def shown(match: re.Match[str]) -> str:
        fresh = NEXT_STEPS.sub("", output(shlex.split(match[1]), language)).rstrip("\n") + "\n"
        seconds = SECONDS.search(match[2])
        if seconds is not None:
            fresh = SECONDS.sub(seconds[0], fresh)
        return f"$ npuport {match[1]}\n{fresh}\n"

    return COMMAND.sub(shown, text)


def main() -> None:
    for name, language in READMES.items():
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        new = refreshed(old, language)
        if new != old:
            path.write_text(new, encoding="utf-8")
            print(f"{name} refreshed")


if __name__ == "__main__":
    main()
