"""Each finding on a profile made for it: its price, its gain, and silence where there is nothing to find."""

from __future__ import annotations

from typing import Any

import pytest
from made_profiles import ENGINE, LOOP, QUEUE, Row, collective, event, kernel, made, table, training_step

from npuport.performance.findings.base import Context, PerformanceFinding
from npuport.performance.findings.registry import find
from npuport.performance.tables import FREQUENCIES, Profile

STACK = (
    "/usr/lib/python3/site-packages/torch/_tensor.py(9): item;/home/me/train.py(12): step;/home/me/train.py(40): main"
)


def found(profile: Profile) -> dict[str, PerformanceFinding]:
    return {one.code: one for one in find(Context(profile))}


def one(code: str, **profile: Any) -> PerformanceFinding:
    return found(made(**profile))[code]


BUSY = kernel(0, 400, 0)
CASES: list[tuple[str, dict[str, list[Row]], int, int]] = [
    # code, rows, cost and gain in nanoseconds of a step of 1,000
    ("NT101", {"events": [event("aclrtSynchronizeStream", 300, 900, "runtime")]}, 600, 500),
    ("NT102", {"events": [event("aclopCompileAndExecute", 300, 700, "runtime", QUEUE)]}, 400, 300),
    ("NT103", {"events": [event("aten::add", 500, 800)]}, 300, 300),
    ("NT104", {"events": [event("GC", 350, 450, "collector")]}, 100, 50),
    ("NT105", {"events": [event("train.py(3): log", 0, 1000, "python")]}, 600, 600),
    (
        "NT201",
        {"communication": [collective(300, 900), collective(300, 800, "wait"), collective(800, 900, "transmit")]},
        500,
        400,
    ),
    (
        "NT202",
        {"communication": [collective(300, 900), collective(300, 700, "transmit"), collective(700, 900, "wait")]},
        400,
        300,
    ),
    ("NT202", {"communication": [collective(300, 900)]}, 600, 500),
    ("NT301", {"events": [event("enumerate(DataLoader)#_SingleProcess.__next__", 300, 500)]}, 200, 100),
    ("NT401", {"events": [event("aclrtMallocPhysical", 380, 480, "runtime")]}, 100, 80),
    ("NT501", {"kernels": [kernel(350, 550, 0, core="AI_CPU", type="Index", stream=3)]}, 200, 150),
    ("NT502", {"kernels": [kernel(400, 450, 0, type="TransData")]}, 50, 50),
    ("NT504", {"kernels": [kernel(380, 450, 0, type="ViewCopy")]}, 70, 50),
]


@pytest.mark.parametrize(("code", "rows", "cost", "gain"), CASES)
def test_prices(code: str, rows: dict[str, list[Row]], cost: int, gain: int) -> None:
    quiet = found(made(kernels=[kernel(0, 1000, 0)]))
    assert quiet == {}
    finding = one(code, **{**rows, "kernels": [BUSY, *rows.get("kernels", [])]})
    assert (finding.cost_ns, finding.gain_ns) == (cost, gain)


def test_times_are_those_of_an_average_step() -> None:
    events = [event("aclrtSynchronizeStream", 2300, 2900, "runtime")]
    steps = [(number, number * 1000, number * 1000 + 1000) for number in range(3)]
    finding = one("NT101", events=events, kernels=[kernel(0, 2400, 0)], steps=steps)
    assert (finding.cost_ns, finding.gain_ns) == (200, 166)
    assert finding.details["waits"] == pytest.approx(1 / 3)


def test_waits_are_gathered_by_line() -> None:
    def item(start: int, stack: str) -> list[Row]:
        return [
            event("aten::item", start, start + 100, stack=stack),
            event("aten::_local_scalar_dense", start + 10, start + 90),
            event("aclrtSynchronizeStream", start + 20, start + 90, "runtime"),
        ]

    other = STACK.replace("train.py(12)", "train.py(99)")
    events = [row for start, stack in ((100, STACK), (300, STACK), (500, other)) for row in item(start, stack)]
    findings = [one for one in find(Context(made(events=events, kernels=[kernel(0, 50, 0)]))) if one.code == "NT101"]
    assert [(one.line, one.cost_ns, len(one.events)) for one in findings] == [
        ("/home/me/train.py:12", 200, 2),
        ("/home/me/train.py:99", 100, 1),
    ]
    assert findings[0].details["callers"] == ["train.py:12", "train.py:40"]


def test_an_operator_that_waits_little_costs_its_wait_alone() -> None:
    events = [event("aten::to", 100, 900, stack=STACK), event("cudaStreamSynchronize", 850, 890, "runtime")]
    assert one("NT101", events=events, kernels=[kernel(0, 50, 0)], device="gpu").cost_ns == 40


def test_pythons_own_call_counts_where_it_was_recorded() -> None:
    events = [
        event("<built-in method item of Tensor object at 0x1>", 95, 510, "python"),
        event("aten::item", 100, 500),
        event("aclrtSynchronizeStream", 110, 490, "runtime"),
        event("train.py(7): step", 90, 520, "python"),
    ]
    finding = one("NT101", events=events, kernels=[kernel(0, 50, 0)])
    assert (finding.cost_ns, finding.line) == (415, "train.py:7")


def test_numbers_that_an_operator_takes_block_nothing() -> None:
    events = [event("aten::mul", 100, 500), event("aten::item", 200, 300)]
    assert "NT101" not in found(made(events=events, kernels=[kernel(0, 50, 0)]))


def test_what_is_outside_a_step_costs_nothing() -> None:
    outside = [event("aclrtSynchronizeStream", 1100, 1900, "runtime"), event("GC", -200, -100, "collector")]
    assert not found(made(events=outside, kernels=[kernel(0, 1000, 0)])).keys() & {"NT101", "NT104"}


def test_no_device_no_waiting_for_it() -> None:
    assert found(made(events=[*training_step(), event("aten::item", 800, 900)], device="cpu")).keys() == {"NT301"}


def test_an_optimizer_that_updates_parameter_by_parameter() -> None:
    kernels = [kernel(600 + number, 601 + number, 600 + number) for number in range(0, 100, 2)]
    finding = one("NT503", events=training_step(), kernels=[BUSY, *kernels])
    assert (finding.cost_ns, finding.gain_ns) == (100, 50)
    assert "NpuFusedSGD" in str(finding.fix)
    few = found(made(events=training_step(), kernels=[BUSY, *kernels[:20]]))
    assert "NT503" not in few


def test_launch_blocking_is_seen_in_the_environment() -> None:
    events = [event("aclrtSynchronizeStream", 500, 700, "runtime")]
    rows = {"events": events, "kernels": [BUSY]}
    assert one("NT106", **rows, environment={"ASCEND_LAUNCH_BLOCKING": "1"}).cost_ns == 200
    assert "NT106" not in found(made(**rows, environment={"ASCEND_LAUNCH_BLOCKING": "0"}))


def test_compiled_operators_are_named() -> None:
    events = [
        event("Dequeue@Conv2D", 100, 300, "dequeue", QUEUE),
        event("aclopCompileAndExecute", 110, 290, "runtime", QUEUE),
        event("Dequeue@ReduceSum", 300, 400, "dequeue", QUEUE),
        event("aclopCompileAndExecute", 310, 390, "runtime", QUEUE),
        event("aclopCompileAndExecute", 310, 390, "runtime", LOOP),
    ]
    finding = one("NT102", events=events, kernels=[kernel(0, 50, 0)])
    assert finding.details == {"calls": 3.0, "operators": {"Conv2D": 1, "ReduceSum": 1}, "lines_ms": {}}


def test_first_kernel() -> None:
    finding = one("NT302", kernels=[kernel(300, 1000, 0)])
    assert (finding.cost_ns, finding.gain_ns) == (300, 300)


def test_kernels_have_the_lines_that_launched_them() -> None:
    """Autograd's thread has no Python stack: a backward kernel has the line of its forward."""
    events = [
        event("aten::linear", 0, 100, stack=STACK, sequence=4),
        event("AddmmBackward0", 200, 300, thread=ENGINE, sequence=4, forward_thread=LOOP),
        event("aten::copy_", 210, 290, thread=ENGINE),
        event("aten::add", 300, 400, stack=STACK.replace("train.py(12)", "train.py(30)")),
    ]
    kernels = [
        kernel(100, 150, 0, type="TransData"),
        kernel(400, 500, 210, ENGINE, type="TransData"),
        kernel(500, 510, 300, type="TransData"),
    ]
    finding = one("NT502", events=events, kernels=kernels)
    assert finding.line == "/home/me/train.py:12"
    assert finding.details["lines_ms"] == {"/home/me/train.py:12": 150e-6, "/home/me/train.py:30": 10e-6}


def test_evidence_names_the_rows_that_matter_most() -> None:
    events = [event("aten::add", 100, 900)]
    kernels = [kernel(0, 100, 0), kernel(150, 200, 0), kernel(600, 900, 0)]
    assert one("NT103", events=events, kernels=kernels).events == (2, 1)
    both = [collective(0, 200), collective(0, 200, "wait"), collective(300, 900), collective(300, 900, "wait")]
    assert one("NT201", communication=both, kernels=[kernel(950, 960, 0)]).events == (2, 0)


def test_a_clock_that_falls() -> None:
    def clock(*changes: tuple[int, int]) -> Any:
        return table([{"time_ns": time, "mhz": mhz} for time, mhz in changes], FREQUENCIES)

    kernels = [kernel(0, 400, 0), kernel(400, 800, 0), kernel(800, 900, 0, core="AI_CPU")]
    lowered = one("NT505", kernels=kernels, frequencies=clock((0, 1800), (400, 900)))
    assert (lowered.cost_ns, lowered.gain_ns, lowered.spans) == (200, 200, [(400, 800)])
    quiet = (clock((0, 1800), (1000, 1800)), clock((0, 1800), (400, 1750)), clock((0, 1800), (850, 800)), clock())
    for frequencies in quiet:
        assert "NT505" not in found(made(kernels=kernels, frequencies=frequencies))
