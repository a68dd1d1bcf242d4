"""Claim: statistics of all operators cost at most 1.25 times a plain step, tensors 3 times, and less than msprobe's.

    python benchmarks/precision_cost.py [--peer PYTHON] [--rounds 5] [--steps 3] [--width 256] [--batch 8]

Trains a small GPT (4 layers, width 256, batch 8 x 128, AdamW; on the CPU with one thread) in blocks of steps: plain,
seen by a dispatch mode that does nothing (no recorder in Python can cost less), inside ``record`` with no step
selected, and recorded as statistics, checksums and tensors. A block's time goes from its first step until its last file
is written; the blocks take turns, each is divided by the plain one of its round, and the median over the rounds is
told. Processor time, of all threads, is told too: on a busy machine it is the one to compare.
``--peer`` is the python of an environment that has mindstudio-probe and torch: its statistics and tensors of level mix,
all APIs, are measured in the same way, beside plain blocks of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def training(width: int, batch: int) -> tuple[Any, Callable[[], None]]:
    """The model, and a function that makes one step."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self, heads: int = 8) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            length = x.shape[1]
            shape = (batch, length, self.heads, width // self.heads)
            q, k, v = (one.view(shape).transpose(1, 2) for one in self.qkv(self.norm1(x)).split(width, 2))
            scores = (q @ k.transpose(-2, -1)) * shape[-1] ** -0.5
            weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Gpt(nn.Module):
        def __init__(self, layers: int = 4, words: int = 512, length: int = 128) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)
            self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).triu(1))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x, self.mask)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 512, (batch, 128))

    def step() -> None:
        model(tokens).backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, step


def ours(arguments: argparse.Namespace, folder: Path) -> dict[str, Callable[[], None]]:
    from torch.utils._python_dispatch import TorchDispatchMode

    from npuport.precision import record

    steps = arguments.steps
    _, step = training(arguments.width, arguments.batch)

    class Nothing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    def plain() -> None:
        for _ in range(steps):
            step()

    def seen() -> None:
        with Nothing():
            plain()

    def recorded(what: str, selected: str) -> Callable[[], None]:
        def block() -> None:
            with record(folder, what=what, steps=selected):
                plain()

        return block

    every = f"0-{steps - 1}"
    return {
        "plain": plain,
        "seen only": seen,
        "not selected": recorded("tensors", f"{steps + 1}"),
        "statistics": recorded("statistics", every),
        "checksums": recorded("checksums", every),
        "tensors": recorded("tensors", every),
    }


def theirs(arguments: argparse.Namespace, folder: Path) -> dict[str, Callable[[], None]]:
    """msprobe keeps one configuration in a process: each block is a process of its own, told by its name."""
    from msprobe.pytorch import PrecisionDebugger

    steps = arguments.steps
    model, step = training(arguments.width, arguments.batch)
    task = os.environ["PRECISION_COST_TASK"]
    config = {
        "task": task,
        "dump_path": str(folder),
        "rank": [],
        "step": [],
        "level": "mix",
        "risk_level": "ALL",
        task: {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"},
    }
    file = folder.with_suffix(".json")
    file.write_text(json.dumps(config), encoding="utf-8")
    debugger: list[Any] = []

    def plain() -> None:
        for _ in range(steps):
            step()

    def dumped() -> None:
        if not debugger:
            debugger.append(PrecisionDebugger(config_path=str(file)))
        for _ in range(steps):
            debugger[0].start(model=model)
            step()
            debugger[0].stop()
            debugger[0].step()

    return {"plain": plain, task: dumped}


def measure(blocks: dict[str, Callable[[], None]], steps: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Of a step in each kind of block the seconds, elapsed and of the processor, both also as multiples of the plain
    block's in the same round, and the bytes: the medians over the rounds, after one that does not count."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in blocks}
    sizes: dict[str, float] = {}
    for round_ in range(rounds + 1):
        for name, block in blocks.items():
            began = time.perf_counter(), time.process_time()
            block()
            if round_:
                times[name].append((time.perf_counter() - began[0], time.process_time() - began[1]))
            sizes[name] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / steps
            shutil.rmtree(folder, ignore_errors=True)
    return {name: {**medians(taken, times["plain"], steps), "bytes": sizes[name]} for name, taken in times.items()}


def medians(taken: list[tuple[float, float]], plain: list[tuple[float, float]], steps: int) -> dict[str, float]:
    found = {}
    for place, name in enumerate(("elapsed", "processor")):
        found[name] = statistics.median(one[place] for one in taken) / steps
        found[f"{name} ratio"] = statistics.median(a[place] / b[place] for a, b in zip(taken, plain, strict=True))
    return found


def child(python: str, which: str, arguments: argparse.Namespace, **variables: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        command = [python, __file__, "--which", which, "--folder", folder]
        command += [f"--{name}={getattr(arguments, name)}" for name in ("rounds", "steps", "width", "batch")]
        inside = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables}
        done = subprocess.run(command, env=inside, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(title: str, results: dict[str, Any]) -> None:
    for name, one in results.items():
        elapsed = f"{one['elapsed']:6.3f} s {one['elapsed ratio']:5.2f} x"
        processor = f"processor {one['processor']:6.3f} s {one['processor ratio']:5.2f} x"
        print(f"{title:8} {name:13} {elapsed}   {processor}   {one['bytes'] / 1e6:7.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="The python of an environment with mindstudio-probe and torch.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--width", type=int, default=256, help="Of the model.")
    parser.add_argument("--batch", type=int, default=8, help="Sequences of 128 tokens in a step.")
    parser.add_argument("--folder", help="Where the dumps go for a moment; the system's temporary folder unless told.")
    parser.add_argument("--which", choices=("ours", "theirs"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.which:
        folder = Path(arguments.folder) / "dump"
        blocks = (ours if arguments.which == "ours" else theirs)(arguments, folder)
        print(json.dumps(measure(blocks, arguments.steps, arguments.rounds, folder)))
        return
    show("npuport", child(sys.executable, "ours", arguments))
    for task in ("statistics", "tensor") if arguments.peer else ():
        show("msprobe", child(arguments.peer, "theirs", arguments, PRECISION_COST_TASK=task))


if __name__ == "__main__":
    main()
