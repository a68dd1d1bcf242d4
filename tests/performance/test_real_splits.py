"""On every real profile the parts add up, and the totals are those of the raw files, counted here another way."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from real_profiles import ALEXNET, PROFILES, needs_profiles

from npuport.performance.analysis import RankAnalysis, analyse
from npuport.performance.step_split import Part

pytestmark = needs_profiles

GPU = PROFILES / "gpu"
EVERY = sorted([*ALEXNET.glob("*_ascend_pt"), *GPU.glob("*.json.gz")]) if PROFILES.is_dir() else []
MICROSECOND = 1000


def analysed(path: Path) -> RankAnalysis:
    (rank,) = analyse([path])
    assert rank.profile.problems == ()
    return rank


def length(spans: Iterable[tuple[int, int]], start: int, end: int) -> int:
    """Time covered between two times: counted by opening and closing spans."""
    turns = sorted(
        turn
        for first, last in spans
        if last > start and first < end
        for turn in ((max(first, start), 1), (min(last, end), -1))
    )
    covered = depth = before = 0
    for time, turn in turns:
        covered += (time - before) * (depth > 0)
        depth, before = depth + turn, time
    return covered


def raw_events(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    whole = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, parse_float=Decimal)
    return whole if isinstance(whole, list) else whole["traceEvents"]


def span(entry: dict[str, Any]) -> tuple[int, int]:
    start = round(Decimal(entry["ts"]) * 1000)
    return start, start + round(Decimal(entry["dur"]) * 1000)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_parts_add_up(path: Path) -> None:
    rank = analysed(path)
    assert rank.splits
    for one in rank.splits:
        assert sum(one.parts.values()) == one.duration
        assert one.overlapped <= min(one.computing, one.communication)


@pytest.mark.parametrize("folder", [path for path in EVERY if path.name.startswith("text")], ids=lambda path: path.name)
def test_totals_of_text_profiles(folder: Path) -> None:
    (step,) = analysed(folder).splits
    output = folder / "ASCEND_PROFILER_OUTPUT"
    with (output / "kernel_details.csv").open(newline="") as stream:
        rows = [
            span({"ts": row["Start Time(us)"].strip(), "dur": row["Duration(us)"]})
            for row in csv.DictReader(stream)
            if row["Accelerator Core"] != "HCCL" and not row["Name"].startswith("hcom_")
        ]
    assert abs(step.computing - length(rows, step.start_ns, step.end_ns)) < MICROSECOND
    events = raw_events(output / "trace_view.json")
    (hccl,) = {one["pid"] for one in events if one["name"] == "process_name" and one["args"]["name"] == "HCCL"}
    operations = [span(one) for one in events if one["ph"] == "X" and one["pid"] == hccl and one["tid"] == 0]
    assert abs(step.communication - length(operations, step.start_ns, step.end_ns)) < MICROSECOND


@pytest.mark.parametrize("path", sorted(GPU.glob("*.json.gz")), ids=lambda path: path.name)
def test_totals_of_gpu_traces(path: Path) -> None:
    events = raw_events(path)
    rows = [span(one) for one in events if one.get("cat") in ("kernel", "Kernel")]
    for step in analysed(path).splits:
        assert abs(step.computing - length(rows, step.start_ns, step.end_ns)) < MICROSECOND
        assert step.communication == 0


@pytest.mark.parametrize(
    ("trace", "step", "expected"),
    [
        # Counted by hand for docs/performance.md: kernels by the thread and time of the call that launched them.
        (
            "resnet50_v100_2021.pt.trace.json.gz",
            7,
            {Part.FORWARD: 32.692, Part.BACKWARD: 61.727, Part.OPTIMIZER: 1.493},
        ),
        (
            "resnet_v100_2024_ns.pt.trace.json.gz",
            103,
            {Part.FORWARD: 30.087, Part.BACKWARD: 63.360, Part.OPTIMIZER: 1.105},
        ),
    ],
)
def test_phases_of_gpu_traces(trace: str, step: int, expected: dict[Part, float]) -> None:
    found = next(one for one in analysed(GPU / trace).splits if one.step == step)
    for part, milliseconds in expected.items():
        assert found.parts[part] / 1e6 == pytest.approx(milliseconds, abs=0.002)
