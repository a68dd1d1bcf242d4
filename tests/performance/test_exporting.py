"""`npuport perf export`: tables that are the profile's, and a trace whose spans nest."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from made_profiles import write_npu_profile
from typer.testing import CliRunner

from npuport.cli.app import app
from npuport.performance.exporting.nesting import lanes_of
from npuport.performance.exporting.privacy import scrubbed_text
from npuport.performance.reading.torch_npu_text import read_text

Span = tuple[int, int]


def exported(folder: Path, *options: str) -> Path:
    write_npu_profile(folder)
    output = folder / "out"
    done = CliRunner().invoke(app, ["perf", "export", str(folder), "-o", str(output), *options])
    assert done.exit_code == 0, done.output
    return output / "rank0"


def trace_of(folder: Path) -> list[dict[str, Any]]:
    document = json.loads(gzip.decompress((folder / "trace.json.gz").read_bytes()))
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


def nests(spans: list[Span]) -> bool:
    open_ends: list[int] = []
    for start, end in sorted(spans, key=lambda one: (one[0], -one[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return False
        open_ends.append(end)
    return True


def test_tables_are_those_of_the_profile(tmp_path: Path) -> None:
    folder = exported(tmp_path, "--format", "parquet")
    profile = read_text(tmp_path / "host_0_20260101_ascend_pt")
    assert sorted(path.name for path in folder.iterdir()) == [
        "communication.parquet", "events.parquet", "frequencies.parquet", "kernels.parquet", "steps.parquet",
    ]  # fmt: skip
    for name in ("events", "kernels", "communication", "steps"):
        table: pl.DataFrame = getattr(profile, name)
        assert pl.read_parquet(folder / f"{name}.parquet").equals(table)


def test_times_are_numbers_from_zero(tmp_path: Path) -> None:
    spans = [one for one in trace_of(exported(tmp_path)) if one["ph"] == "X"]
    assert min(one["ts"] for one in spans) == 0
    (matmul,) = (one for one in spans if one["name"] == "MatMulGrad")
    assert (matmul["ts"], matmul["dur"]) == (250, 100.5)


def test_spans_nest_and_the_parts_add_up(tmp_path: Path) -> None:
    spans = [one for one in trace_of(exported(tmp_path)) if one["ph"] == "X"]
    lanes: dict[tuple[int, int], list[Span]] = defaultdict(list)
    for one in spans:
        lanes[one["pid"], one["tid"]].append((round(one["ts"] * 1000), round((one["ts"] + one["dur"]) * 1000)))
    assert all(nests(lane) for lane in lanes.values())
    parts = [one["dur"] for one in spans if one["pid"] == 4]
    assert round(sum(parts), 3) == 1000


def test_launches_lead_to_kernels(tmp_path: Path) -> None:
    events = trace_of(exported(tmp_path))
    starts = {one["id"]: one for one in events if one["ph"] == "s"}
    ends = {one["id"]: one for one in events if one["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == 2
    assert [starts[number]["ts"] for number in sorted(starts)] == [100, 200]
    assert [ends[number]["ts"] for number in sorted(ends)] == [150, 250]


def test_scrubbing(tmp_path: Path) -> None:
    folder = exported(tmp_path, "--scrub")
    text = gzip.decompress((folder / "trace.json.gz").read_bytes()).decode()
    assert "/home/me" not in text and "me/train.py(12)" in text
    assert "/home/me" not in " ".join(pl.read_parquet(folder / "events.parquet")["stack"].cast(str).drop_nulls())


def test_scrubbed_texts() -> None:
    assert scrubbed_text("/home/ann/proj/model/layer.py(63): forward") == "model/layer.py(63): forward"
    assert scrubbed_text(r"C:\\Users\\ann\\proj\\layer.py".replace(r"\\", "\\")) == r"proj\layer.py"
    assert scrubbed_text("90.91.105.46%enp189s0f0_60000_0_17") == "host"
    assert scrubbed_text("aten::add") == "aten::add"
    assert scrubbed_text("torch/nn/modules/module.py(1): __call__") == "torch/nn/modules/module.py(1): __call__"


def test_an_output_that_is_there_is_left_alone(tmp_path: Path) -> None:
    exported(tmp_path)
    again = CliRunner().invoke(app, ["perf", "export", str(tmp_path), "-o", str(tmp_path / "out")])
    assert again.exit_code == 2
    assert "is not empty" in again.stderr


SPANS = st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 9_000)), max_size=30)


@given(SPANS)
def test_lanes_nest(drawn: list[tuple[int, int]]) -> None:
    spans = sorted(((start, start + length) for start, length in drawn), key=lambda one: (one[0], -one[1]))
    lanes: dict[int, list[Span]] = defaultdict(list)
    for (start, end), (lane, drawn_end) in zip(spans, lanes_of(spans), strict=True):
        assert end - 1000 <= drawn_end <= end
        lanes[lane].append((start, drawn_end))
    assert all(nests(lane) for lane in lanes.values())


@given(SPANS)
def test_spans_that_nest_keep_one_lane(drawn: list[tuple[int, int]]) -> None:
    spans = sorted(((start, start + length) for start, length in drawn), key=lambda one: (one[0], -one[1]))
    if nests(spans):
        assert lanes_of(spans) == [(0, end) for _, end in spans]
