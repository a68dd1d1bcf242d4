"""What the recorder counts, exactly, on programs small enough to count by hand."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import checks
import torch
import torch_npu

from npuport.sim import recording


def line() -> int:
    """The line this is called from."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def calls(record: dict[str, Any]) -> dict[str, int]:
    """Operator -> calls."""
    return {one["name"]: sum(shapes["calls"] for shapes in one["shapes"]) for one in record["operators"]}


def events(record: dict[str, Any], kind: str) -> list[tuple[str, str, int, int, int]]:
    """(operator, detail, line, count, bytes) of each event of a kind, in the order of lines."""
    found = [
        (operator, detail, record["sites"][site][1], count, size)
        for one, operator, detail, site, count, size, *_steps in record["events"]
        if one == kind
    ]
    return sorted(found, key=lambda event: event[2])


def check_operators_are_counted_by_dtype_and_shape() -> None:
    a, b = torch.ones(2, 3, device="npu"), torch.ones(2, 3, device="npu", dtype=torch.float16)
    with recording() as recorder:
        for _ in range(3):
            a + a
        b + b
        a[:1] + a[:1]
    (add,) = recorder.snapshot()["operators"]
    assert add["name"] == "aten::add.Tensor"
    seen = {(one["inputs"][0][1], tuple(one["inputs"][0][2])): one["calls"] for one in add["shapes"]}
    assert seen == {("Float", (2, 3)): 3, ("Half", (2, 3)): 1, ("Float", (1, 3)): 1}, seen


def check_what_an_operator_does_inside_is_not_counted_again() -> None:
    a, b = torch.ones(2, 4, 3, device="npu"), torch.ones(2, 4, device="npu")
    with recording() as recorder:
        a @ a.transpose(1, 2)  # torch_npu has a kernel of its own; here bmm computes it
        torch_npu.npu_swiglu(b)
    counted = calls(recorder.snapshot())
    assert counted == {"aten::matmul": 1, "npu::npu_swiglu": 1}, counted


def check_synchronisations_have_the_line_that_waits() -> None:
    a = torch.arange(4.0, device="npu")
    mask = a > 1
    with recording() as recorder:
        for _ in range(2):
            a[0].item()
        first = line() - 1
        a.nonzero()
        a[mask]
        a[mask] = 1.0
        a[torch.tensor([0, 1], device="npu")]  # positions: nothing to wait for
        torch.equal(a, a)
        a.sum()
    found = [(operator, at, count) for operator, _, at, count, _ in events(recorder.snapshot(), "synchronization")]
    assert found == [
        ("aten::_local_scalar_dense", first, 2),
        ("aten::nonzero", first + 2, 1),
        ("aten::index.Tensor", first + 3, 1),
        ("aten::index_put_", first + 4, 1),
        ("aten::equal", first + 6, 1),
    ], found


def check_copies_have_direction_size_and_line() -> None:
    with recording() as recorder:
        a = torch.ones(256).to("npu")
        first = line() - 1
        a.cpu()
        torch.ones(16).pin_memory().to("npu", non_blocking=True)
        a.tolist()
        a.clone()
    found = [(detail, at, count, size) for _, detail, at, count, size in events(recorder.snapshot(), "copy")]
    assert found == [
        ("host to device", first, 1, 1024),
        ("device to host", first + 2, 1, 1024),
        ("host to device,pinned,non_blocking", first + 3, 1, 64),
        ("device to host", first + 4, 1, 1024),
    ], found


def check_fallbacks_are_seen_and_stay_torch_npus() -> None:
    a = torch.tensor([3.0, 4.0], device="npu")
    with recording() as recorder:
        result = torch.lgamma(a)
        first = line() - 1
    assert torch.equal(result.cpu(), torch.lgamma(a.cpu()))
    record = recorder.snapshot()
    assert [event[:4] for event in events(record, "fallback")] == [("aten::lgamma.out", "", first, 1)]
    assert events(record, "copy") == []  # those of the fallback itself
    assert calls(record)["aten::lgamma.out"] == 1


def check_a_backward_pass_belongs_to_the_line_that_asks_for_it() -> None:
    a = torch.ones(3, 3, device="npu", requires_grad=True)
    loss = a.exp().sum()
    with recording() as recorder:
        loss.backward()
        first = line() - 1
    record = recorder.snapshot()
    sites = {record["sites"][one["site"]][1] for entry in record["operators"] for one in entry["shapes"]}
    assert sites == {first}, record["operators"]


def check_steps_are_those_of_the_optimizer_that_steps_most() -> None:
    one, other = (torch.optim.SGD([torch.ones(2, device="npu", requires_grad=True)], lr=0.1) for _ in range(2))
    with recording() as recorder:
        for turn in range(4):
            one.step()
            if turn % 2:
                other.step()
    assert recorder.snapshot()["steps"] == 4


def check_the_peak_has_the_lines_that_hold_the_memory() -> None:
    with recording() as recorder:
        kept = torch.ones(1 << 20, device="npu")
        first = line() - 1
        (kept + 1).sum()  # 4 MiB more, for a moment
        del kept
        torch.ones(1 << 10, device="npu")
    record = recorder.snapshot()
    (memory,) = record["memory"]
    assert record["sites"][memory["site"]][1] == first + 2 and memory["bytes"] >= 8 << 20
    alive = {record["sites"][site][1]: size for site, size, _ in memory["alive"]}
    assert alive[first] == alive[first + 2] == 4 << 20, alive


def check_a_block_has_a_report_too() -> None:
    with recording() as recorder:
        torch.ones(3, device="npu").sum().item()
    report = recorder.report()
    assert report["schema"] == "npuport-run/1" and report["run"]["complete"]
    assert report["synchronizations"][0]["place"]["path"].endswith("recorder.py")
    assert {one["name"]: one["status"] for one in report["operators"]}["aten::sum"] == "native"


def check_what_the_chip_refuses_is_named_with_its_line() -> None:
    a = torch.ones(4, 4, device="npu", dtype=torch.int16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with recording() as recorder:
            torch.nn.functional.adaptive_avg_pool2d(a.float()[None], 2)
            a.to(torch.int16).sigmoid()
            first = line() - 1
    (refused,) = recorder.report()["refusals"]
    assert (refused["operator"], refused["dtype"], refused["place"]["line"]) == ("aten::sigmoid", "int16", first), (
        refused
    )


def check_waiting_explicitly_is_a_synchronisation() -> None:
    event = torch.npu.Event()
    with recording() as recorder:
        torch.npu.synchronize()
        first = line() - 1
        torch.npu.current_stream().synchronize()
        event.record()
        event.synchronize()
    assert [(name, at) for name, _, at, _, _ in events(recorder.snapshot(), "wait")] == [
        ("aclrtSynchronizeDevice", first),
        ("aclrtSynchronizeStream", first + 2),
        ("aclrtSynchronizeEvent", first + 4),
    ]


def check_one_recording_at_a_time() -> None:
    def inside() -> None:
        with recording():
            pass

    with recording():
        checks.raises(RuntimeError, "records already", inside)
    inside()


if __name__ == "__main__":
    checks.run(globals())
