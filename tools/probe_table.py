"""The table of docs/run.md: what CUDA code relies on, through npuport and with transfer_to_npu.

python tools/probe_table.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from npuport.sim import environment

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "run.md"
RUNNER = ROOT / "tests" / "runtime" / "probes" / "runner.py"
BEGIN, END = "<!-- probes -->\n", "<!-- end of probes -->\n"
TOOLS = ("npuport", "transfer_to_npu")


def outcomes(tool: str) -> dict[str, str]:
    """What every probe said with one of the tools; "" where it behaves as on CUDA."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        variables = {**os.environ, **environment(), "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, RUNNER, tool, file], env=variables, stdout=subprocess.DEVNULL, check=True)
        found: dict[str, str] = json.loads(file.read_text())
    return found


def _cell(said: str) -> str:
    first = said.split("\n", maxsplit=1)[0].replace("|", "\\|")
    if not first:
        return "as on CUDA"
    return "differs" if first == "AssertionError" else f"`{first[:90]}`"


def table() -> str:
    """The probes that differ with one tool or the other, in Markdown."""
    found = {tool: outcomes(tool) for tool in TOOLS}
    rows = [
        f"| {name.replace('_', ' ')} | {' | '.join(_cell(found[tool][name]) for tool in TOOLS)} |"
        for name in found["npuport"]
        if any(found[tool][name] for tool in TOOLS)
    ]
    return "\n".join(["| | npuport | transfer_to_npu |", "| --- | --- | --- |", *rows]) + "\n"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(
        f"{before}{BEGIN}\nThose that differ with one of the two:\n\n{table()}\n{END}{after}", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
