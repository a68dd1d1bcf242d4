"""Records of processes become one document: figures of a step, shapes that change, ranks, what a chip makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import npuport
from npuport.report.run_files import check_reports, write_report, written
from npuport.report.run_page import run_page
from npuport.sim.recorder.document import Run, build
from npuport.sim.recorder.gather import records
from npuport.sim.recorder.statuses import status_of

SCHEMA = json.loads((Path(npuport.__file__).parent / "report" / "schemas" / "npuport-run-1.json").read_text())
RUN = Run(["train.py"], "Ascend910B3", 1, 64, "2.13.0", "2.13.0", exit_code=0)


def record(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "format": 1, "pid": 1, "rank": None, "argv": ["train.py"], "directory": "/home/me/run", "started": 100.0,
        "seconds": 2.0, "until": 102.0, "steps": 10,
        "sites": [["/home/me/run/train.py", 3, "main", None, None],
                  ["/elsewhere/model.py", 4, "forward", "lib/x.py:5", "call()"]],
        "operators": [], "events": [], "refusals": [], "memory": [], "allocator": [], "ended": "exit", "error": None,
    }  # fmt: skip
    return base | changes


def shapes(operator: str, *seen: tuple[list[int], int, int], dtype: str = "Float", site: int = 0) -> dict[str, Any]:
    """Each of ``seen``: shape, first step, calls."""
    entries = [
        {"inputs": [["self", dtype, shape]], "calls": calls, "first_step": step, "site": site}
        for shape, step, calls in seen
    ]
    return {"name": operator, "unlisted_shapes": 0, "unlisted_calls": 0, "shapes": entries}


def built(*all_records: dict[str, Any], run: Run = RUN) -> dict[str, Any]:
    document = build(run, all_records)
    jsonschema.validate(json.loads(json.dumps(document)), SCHEMA)
    return document


def test_shapes_that_keep_changing_are_found_with_their_dimension() -> None:
    lengths = [([4, 16 + step, 8], step, 1) for step in range(6)]
    document = built(record(operators=[shapes("aten::relu", *lengths, site=1), shapes("aten::exp", ([2], 0, 10))]))
    (change,) = document["shapes"]["changing"]
    assert change["place"]["path"] == "/elsewhere/model.py" and change["place"]["library"] == "lib/x.py:5"
    (operator,) = change["operators"]
    assert (operator["operator"], operator["shapes"], operator["new_after_warm_up"]) == ("aten::relu", 6, 4)
    assert operator["varying"] == [{"input": "self", "dimension": 1, "smallest": 16, "largest": 21, "distinct": 6}]
    assert document["shapes"]["last_new_step"] == 5


@pytest.mark.parametrize(
    "seen",
    [
        [([4, 8], 0, 9), ([2, 8], 9, 1)],  # the last batch is smaller, once
        [([4, 8], 0, 9), ([5, 8], 1, 1)],  # the warm-up
        [([4, 8], 0, 9), ([5, 8], 10, 1), ([6, 8], 10, 1)],  # an evaluation, after the last step
        [([4, 8], 0, 1), ([4, 16], 0, 1), ([4, 32], 0, 1)],  # layers of several sizes
    ],
)
def test_shapes_that_settle_are_no_finding(seen: list[tuple[list[int], int, int]]) -> None:
    assert built(record(operators=[shapes("aten::relu", *seen)]))["shapes"]["changing"] == []


def test_too_few_steps_say_so() -> None:
    document = built(record(steps=3, operators=[shapes("aten::relu", ([1], 0, 1), ([2], 1, 1), ([3], 2, 1))]))
    assert document["shapes"]["looked_for"] is False and document["shapes"]["changing"] == []


def test_what_a_step_costs_leaves_out_the_first_and_what_follows_the_last() -> None:
    # 30 times in all: 7 in the first step, 5 after the last, so 18 in the 9 steps between.
    events = [["synchronization", "aten::nonzero", "shape", 0, 30, 0, 7, 10, 5]]
    assert built(record(events=events))["synchronizations"][0]["per_step"] == 2.0
    events = [["synchronization", "aten::nonzero", "shape", 0, 30, 0, 7, 9, 5]]
    assert built(record(events=events))["synchronizations"][0]["per_step"] == 2.56
    assert built(record(events=events, steps=1))["synchronizations"][0]["per_step"] == 0


def test_copies_that_wait_are_synchronisations() -> None:
    events = [
        ["copy", "aten::copy_", "device to host", 0, 2, 64, 0, 5, 1],
        ["copy", "aten::copy_", "device to host,non_blocking", 0, 3, 64, 0, 5, 1],
        ["copy", "aten::copy_", "host to device,pinned", 0, 4, 64, 0, 5, 1],
    ]
    document = built(record(events=events))
    assert [(one["cause"], one["count"]) for one in document["synchronizations"]] == [("copy", 2)]
    assert {(one["direction"], one["pinned"], one["non_blocking"]) for one in document["copies"]} == {
        ("device to host", False, False),
        ("device to host", False, True),
        ("host to device", True, False),
    }


def test_ranks_become_one_report() -> None:
    event = ["collective", "c10d::allreduce_", "Float,2", 0, 10, 4000, 1, 10, 0]
    both = [
        record(rank=rank, pid=rank, operators=[shapes("aten::mm", ([4, 4], 0, 5))], events=[event],
               allocator=[[rank, 10, 20]]) for rank in (1, 0)
    ]  # fmt: skip
    document = built(*both)
    assert [one["rank"] for one in document["processes"]] == [0, 1]
    assert document["operators"][0]["calls"] == 10 and document["operators"][0]["distinct_shapes"] == 1
    (collective,) = document["collectives"]
    assert collective["ranks"] == [0, 1] and collective["count"] == 20 and collective["per_step"] == 1.0
    assert (collective["dtype"], collective["group"], collective["bytes"]) == ("float32", 2, 8000)
    assert [(one["rank"], one["device"], one["reserved"]) for one in document["memory"]] == [(0, 0, 20), (1, 1, 20)]


def test_the_first_rank_to_fail_is_the_one_to_blame() -> None:
    error = {"type": "RuntimeError", "message": "HCCL", "site": None}
    cause = {"type": "ValueError", "message": "bad", "site": ["/home/me/run/train.py", 9, "main", None, None]}
    document = built(record(rank=0, error=error, until=105.0), record(rank=1, error=cause, until=103.0))
    assert document["error"] == {
        "rank": 1,
        "type": "ValueError",
        "message": "bad",
        "place": {
            "path": "train.py",
            "line": 9,
            "function": "main",
            "library": None,
            "source": "",
            "library_source": None,
        },
    }


def test_a_process_that_was_killed_makes_the_report_partial() -> None:
    assert built(record())["run"]["complete"] is True
    assert built(record(ended=None))["run"]["complete"] is False
    assert built(record(), run=Run(["x"], "Ascend910B3", 1, 64, "", "", exit_code=1))["run"]["complete"] is False
    assert built()["run"]["complete"] is False


def test_memory_against_the_chips() -> None:
    memory = [{"device": 0, "bytes": 39 << 30, "step": 1, "site": 0, "looked_at": 39 << 30, "alive": [[0, 5, 1]]}]
    operators = [shapes("aten::mm", ([4, 4], 0, 5), dtype="BFloat16")]
    document = built(record(memory=memory, allocator=[[0, 39 << 30, 40 << 30]], operators=operators))
    fits = {one["name"]: (one["fits"], one["lacks_bfloat16"]) for one in document["chips"]}
    assert fits["Ascend910B3"] == (True, False) and fits["Ascend910B4"] == (False, False)
    assert fits["Ascend910A"] == (False, True)
    assert document["memory"][0]["holders"][0]["place"]["path"] == "train.py"


@pytest.mark.parametrize(
    ("operator", "dtypes", "chip", "expected"),
    [
        ("aten::mm", ["float32"], "Ascend910B3", "native"),
        ("aten::lgamma.out", ["float32"], "Ascend910B3", "cpu"),
        ("aten::max", ["float32"], "Ascend910B3", "native"),  # other overloads of it fall back
        ("npu::npu_swiglu", ["float16"], "Ascend910B3", "native"),
        ("aten::mm", ["bfloat16"], "Ascend310B1", "native"),
        ("aten::mm", ["float64"], "Ascend310B1", "untested"),  # nobody measured its operators
        ("aten::mm", ["bfloat16"], "Ascend910B3", "native"),
        ("aten::logit", ["float32"], "Ascend910B3", "partly_cpu"),
        ("aten::_fused_adam_", ["float32"], "Ascend910B3", "partly_cpu"),
        ("aten::_fused_adamw_", ["float32"], "Ascend910B3", "native"),
        ("aten::copy_", ["float64"], "Ascend910B3", "native"),
        ("aten::nothing_of_this_name", [], "Ascend910B3", "unknown"),
    ],
)
def test_status_on_the_chip(operator: str, dtypes: list[str], chip: str, expected: str) -> None:
    assert status_of(operator, dtypes, chip, "2.13.0").status == expected


def test_what_the_chip_did_not_take() -> None:
    met = [["aten::mm", "bfloat16", "stated", 0, 3], ["aten::exp", "int16", "unlisted", 1, 1]]
    seen = [shapes("aten::mm", ([4, 4], 0, 3), dtype="BFloat16"), shapes("aten::exp", ([4], 0, 1), dtype="Short")]
    run = Run(["train.py"], "Ascend910A", 1, 32, "2.13.0", "2.13.0", exit_code=0)
    document = built(record(operators=seen, refusals=met), record(operators=seen, refusals=met[:1]), run=run)
    refused, untested = document["refusals"]
    assert (refused["operator"], refused["dtype"], refused["count"], refused["place"]["line"]) == (
        "aten::mm", "bfloat16", 6, 3,
    )  # fmt: skip
    assert "MatMul refuses bfloat16" in refused["reason"] and untested["certainty"] == "unlisted"
    assert {one["name"]: one["status"] for one in document["operators"]} == {
        "aten::mm": "refused",
        "aten::exp": "untested",
    }


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    document = built(record())
    for name in ("run.json", "run.html"):
        write_report(document, tmp_path / name, run_page)
    assert json.loads((tmp_path / "run.json").read_text()) == document
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.html", "run.json"]


def test_a_report_that_cannot_be_written_leaves_nothing_half_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").mkdir()
    assert written(built(record()), [tmp_path / "run.json"], run_page) == []
    assert "run.json was not written: Is a directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_misspelt_report_is_refused_before_the_run(tmp_path: Path) -> None:
    check_reports([tmp_path / "run.html"])
    with pytest.raises(ValueError, match=r"run\.pdf: a report is written as \.html or \.json"):
        check_reports([tmp_path / "run.pdf"])
    with pytest.raises(ValueError, match="there is no folder"):
        check_reports([tmp_path / "nowhere" / "run.json"])


def test_only_whole_records_are_read(tmp_path: Path) -> None:
    (tmp_path / "record-1-2.json").write_text(json.dumps(record()))
    (tmp_path / "record-1-2.99.part").write_text("{")
    assert [one["pid"] for one in records(tmp_path)] == [1]
