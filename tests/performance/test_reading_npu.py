"""Reading results of torch_npu's profiler: old and new columns, what is missing, and the databases of real jobs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from made_profiles import (
    ENGINE,
    LEVEL_0_COLUMNS,
    LOOP,
    NEW_COLUMNS,
    OLD_COLUMNS,
    kernel_rows,
    npu_trace,
    write_npu_profile,
)
from real_profiles import ALEXNET, needs_profiles

from npuport.performance.analysis import analyse
from npuport.performance.reading.torch_npu_db import read_database
from npuport.performance.reading.torch_npu_text import read_text
from npuport.performance.step_split import split_steps, timeline_of

START = 1736408883_001000_000  # of the step of a made trace, in nanoseconds


@pytest.mark.parametrize("columns", [OLD_COLUMNS, NEW_COLUMNS, LEVEL_0_COLUMNS])
def test_kernels_of_every_release(tmp_path: Path, columns: str) -> None:
    profile = read_text(write_npu_profile(tmp_path, kernels=kernel_rows(columns)))
    assert profile.problems == ()
    kernels = profile.kernels
    assert kernels["name"].to_list() == ["MatMul", "MatMulGrad"]  # the collective has a table of its own
    assert (kernels["start_ns"] - START).to_list() == [150_000, 250_000]
    assert (kernels["end_ns"] - kernels["start_ns"]).to_list() == [100_000, 100_500]
    assert kernels["launch_thread"].to_list() == [LOOP, ENGINE]
    assert (kernels["launch_ns"] - START).to_list() == [100_000, 200_000]
    assert kernels["blocks"].to_list() == [24, 24]
    known = columns != LEVEL_0_COLUMNS
    assert kernels["state"].to_list() == (["dynamic"] * 2 if known else [None] * 2)
    assert kernels["shapes"].to_list() == (["4,8;8"] * 2 if known else [None] * 2)


def test_everything_else_of_a_text_profile(tmp_path: Path) -> None:
    profile = read_text(write_npu_profile(tmp_path, rank=3, version="26.0.0"))
    assert (profile.rank, dict(profile.versions)) == (3, {"torch_npu": "26.0.0"})
    assert profile.settings["level"] == "Level1"
    assert profile.steps.rows() == [(7, START, START + 1_000_000, LOOP)]
    tasks = profile.communication.select("name", "kind", "bytes", "link").rows()
    assert tasks == [
        ("hcom_allReduce_1", "operation", None, None),
        ("Notify_Wait", "wait", 0, None),
        ("Memcpy", "transmit", 64, "HCCS"),
    ]
    calls = profile.events.filter(pl.col("category") == "runtime")["name"].to_list()
    assert calls == ["aclopCompileAndExecute", "aclrtSynchronizeStream"]
    item = profile.events.filter(pl.col("name") == "aten::item").row(0, named=True)
    assert item["stack"].split(";")[1] == "/home/me/train.py(12): step"
    assert item["shapes"] == ";2,3"
    assert profile.frequencies.rows() == [(START, 1800)]


def test_findings_of_a_made_profile(tmp_path: Path) -> None:
    (rank,) = analyse([write_npu_profile(tmp_path)])
    assert {(one.code, one.line, one.cost_ns) for one in rank.findings} >= {
        ("NT101", "/home/me/train.py:12", 600_000),
        ("NT102", "", 30_000),
        ("NT201", "", 400_000),
    }


def problems(folder: Path) -> set[tuple[str, str]]:
    return {(one.path.name, str(one.reason)) for one in read_text(folder).problems}


def test_missing_files_are_named(tmp_path: Path) -> None:
    no_trace = write_npu_profile(tmp_path / "a", trace="")
    assert problems(no_trace) == {("trace_view.json", "it is missing: what the host did is not known")}
    profile = read_text(no_trace)
    assert profile.kernels.height == 2
    assert profile.communication["name"].to_list() == ["hcom_allReduce_1"]
    assert profile.steps["step"].to_list() == [7]
    no_kernels = read_text(write_npu_profile(tmp_path / "b", kernels=""))
    assert [one.path.name for one in no_kernels.problems] == ["kernel_details.csv"]
    assert no_kernels.kernels["name"].to_list() == ["MatMul", "MatMulGrad"]  # from the trace


def test_missing_columns_are_named(tmp_path: Path) -> None:
    columns = OLD_COLUMNS.replace("Start Time(us),", "").replace("Duration(us),", "")
    folder = write_npu_profile(tmp_path, kernels=kernel_rows(columns))
    named = ("kernel_details.csv", "columns are missing: Start Time(us), Duration(us)")
    assert problems(folder) == {named}


def test_a_trace_that_is_cut_off(tmp_path: Path) -> None:
    text = json.dumps(npu_trace())
    folder = write_npu_profile(tmp_path, trace=text[: text.index("AscendCL@aclrtSynchronizeStream")])
    assert problems(folder) == {("trace_view.json", "it is cut off: the list of events has no end")}
    assert read_text(folder).events["name"].to_list()[0] == "ProfilerStep#7"


def test_a_trace_without_tasks_of_collectives_has_those_of_the_device(tmp_path: Path) -> None:
    """Level 0: the tasks of a collective are among the device's own."""
    trace = [one for one in npu_trace() if one["name"] not in ("Notify_Wait", "Memcpy")]
    lane = next(one for one in npu_trace() if one["name"] == "MatMul")
    tasks = [
        {**lane, "name": "Notify_Wait", "ts": "1736408883001400.000", "dur": 300, "args": {"Task Type": "Notify Wait"}},
        {**lane, "name": "SDMA", "ts": "1736408883001700.000", "dur": 200, "args": {"Task Type": "SDMA"}},
    ]
    profile = read_text(write_npu_profile(tmp_path, trace=json.dumps([*trace, *tasks])))
    (step,) = split_steps(profile, timeline_of(profile))
    assert (step.communication, step.transmit, step.wait) == (500_000, 200_000, 300_000)


def test_a_database_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 100)
    (problem,) = read_database(path).problems
    assert problem.path == path


@needs_profiles
def test_text_and_database_of_one_job_say_the_same() -> None:
    """Two runs of one script, one stored as text and one as a database."""
    (text,) = analyse([ALEXNET / "text_level1_rank0_ascend_pt"])
    (database,) = analyse([ALEXNET / "db_level1_rank0_ascend_pt"])
    assert database.profile.problems == ()
    assert database.profile.origin == "torch_npu database"
    found = [{(one.code, one.line, str(one.fix)) for one in rank.findings} for rank in (text, database)]
    assert found[0] == found[1]
    for table in ("events", "kernels", "communication"):
        sizes = [getattr(rank.profile, table).height for rank in (text, database)]
        assert abs(sizes[0] - sizes[1]) <= 3, table
    computing = [rank.splits[0].computing for rank in (text, database)]
    assert abs(computing[0] / computing[1] - 1) < 0.01


def test_files_about_collectives(tmp_path: Path) -> None:
    folder = write_npu_profile(tmp_path)
    output = folder / "ASCEND_PROFILER_OUTPUT"
    times = {"Start Timestamp(us)": 1000.5, "Elapse Time(ms)": 3, "Transit Time(ms)": 1, "Wait Time(ms)": 2}
    transports = {
        "RDMA": {"Transit Size(MB)": 0, "Transit Time(ms)": 0},
        "HCCS": {"Transit Size(MB)": 2.5, "Transit Time(ms)": 0.5},
    }
    entry = {"Communication Time Info": times, "Communication Bandwidth Info": transports}
    of_step = {"p2p": {}, "collective": {"hcom_x@7": entry, "hcom_y@7": 5, "Total Op Info": entry}}
    (output / "communication.json").write_text(json.dumps({"step7": of_step}))
    link = {"Transport Type": "HCCS", "Transit Size(MB)": 1.5, "Transit Time(ms)": 0.25, "Bandwidth(GB/s)": 6}
    (output / "communication_matrix.json").write_text(
        json.dumps({"step7": {"collective": {"allreduce-total@7": {"0-3": link}}}})
    )
    profile = read_text(folder)
    assert profile.collectives.rows() == [
        (7, "collective", "hcom_x", "7", 1_000_500, 3_000_000, 1_000_000, 2_000_000, None, None)
    ]
    assert profile.transfers.rows() == [(7, "hcom_x", "7", "HCCS", 2_500_000, 500_000)]
    assert profile.links.rows() == [(7, "allreduce-total", "7", 0, 3, "HCCS", 1_500_000, 250_000)]
    assert [str(one.reason) for one in profile.problems] == ["1 entries are malformed"]


def test_allocations(tmp_path: Path) -> None:
    folder = write_npu_profile(tmp_path)
    text = "Name,Size(KB),Allocation Time(us),Release Time(us),Device Type\naten::add,0.5,5.25\t,,NPU:3\n"
    (folder / "ASCEND_PROFILER_OUTPUT" / "operator_memory.csv").write_text(text)
    assert read_text(folder).allocations.rows() == [("aten::add", 512, 5250, None, 3)]


@needs_profiles
def test_collectives_of_text_and_database_have_one_shape() -> None:
    text = read_text(ALEXNET / "text_level1_rank0_ascend_pt")
    path = ALEXNET / "db_level1_rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_0.db"
    database = read_database(path)
    for name in ("collectives", "transfers", "links", "allocations", "memory", "frequencies"):
        one, other = getattr(text, name), getattr(database, name)
        assert one.schema == other.schema, name
        assert one.height and other.height, name
    for name in ("collectives", "transfers", "links"):
        one, other = getattr(text, name), getattr(database, name)
        assert one.height == other.height, name
    convolutions = [
        profile.events.filter(pl.col("name") == "aten::conv2d")["shapes"].to_list() for profile in (text, database)
    ]
    assert convolutions[0] == convolutions[1]
    assert convolutions[0][0].startswith("32,3,224,224;64,3,11,11;64")
    shapes = [profile.kernels.filter(pl.col("type") == "Conv2D")["shapes"].to_list() for profile in (text, database)]
    assert shapes[0] == shapes[1]
    assert set(text.memory["component"]) <= set(database.memory["component"])
    moved = [profile.transfers["bytes"].sum() for profile in (text, database)]
    assert moved[0] == moved[1]  # the same gradients


def test_what_ends_before_it_begins_is_named_and_left_out(tmp_path: Path) -> None:
    trace = npu_trace()
    item = next(one for one in trace if one["name"] == "aten::item")
    bad = {**item, "dur": -5}
    folder = write_npu_profile(tmp_path, trace=json.dumps([*trace, bad]))
    (rank,) = analyse([folder])
    assert [str(one.reason) for one in rank.profile.problems] == ["1 events end before they begin"]
    assert rank.profile.events.filter(pl.col("name") == "aten::item").height == 1
    assert rank.profile.events["id"].to_list() == list(range(rank.profile.events.height))


def test_a_step_that_ends_before_it_begins_is_none(tmp_path: Path) -> None:
    trace = [{**one, "dur": -1} if one["name"].startswith("ProfilerStep") else one for one in npu_trace()]
    (rank,) = analyse([write_npu_profile(tmp_path, trace=json.dumps(trace))])
    assert [one.step for one in rank.splits] == [7]  # the kernels carry the number of their step
