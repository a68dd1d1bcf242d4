"""`npuport perf analyze` on made profiles: what it says, its exit codes, and damage that costs only what it must."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from made_profiles import NEW_COLUMNS, OLD_COLUMNS, kernel_rows, npu_trace, write_npu_profile

import npuport
from npuport.cli.perf_analyze import analyze_profiles
from npuport.performance.step_split import Part

SCHEMA_FILE = Path(npuport.__file__).parent / "report" / "schemas" / "npuport-performance-1.json"
Output = pytest.CaptureFixture[str]


def analysed(*paths: Path, everything: bool = False) -> int:
    return analyze_profiles(paths, everything=everything, as_json=False)


def document(capsys: Output, *paths: Path) -> tuple[int, list[dict[str, Any]]]:
    code = analyze_profiles(paths, everything=False, as_json=True)
    said = json.loads(capsys.readouterr().out)
    jsonschema.validate(said, json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    parts = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))["$defs"]["step"]["properties"]["parts_ns"]
    assert parts["propertyNames"]["enum"] == [part.name.lower() for part in Part]
    return code, said["profiles"]


def test_text(tmp_path: Path, capsys: Output) -> None:
    assert analysed(write_npu_profile(tmp_path)) == 1
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "host_0_20260101_ascend_pt · rank 0 · NPU · 1 step"
    assert lines[1].startswith("step 1.0 ms = forward 0.10 · backward 0.10 · ")
    assert "communication 0.50 (waiting for other ranks 0.40, moving data 0.10)" in lines[1]
    assert "1  up to -0.55 ms  54.9%  NT101  train.py:12  aten::item makes the host wait" in said.out
    assert "explain the same time" in lines[-1]
    assert said.err == ""


def test_small_findings_are_hidden(tmp_path: Path, capsys: Output) -> None:
    allocation = next(one for one in npu_trace() if one["name"] == "AscendCL@aclrtSynchronizeStream")
    allocation = {**allocation, "name": "AscendCL@aclrtMallocPhysical", "ts": "1736408883001960.000", "dur": 5}
    folder = write_npu_profile(tmp_path, trace=json.dumps(npu_trace([allocation])))
    analysed(folder)
    short = capsys.readouterr().out
    analysed(folder, everything=True)
    full = capsys.readouterr().out
    assert "1 finding below 1 % of the step: --all shows them" in short
    assert "NT401" not in short
    assert "0.5%  NT401  device memory is allocated or freed 1 x in a step" in full


def test_memory_that_is_lost_is_stated_in_its_own_unit(tmp_path: Path, capsys: Output) -> None:
    folder = write_npu_profile(tmp_path)
    header = "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type"
    record = folder / "ASCEND_PROFILER_OUTPUT" / "memory_record.csv"
    record.write_text(f"{header}\nPTA,1736408883001500.000,8192,10240,8192,1,NPU:0\n")
    analysed(folder)
    said = capsys.readouterr().out
    assert "up to -2.15 GB  NT402  at the peak 2.15 GB of 10.74 GB reserved memory are in no tensor" in said
    assert "memory at its peak 8.59 GB, reserved 10.74 GB" in said
    code, (profile,) = document(capsys, folder)
    assert code == 1
    assert [one["saved_bytes"] for one in profile["findings"] if one["code"] == "NT402"] == [2 * 2**30]


def test_chinese(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    analysed(write_npu_profile(tmp_path))
    said = capsys.readouterr().out
    assert "单步 1.0 ms = 前向" in said
    assert "使主机等待设备" in said


def test_what_the_profiler_itself_costs_is_said(tmp_path: Path, capsys: Output) -> None:
    folder = write_npu_profile(tmp_path)
    analysed(folder)
    assert "recorded with" not in capsys.readouterr().out
    info = folder / "profiler_info_0.json"
    info.write_text(json.dumps({"config": {"common_config": {"with_stack": True, "profile_memory": True}}}))
    analysed(folder)
    said = "recorded with Python stacks, allocations of memory: without, the host is faster"
    assert said in capsys.readouterr().out


def test_json_adds_up(tmp_path: Path, capsys: Output) -> None:
    code, (profile,) = document(capsys, write_npu_profile(tmp_path))
    assert code == 1
    (step,) = profile["steps"]
    assert sum(step["parts_ns"].values()) == step["duration_ns"] == 1_000_000
    assert step["transmit_ns"] + step["wait_ns"] == step["communication_ns"] == 500_000
    for finding in profile["findings"]:
        assert 0 <= finding["gain_ns"] <= finding["cost_ns"]
    assert profile["together_ns"] <= min(
        step["duration_ns"], sum(finding["gain_ns"] for finding in profile["findings"]) + 1
    )


def test_a_damaged_rank_is_named_and_the_others_analysed(tmp_path: Path, capsys: Output) -> None:
    write_npu_profile(tmp_path, rank=0)
    text = json.dumps(npu_trace())
    write_npu_profile(tmp_path, rank=1, trace=text[: len(text) // 2])
    write_npu_profile(tmp_path, rank=2, trace="[]", kernels=OLD_COLUMNS + "\n")
    write_npu_profile(tmp_path, rank=3, kernels=kernel_rows(OLD_COLUMNS.replace("Duration(us),", "")))
    (tmp_path / "host_4_20260101_ascend_pt" / "FRAMEWORK").mkdir(parents=True)
    assert analysed(tmp_path) == 2
    said = capsys.readouterr()
    assert said.out.count("step 1.0 ms") == 3
    problems = said.err.splitlines()
    assert len(problems) == 4
    assert "host_1_20260101_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json: it is cut off" in problems[0]
    assert "host_2_20260101_ascend_pt: it holds no events" in problems[1]
    assert "kernel_details.csv: columns are missing: Duration(us)" in problems[2]
    assert "host_4_20260101_ascend_pt: it was collected, but not parsed" in problems[3]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"version": "7.2.0"}, "torch_npu is 7.2.0, but 26.0.0 in host_0_20260101_ascend_pt"),
        (
            {"version": "26.0.0", "kernels": kernel_rows(NEW_COLUMNS)},
            "columns is those of torch_npu 26.0 and later, but those of torch_npu 7.0 and earlier",
        ),
    ],
)
def test_mixed_versions_are_named(tmp_path: Path, capsys: Output, second: dict[str, str], said: str) -> None:
    write_npu_profile(tmp_path, rank=0, version="26.0.0")
    write_npu_profile(tmp_path, rank=1, **second)
    assert analysed(tmp_path) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out.count("step 1.0 ms") == 2


def test_equal_ranks_are_no_problem(tmp_path: Path, capsys: Output) -> None:
    for rank in range(2):
        write_npu_profile(tmp_path, rank=rank, version="" if rank else "26.0.0")  # old releases do not say it
    assert analysed(tmp_path) == 1
    assert capsys.readouterr().err == ""
