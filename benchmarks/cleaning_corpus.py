"""How well `npuport data clean` finds what was planted: recall and precision for each kind of fault.

Usage: python benchmarks/cleaning_corpus.py [--megabytes 100] [--folder FOLDER] [--kill] [--ray]

Makes a corpus with a fixed seed, in JSONL and Parquet, one record in five with a fault, cleans it, and compares
what was dropped, for which reason, with what was planted. ``--kill`` does it once more, killed with SIGKILL while it
judges and while it writes, and started again; ``--ray`` once more on a Ray cluster of this machine: both must give the
same bytes. The speed is the input divided by the CPU time of the first run, which has one worker.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

sys.path.insert(0, str(Path(__file__).resolve().parent))
from planted_faults import FAULTS, SENSITIVE, bait, copied, leaked, nearly_copied, sound, test_item

SEED = 20_240
_REMEMBERED = 2_000  # sound texts that later ones may repeat
_BYTES_OF_FILE = 30_000_000
_TRIES = 5
BROKEN = ("a line that is no JSON", "a record without text")
REPEATED = {"copy": "duplicate", "near copy": "near-duplicate", "leaked test item": "contamination"}
REASONS = (
    {kind: reason for kind, (reason, _) in FAULTS.items()}
    | REPEATED
    | dict(zip(BROKEN, ("not-json", "no-text"), strict=True))
)
"""The reason for which each kind of fault must be dropped."""


@dataclass(frozen=True)
class Planted:
    """A record: ``kind`` is a fault, or says that it is sound."""

    number: int
    kind: str
    text: str


def corpus(size: int, items: list[str], seed: int = SEED) -> Iterator[Planted]:
    """Records with so many bytes of text together."""
    chance = random.Random(seed)
    kinds = [*FAULTS, *REPEATED, *BROKEN]
    before: list[str] = []
    copied_already: set[str] = set()
    number = 0
    while size > 0:
        kind = "sound"
        drawn = chance.random()
        if drawn < 0.2:
            kind = chance.choice(kinds)
        text = sound(chance)
        if kind in FAULTS:
            text = FAULTS[kind][1](chance)
        elif kind == "leaked test item":
            text = leaked(chance, items)
        elif kind in ("copy", "near copy"):
            original = chance.choice(before) if before else text
            if not before or original in copied_already or len(original) < 300:
                kind = "sound"
            else:
                copied_already.add(original)
                text = (copied if kind == "copy" else nearly_copied)(chance, original)
        elif kind == "sound" and drawn < 0.5:
            kind, text = bait(chance, items, before)
        elif kind == "sound":
            if len(before) < _REMEMBERED:
                before.append(text)
            else:
                before[chance.randrange(_REMEMBERED)] = text
        yield Planted(number, kind, text)
        number += 1
        size -= len(text.encode("utf-8", "replace"))


def write(folder: Path, size: int) -> dict[int, str]:
    """The corpus, its test set and its word list; the kind of each record."""
    chance = random.Random(SEED + 1)
    items = [test_item(chance) for _ in range(100)]
    inputs = folder / "input"
    inputs.mkdir(parents=True)
    with (folder / "test.jsonl").open("w", encoding="utf-8") as stream:
        for number, item in enumerate(items):
            stream.write(json.dumps({"id": number, "question": item}, ensure_ascii=False) + "\n")
    (folder / "words.txt").write_text("# words\n" + "\n".join(SENSITIVE) + "\n", encoding="utf-8")
    kinds: dict[int, str] = {}
    waiting: list[Planted] = []
    held, file = 0, 0
    for one in corpus(size, items):
        kinds[one.number] = one.kind
        waiting.append(one)
        held += len(one.text.encode())
        if held >= min(_BYTES_OF_FILE, size // 3):
            _write_file(inputs, file, waiting)
            waiting, held, file = [], 0, file + 1
    if waiting:
        _write_file(inputs, file, waiting)
    (folder / "kinds.json").write_text(json.dumps(kinds), encoding="utf-8")
    return kinds


def _write_file(folder: Path, number: int, records: list[Planted]) -> None:
    """Every third file is Parquet; broken lines can only stand in the others."""
    path = folder / f"part-{number:03d}.jsonl"
    if number % 3 == 2 and not any(one.kind == BROKEN[0] for one in records):
        rows = [_row(one) for one in records]
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path.with_suffix(".parquet"), row_group_size=1_000)
        return
    with path.open("w", encoding="utf-8") as stream:
        for one in records:
            line = json.dumps(_row(one), ensure_ascii=False)
            stream.write(line[: len(line) // 2].replace("\n", " ") + "\n" if one.kind == BROKEN[0] else line + "\n")


def _row(one: Planted) -> dict[str, object]:
    return {"id": one.number, "text": "" if one.kind == BROKEN[1] else one.text}


def pipeline(folder: Path, output: str, executor: str = "local", workers: int = 2, task_megabytes: float = 8) -> Path:
    """The pipeline file."""
    path = folder / f"{output}.yaml"
    path.write_text(
        f"""inputs: [{folder}/input]
output: {folder}/{output}
task-megabytes: {task_megabytes}
steps:
  language: {{keep: [en, de, fr, es, ru, zh, ja, ar, ka, hy, hi, am]}}
  words: {{files: [{folder}/words.txt]}}
  contamination: {{tests: [{folder}/test.jsonl], fields: [question]}}
executor: {{kind: {executor}, workers: {workers}}}
""",
        encoding="utf-8",
    )
    return path


def command(config: Path) -> list[str]:
    return [sys.executable, "-m", "npuport", "data", "clean", str(config), "--json"]


def clean(config: Path) -> float:
    """Run the pipeline; the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command(config), check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def clean_killed(config: Path, output: Path) -> str:
    """Kill the run in the middle of judging, again in that of writing, then let it end; where it was killed."""
    for _ in range(_TRIES):
        places = [_killed(config, output, stage) for stage in ("judge", "write")]
        if all(places):
            clean(config)
            return ", ".join(places)
        shutil.rmtree(output)  # a small run can end before it is killed
    raise SystemExit(f"the run always ended before it could be killed: {places}")


def _killed(config: Path, output: Path, stage: str) -> str:
    """Start the run, and kill it when half of the judging is done, or writing has begun; "" if it ended before that."""
    process = subprocess.Popen(command(config), stdout=subprocess.DEVNULL)
    completions = output / "logs" / stage / "completions"
    begun = output / "logs" / stage / "logs"
    while process.poll() is None and not (
        begun.exists() and (stage == "write" or 2 * len(list(completions.glob("*"))) >= _tasks(output))
    ):
        time.sleep(0.002)  # writing takes a small run a moment only
    process.send_signal(signal.SIGKILL)
    killed = process.wait() == -signal.SIGKILL
    written = list((output / "logs" / "write" / "completions").glob("*"))
    if (output / "kept").exists() and len(written) < _tasks(output):
        raise SystemExit("a killed run shows a part of its results")
    if not killed or len(written) == _tasks(output):
        return ""
    return f"{stage}: {len(list(completions.glob('*')))} tasks complete"


def _tasks(output: Path) -> int:
    """Of the stages that read the input; very many while that is not known."""
    try:
        return len(json.loads((output / "logs" / "run.json").read_text())["shards"])
    except FileNotFoundError:
        return 1 << 30


def dropped_by_kind(output: Path, kinds: dict[int, str], inputs: Path) -> Counter[tuple[str, str]]:
    """How many records of each kind were dropped for which reason; "" for those that were kept."""
    order = {}
    number = 0
    for path in sorted(inputs.iterdir()):
        rows = pa.parquet.read_metadata(path).num_rows if path.suffix == ".parquet" else path.read_bytes().count(b"\n")
        for row in range(rows):
            order[f"{path}:{row + 1}"] = number
            number += 1
    found: Counter[tuple[str, str]] = Counter(dict.fromkeys(((kind, "") for kind in kinds.values()), 0))
    left = dict(kinds)
    for path in sorted((output / "dropped").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                row = json.loads(line)
                found[left.pop(order[row["place"]]), row["reason"]] += 1
    found.update(Counter((kind, "") for kind in left.values()))
    return found


def scores(found: Counter[tuple[str, str]]) -> dict[str, tuple[int, float, float]]:
    """Of each kind of fault: how many, the share dropped for its reason, the share of that reason that is faults."""
    result = {}
    for kind, reason in REASONS.items():
        planted = sum(number for (own, _), number in found.items() if own == kind)
        hit = found[kind, reason]
        dropped = sum(number for (_, given), number in found.items() if given == reason)
        right = sum(found[own, reason] for own, its in REASONS.items() if its == reason)
        result[kind] = (planted, hit / max(1, planted), right / max(1, dropped))
    return result


def same(one: Path, other: Path) -> bool:
    """Whether two outputs hold the same bytes, logs apart."""
    return subprocess.run(["diff", "-r", "-x", "logs", str(one), str(other)], check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--folder", type=Path, default=None, help="keep everything there")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="npuport-cleaning-"))
    kinds = write(folder, int(options.megabytes * 1e6))
    size = sum(path.stat().st_size for path in (folder / "input").iterdir())
    seconds = clean(pipeline(folder, "cleaned", workers=1))
    found = dropped_by_kind(folder / "cleaned", kinds, folder / "input")
    print(f"{len(kinds):,} records, {size / 1e6:.1f} MB in {folder}, {os.cpu_count()} cores")
    for kind, (planted, recall, precision) in scores(found).items():
        print(f"  {kind:<30} {REASONS[kind]:<16} {planted:>6}  recall {recall:>8.2%}  precision {precision:>8.2%}")
    for (kind, reason), number in sorted(found.items()):
        if reason != REASONS.get(kind, "") and number:
            print(f"  not so: {kind} was {f'dropped as {reason}' if reason else 'kept'}: {number}")
    print(f"{seconds:.1f} s of CPU time, {size / 1e6 / seconds:.2f} MB/s a core")
    for wanted, name in ((options.kill, "killed"), (options.ray, "ray")):
        if wanted:
            config = pipeline(folder, name, "ray" if name == "ray" else "local")
            where = clean_killed(config, folder / name) if name == "killed" else f"{clean(config):.1f} s"
            print(
                f"{name} ({where}): {'the same bytes' if same(folder / 'cleaned', folder / name) else 'NOT THE SAME'}"
            )


if __name__ == "__main__":
    main()
