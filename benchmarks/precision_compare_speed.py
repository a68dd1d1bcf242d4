"""How fast `npuport precision compare` is beside `msprobe compare`, on the same dumps, in the same run.

Statistics: a dump of msprobe's form with N rows. Tensors: a recorded step of a small GPT, written for msprobe by
`npuport precision convert-dump`. A row is what msprobe writes one row for.

    python benchmarks/precision_compare_speed.py [--peer PYTHON] [--rows N] [--width W]

``PYTHON`` is that of an environment with mindstudio-probe and torch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

MODEL = """\
import sys
import torch
from torch import nn
from pathlib import Path
from npuport.precision import record
folder, width, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, batch_first=True, norm_first=True)
model = nn.Sequential(nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Linear(width, width))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
x = torch.randn(8, 64, width) * (1 + 1e-7 * seed)
with record(folder):
    model(x).square().mean().backward()
    optimizer.step()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="the python of an environment with mindstudio-probe")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--width", type=int, default=256)
    options = parser.parse_args()
    peer = str(Path(options.peer).with_name("msprobe")) if options.peer else None
    with tempfile.TemporaryDirectory(prefix="speed") as temporary:
        top = Path(temporary)
        start_up()
        statistics(top, options.rows, peer)
        tensors(top, options.width, peer)


def start_up() -> None:
    used = timed([sys.executable, "-m", "npuport", "precision", "compare", "--help"])
    print(f"{os.cpu_count()} processors; start-up: --help {used.wall:.2f} s ({used.cpu:.2f} s of CPU)")


def statistics(top: Path, rows: int, peer: str | None) -> None:
    small = [write_statistics(top / "small" / name, 100, seed) for name, seed in (("a", 1), ("b", 2))]
    used = timed(ours(*small))
    print(f"start-up: a dump of {rows_in(small[0]):,} rows {used.wall:.2f} s ({used.cpu:.2f} s of CPU)")
    files = [write_statistics(top / "large" / name, rows, seed) for name, seed in (("a", 1), ("b", 2))]
    report("statistics", rows_in(files[0]), files, peer, top)


def tensors(top: Path, width: int, peer: str | None) -> None:
    script = top / "train.py"
    script.write_text(MODEL, encoding="utf-8")
    steps, dumps = [], []
    for name, seed in (("a", 1), ("b", 2)):
        subprocess.run([sys.executable, script, top / "steps" / name, str(width), str(seed)], check=True)
        steps.append(top / "steps" / name / "step0" / "rank0.pt")
        command = [sys.executable, "-m", "npuport", "precision", "convert-dump", top / "steps" / name]
        subprocess.run([*command, "-o", top / "dumps" / name], check=True, stderr=subprocess.DEVNULL)
        dumps.append(top / "dumps" / name / "step0" / "rank0" / "dump.json")
    report("tensors, replayed", rows_in(dumps[0]), steps, None, top)
    report("tensors in dumps of msprobe", rows_in(dumps[0]), dumps, peer, top)


def report(what: str, rows: int, files: list[Path], peer: str | None, top: Path) -> None:
    folders = [file.parent for file in files]
    size = sum(one.stat().st_size for folder in folders for one in folder.rglob("*") if one.is_file()) / 1e6
    print(f"{what}: {rows:,} rows, {size:,.0f} MB in both")
    own = timed(ours(*files))
    print(line("npuport", rows, size, own))
    if peer is not None:
        theirs = timed([peer, "compare", "-tp", str(files[1]), "-gp", str(files[0]), "-o", str(top / f"out{rows}")])
        print(line("msprobe", rows, size, theirs) + f"; {theirs.wall / own.wall:.1f} x ours")


def line(tool: str, rows: int, size: float, used: Used) -> str:
    rate = f"{rows / used.wall:9,.0f} rows/s  {size / used.wall:7,.0f} MB/s"
    cpu = f"{used.cpu:.2f} s of CPU: {used.cpu / rows * 1e6:,.0f} us a row"
    return f"  {tool}  {used.wall:7.2f} s  {rate}  ({cpu}; at most {used.peak:,.0f} MB of memory)"


def ours(reference: Path, candidate: Path) -> list[str]:
    return [sys.executable, "-m", "npuport", "precision", "compare", str(reference), str(candidate)]


@dataclass(frozen=True)
class Used:
    """Seconds on the clock, seconds of CPU, and the largest memory of a process in MB; pages of files count too."""

    wall: float
    cpu: float
    peak: float


def timed(command: list[str]) -> Used:
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        if process.returncode not in (0, 1):
            output.seek(0)
            raise SystemExit(f"{command}: {output.read()[-2000:]}")
    return Used(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3)


def rows_in(dump: Path) -> int:
    from npuport.precision.msprobe.items import items_of
    from npuport.precision.msprobe.reading import read_dump

    return sum(map(len, items_of(read_dump(dump)).values()))


def write_statistics(folder: Path, rows: int, seed: int) -> Path:
    """A dump of a chain of linear layers: 5 rows forward, 3 backward each."""
    shapes, values, noise = random.Random(0), random.Random(0), random.Random(seed)

    def tensor(shape: list[int]) -> dict[str, Any]:
        scale = values.uniform(1, 3)
        numbers = [4 * scale, -4 * scale, 0.01 * scale, 30 * scale]
        named = zip(
            ("Max", "Min", "Mean", "Norm"), (one * (1 + 1e-6 * noise.gauss(0, 1)) for one in numbers), strict=True
        )
        return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, **dict(named), "requires_grad": True}

    data: dict[str, Any] = {}
    layers = rows // 8
    x = tensor([64, 128])
    for number in range(layers):
        width = shapes.choice([128, 256, 512])
        output = tensor([64, width])
        flag = {"type": "bool", "value": True}
        inputs = [x, tensor([width, 128]), tensor([width]), flag]
        data[f"Functional.linear.{number}.forward"] = {"input_args": inputs, "input_kwargs": {}, "output": [output]}
        x = output
    for number in reversed(range(layers)):
        grads = [tensor([64, 128]), tensor([128, 128])]
        data[f"Functional.linear.{number}.backward"] = {"input": grads[:1], "output": [None, grads[1]]}
    folder.mkdir(parents=True)
    document = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    for name in ("construct.json", "stack.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return folder / "dump.json"


if __name__ == "__main__":
    main()
