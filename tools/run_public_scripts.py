"""Unmodified CUDA training scripts of others: on the CPU, through npuport on the simulated NPU, with transfer_to_npu.

    python tools/run_public_scripts.py CHECKOUTS [--only NAME] [--json FILE]

CHECKOUTS holds the repositories of public_scripts.csv, each under its own name. Every script runs in a copy of its
repository, on small made-up data, with the seeds of random, NumPy and torch set from outside when torch is loaded. What
the scripts print as losses is compared with the CPU run. Needs torchvision for most.

Prints a table in Markdown; exit code 1 when a script fails through npuport or differs by more than LIMIT.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import pickle
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

LIMIT = 1e-3  # relative: printed losses have four digits or so
TIMEOUT_S = 400
IMAGES, TESTS = 256, 64
LOSS = re.compile(r"(?i)(?:loss(?:_[dg])?|ppl|perplexity|kl div)\b[^\d\n+-]{0,12}([-+]?\d+\.\d+(?:e[-+]?\d+)?)")
SEEDING = """
import importlib.abc, importlib.machinery, sys

class Seeding(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            import random
            random.seed(0)
            module.manual_seed(0)
            try:
                import numpy
                numpy.random.seed(0)
            except ImportError:
                pass
        spec.loader.exec_module = exec_module
        return spec

import importlib.util
sys.meta_path.insert(0, Seeding())
"""


@dataclass(frozen=True)
class Script:
    """A row of public_scripts.csv. ``folder`` is where it runs, inside its repository; ``data`` says what it needs."""

    name: str
    checkout: str
    folder: str
    command: str
    data: str

    @property
    def repository(self) -> str:
        return self.checkout.partition("@")[0].rpartition("/")[2]


@dataclass(frozen=True)
class Outcome:
    """How a script went with one tool. ``error`` is the last line it said; "" when it ended well."""

    losses: list[float]
    error: str


# -- data --------------------------------------------------------------------------------------------------------------


def images(folder: Path, train: int) -> None:
    """Files in MNIST's format: random strokes, so that there is something to learn."""
    chance = random.Random(0)
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", train), ("t10k", TESTS)):
        labels = bytes(chance.randrange(10) for _ in range(count))
        pixels = bytearray()
        for label in labels:
            picture = bytearray(28 * 28)
            for row in range(4, 24):
                picture[row * 28 + 2 + 2 * label + chance.randrange(3)] = 128 + chance.randrange(128)
            pixels += picture
        named = {
            f"{part}-images-idx3-ubyte": struct.pack(">IIII", 2051, count, 28, 28) + bytes(pixels),
            f"{part}-labels-idx1-ubyte": struct.pack(">II", 2049, count) + labels,
        }
        for name, content in named.items():
            (raw / name).write_bytes(content)
            (raw / f"{name}.gz").write_bytes(gzip.compress(content))


def _text(lines: int) -> str:
    chance = random.Random(0)
    words = ["the", "a", "cat", "dog", "sees", "runs", "to", "of", "house", "tree", "and", "big", "small", "red"]
    return "".join(" ".join(chance.choice(words) for _ in range(12)) + " \n" for _ in range(lines))


def wikitext(folder: Path) -> None:
    place = folder / "data" / "wikitext-2"
    place.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train", 200), ("valid", 20), ("test", 20)):
        (place / f"{name}.txt").write_text(_text(lines))


def words(folder: Path) -> None:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "train.txt").write_text(_text(400))


def names(folder: Path) -> None:
    chance = random.Random(0)
    made = ("".join(chance.choice("abcdefgh") for _ in range(chance.randrange(3, 9))) for _ in range(1200))
    (folder / "names.txt").write_text("\n".join(made))


def characters(folder: Path) -> None:
    """nanoGPT's format: token numbers of 16 bits."""
    place = folder / "data" / "tiny"
    place.mkdir(parents=True, exist_ok=True)
    text = _text(300)
    alphabet = sorted(set(text))
    for name, part in (("train", text[:-2000]), ("val", text[-2000:])):
        (place / f"{name}.bin").write_bytes(struct.pack(f"<{len(part)}H", *map(alphabet.index, part)))
    meta = {
        "vocab_size": len(alphabet),
        "stoi": {c: i for i, c in enumerate(alphabet)},
        "itos": dict(enumerate(alphabet)),
    }
    (place / "meta.pkl").write_bytes(pickle.dumps(meta))


DATA: dict[str, Callable[[Path], None]] = {
    "wikitext": wikitext,
    "words": words,
    "names": names,
    "nanogpt": characters,
}


def prepare(script: Script, folder: Path) -> None:
    """Lay out what the script needs: data by name, folders (``results/``), or the place where it expects MNIST."""
    for need in script.data.split():
        if need in DATA:
            DATA[need](folder)
        elif need.endswith("/"):
            (folder / need).mkdir(exist_ok=True)
        else:
            place, _, count = need.partition("@")
            images((folder / place).resolve(), int(count or IMAGES))


# -- running -----------------------------------------------------------------------------------------------------------


def command(tool: str, script: Script) -> list[str]:
    if tool == "cpu":
        spelt = re.sub(r" --cuda\b| --gpu \d+", "", script.command).replace("--device cuda", "--device cpu")
        return [sys.executable, *shlex.split(spelt.replace("--device=cuda", "--device=cpu"))]
    arguments = shlex.split(script.command)
    sim = [sys.executable, "-m", "npuport", "run", "--sim", "--"]
    return [*sim, sys.executable, *arguments] if tool == "npuport" else [*sim, "env", sys.executable, *arguments]


def run(tool: str, script: Script, checkouts: Path) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="npuport-public-") as directory:
        top = Path(directory) / script.repository
        shutil.copytree(checkouts / script.repository, top, ignore=shutil.ignore_patterns(".git"))
        seeding = Path(directory) / "seeding"
        seeding.mkdir()
        (seeding / "sitecustomize.py").write_text(SEEDING)
        folder = top / script.folder
        prepare(script, folder)
        path = os.pathsep.join([str(seeding), str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        if tool == "cpu":
            variables |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        if tool == "transfer_to_npu":
            variables |= {"TORCH_TRANSFER_TO_NPU": "1", "NPUPORT_DEVICE": "cuda"}
        try:
            done = subprocess.run(
                command(tool, script),
                cwd=folder,
                env=variables,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome([], f"not at an end after {TIMEOUT_S} s")
    said = re.findall(r"(?m)^[\w.]+(?:Error|Exception)\b.*", done.stderr)
    error = (said[-1] if said else f"exit code {done.returncode}") if done.returncode else ""
    return Outcome([float(number) for number in LOSS.findall(done.stdout + done.stderr)], error)


def difference(found: Outcome, wanted: Outcome) -> float | None:
    """The largest relative difference of printed losses; None where they are not the same number of them."""
    if not wanted.losses or len(found.losses) != len(wanted.losses):
        return None
    pairs = zip(found.losses, wanted.losses, strict=True)
    return max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs)


def verdict(found: Outcome, wanted: Outcome) -> str:
    if found.error and found.error.partition(":")[0] != wanted.error.partition(":")[0]:
        return f"fails: {found.error[:90]}"
    worst = difference(found, wanted)
    if worst is None:
        return f"prints {len(found.losses)} losses, the CPU {len(wanted.losses)}"
    return "equal" if worst == 0 else f"{worst:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--only", default="", help="scripts whose name contains this")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tools", default="npuport,transfer_to_npu")
    options = parser.parse_args()
    with Path(__file__).with_name("public_scripts.csv").open(newline="") as table:
        scripts = [Script(**row) for row in csv.DictReader(table)]
    chosen = [script for script in scripts if options.only in script.name]
    tools = options.tools.split(",")
    print(f"| script | losses | {' | '.join(tools)} |\n|---|--:|{'---|' * len(tools)}", flush=True)
    bad, kept = 0, []
    for script in chosen:
        if not (options.checkouts / script.repository).is_dir():
            print(f"| {script.name} | | no {script.repository} in {options.checkouts} | |", flush=True)
            continue
        cpu = run("cpu", script, options.checkouts)
        found = {tool: run(tool, script, options.checkouts) for tool in tools}
        cells = [verdict(outcome, cpu) for outcome in found.values()]
        shown = f"{len(cpu.losses)}" + (f", then {cpu.error[:60]}" if cpu.error else "")
        print(f"| {script.name} | {shown} | {' | '.join(cells)} |", flush=True)
        worst = difference(found["npuport"], cpu) if "npuport" in found else 0.0
        bad += worst is None or worst > LIMIT
        kept.append({**asdict(script), "cpu": asdict(cpu), **{tool: asdict(one) for tool, one in found.items()}})
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1))
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
