"""The whole way in one go: analyse examples/gpt, convert it, train both versions, and compare their losses.

    python tools/demo.py [--steps N] [--out DIR]

The original trains on the CPU, the converted copy on the simulated NPU.
Ends with 1 if the losses differ by more than 1e-5.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "examples" / "gpt"
BUILD = ROOT / "build" / "demo"
TOLERANCE = 1e-5  # relative; both runs compute in float32 with the same kernels
DEVICE = re.compile(r"parameters on (?P<device>\S+)")  # examples/gpt/train.py says so
TO_ASCII = str.maketrans("│┃─━┌┐└┘├┤┬┴┼", "||--+++++++++")


def shown(path: Path) -> str:
    """The path as one would type it in the repository's root."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


def start(argv: Sequence[str], cwd: Path, env: Mapping[str, str], **options: Any) -> subprocess.Popen[str]:
    """Shows one command and starts it. This interpreter's programs come first, also for what the command starts."""
    print(f"$ {' '.join(argv)}", flush=True)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which(argv[0], path=path)
    if program is None:
        raise SystemExit(f"demo: {argv[0]} is not installed next to {sys.executable}; run `make demo`")
    # One thread is the fastest for a model this small wherever other programs want the cores, too.
    everything = {"OMP_NUM_THREADS": "1", **os.environ, "PATH": path, **env}
    return subprocess.Popen([program, *argv[1:]], cwd=cwd, env=everything, text=True, **options)


def finish(argv: Sequence[str], code: int, accept: tuple[int, ...] = (0,)) -> None:
    """Ends the demonstration if a command ended with a code that is not in ``accept``."""
    if code not in accept:
        raise SystemExit(f"demo: `{' '.join(argv)}` ended with exit code {code}")


def command(*argv: str, accept: tuple[int, ...] = (0,)) -> None:
    """Runs one command of npuport in the repository's root."""
    finish(argv, start(argv, ROOT, {}).wait(), accept)


def train(*argv: str, cwd: Path, env: Mapping[str, str]) -> str:
    """Runs one training command, shows what it prints, and returns the device that it says it trains on."""
    device = ""
    with start(argv, cwd, env, stdout=subprocess.PIPE) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            said = DEVICE.search(line)
            device = said["device"] if said else device
    finish(argv, process.returncode)
    return device


def losses(log: Path) -> list[float]:
    """The loss of every step, from a JSON-lines file with ``step`` and ``loss``."""
    return [float(json.loads(line)["loss"]) for line in log.read_text(encoding="utf-8").splitlines()]


def largest_relative_difference(expected: list[float], actual: list[float]) -> float:
    """max |a - e| / |e| over the steps. Raises ValueError if the runs differ in length or have no steps."""
    if not expected or len(expected) != len(actual):
        raise ValueError(f"{len(expected)} steps against {len(actual)}: the runs cannot be compared")
    differences = [abs(a - e) / abs(e) for e, a in zip(expected, actual, strict=True)]
    return math.nan if any(map(math.isnan, differences)) else max(differences)


def curves(runs: dict[str, list[float]], *, width: int, unicode: bool) -> str:
    """The runs' losses as terminal plots: next to each other, or one above the other where the terminal is narrow."""
    import plotext

    beside = width >= 40 * len(runs)
    rows, columns = (1, len(runs)) if beside else (len(runs), 1)
    plotext.terminal.limit(False, False)  # the size is ours to choose, also in a pipe
    figure = plotext.figure
    figure.clear()
    figure.subplots(rows, columns)
    figure.plot_size(width, 15 * rows)
    low, high = min(map(min, runs.values())), max(map(max, runs.values()))
    for place, (name, values) in enumerate(runs.items(), start=1):
        panel = figure.subplot(1, place) if beside else figure.subplot(place, 1)
        marker = "braille" if unicode else "*"
        panel.draw(panel.signal(list(range(len(values))), values, marker=marker).lines())
        panel.title(name)
        panel.ruler("y").lim(low, high)
    # Colourless, since plotext's own colours assume a white background.
    text = str(figure.build().string(colorless=True))
    return text if unicode else text.translate(TO_ASCII).encode("ascii", "replace").decode()


def show(runs: dict[str, list[float]]) -> None:
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    print(curves(runs, width=width, unicode="utf" in (sys.stdout.encoding or "").lower()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40, help="training steps of each run (default: 40)")
    parser.add_argument("--out", type=Path, default=BUILD, help="where its results go (default: build/demo)")
    options = parser.parse_args()
    steps, out = str(options.steps), options.out.resolve()

    out.mkdir(parents=True, exist_ok=True)
    converted = out / "gpt-npu"
    shutil.rmtree(converted, ignore_errors=True)
    log_cpu, log_npu = out / "cpu.jsonl", out / "npu.jsonl"

    title("What stands in the way")
    command("npuport", "analyze", shown(SOURCE), accept=(0, 1))

    title("The conversion")
    command("npuport", "convert", shown(SOURCE), "--diff", accept=(0, 1))
    command("npuport", "convert", shown(SOURCE), "-o", shown(converted))

    title("The original, on the CPU")
    options_of_both = ("train.py", "--steps", steps)
    # torch_npu is installed for the other run; without CANN it must not load by itself here.
    without_npu = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    train("python", *options_of_both, "--device", "cpu", "--log", str(log_cpu), cwd=SOURCE, env=without_npu)

    title("The converted copy, on the simulated NPU")
    simulated = ("npuport", "run", "--sim", "--", "python")
    device = train(*simulated, *options_of_both, "--log", str(log_npu), cwd=converted, env={})
    if not device.startswith("npu"):
        raise SystemExit(f"demo: the converted copy trained on {device or 'an unknown device'}, not on the NPU")

    title("The same losses?")
    cpu, npu = losses(log_cpu), losses(log_npu)
    show({"original, CPU": cpu, "converted, simulated NPU": npu})
    difference = largest_relative_difference(cpu, npu)
    same = difference <= TOLERANCE
    print(
        f"\nLargest relative difference over {len(cpu)} steps: {difference:.1e} "
        f"({'within' if same else 'ABOVE'} {TOLERANCE:.0e}); last loss {cpu[-1]:.6f} and {npu[-1]:.6f}."
    )
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
