"""Parts of a step: they add up exactly, whatever a profile holds, and each is what it says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from made_profiles import ENGINE, LOOP, QUEUE, collective, event, kernel, made, training_step

from npuport.performance.intervals import Span, total
from npuport.performance.phases import Phase, phases_of
from npuport.performance.step_split import Part, StepSplit, split_steps, timeline_of
from npuport.performance.tables import Profile

END = 600  # times of generated profiles: small, so that instants can be counted one by one

spans = st.tuples(st.integers(-50, END + 50), st.integers(0, 120)).map(lambda pair: (pair[0], pair[0] + pair[1]))
host_names = st.sampled_from(
    [
        ("aten::mm", "operator"),
        ("aten::item", "operator"),
        ("enumerate(DataLoader)#It.__next__", "operator"),
        ("Optimizer.step#SGD.step", "annotation"),
        ("autograd::engine::evaluate_function: MmBackward0", "operator"),
        ("nn.Module: Linear_0", "python"),
        ("aclrtSynchronizeStream", "runtime"),
        ("aclopCompileAndExecute", "runtime"),
        ("aclrtMallocPhysical", "runtime"),
        ("GC", "collector"),
        ("Dequeue@Conv2D", "dequeue"),
    ]
)
sequences = st.none() | st.integers(-1, 9)
host = st.builds(
    lambda named, span, thread, sequence, forward: event(
        named[0], *span, category=named[1], thread=thread, sequence=sequence, forward_thread=forward
    ),
    host_names,
    spans,
    st.sampled_from([LOOP, ENGINE, QUEUE]),
    sequences,
    st.sampled_from([None, 0, 1]),
)
device = st.builds(
    lambda span, launched, thread, stream, kind: kernel(*span, launched, thread, stream=stream, kind=kind),
    spans,
    st.none() | st.integers(-50, END),
    st.sampled_from([LOOP, ENGINE, QUEUE]),
    st.integers(1, 3),
    st.sampled_from(["kernel", "kernel", "copy", "set"]),
)
collectives = st.builds(
    lambda span, kind: collective(*span, kind), spans, st.sampled_from(["operation", "transmit", "wait"])
)
cuts = st.lists(st.integers(0, END), min_size=2, max_size=5, unique=True).map(sorted)
profiles = st.builds(
    lambda events, kernels, communication, marks: made(
        events=events,
        kernels=kernels,
        communication=communication,
        steps=[(number, start, end) for number, (start, end) in enumerate(pairwise(marks))],
    ),
    st.lists(host, max_size=25),
    st.lists(device, max_size=15),
    st.lists(collectives, max_size=10),
    cuts,
)


def instants(rows: list[Span], start: int, end: int) -> set[int]:
    """Every nanosecond of a step that any row covers, counted one by one."""
    return {time for first, last in rows for time in range(max(first, start), min(last, end))}


def rows(profile: Profile, table: str, kind: str) -> list[Span]:
    return [
        (row["start_ns"], row["end_ns"]) for row in getattr(profile, table).iter_rows(named=True) if row["kind"] == kind
    ]


def split(profile: Profile) -> list[StepSplit]:
    return split_steps(profile, timeline_of(profile))


@settings(max_examples=200, deadline=None)
@given(profiles)
def test_parts_add_up_and_totals_are_what_the_rows_cover(profile: Profile) -> None:
    steps = split(profile)
    assert len(steps) == profile.steps.height
    for one in steps:
        assert sum(one.parts.values()) == one.duration == one.end_ns - one.start_ns
        covered = [span for part in one.spans.values() for span in part]
        assert len(instants(covered, one.start_ns, one.end_ns)) == total(covered)  # no instant has two parts
        computing = instants(rows(profile, "kernels", "kernel"), one.start_ns, one.end_ns)
        operations = instants(rows(profile, "communication", "operation"), one.start_ns, one.end_ns)
        assert one.computing == len(computing)
        assert one.communication == len(operations)
        assert one.overlapped == len(computing & operations)
        moving = instants(rows(profile, "communication", "transmit"), one.start_ns, one.end_ns) & operations
        assert one.transmit == len(moving)
        tasks = instants(
            rows(profile, "communication", "transmit") + rows(profile, "communication", "wait"), -100, END + 200
        )
        told = [span for span in rows(profile, "communication", "operation") if tasks & set(range(*span))]
        assert one.wait == len(instants(told, one.start_ns, one.end_ns) - moving)


def parts(profile: Profile) -> dict[str, int]:
    (one,) = split(profile)
    return {part.name: time for part, time in one.parts.items()}


def test_phases_of_a_step() -> None:
    found = phases_of(made(events=training_step())).spans
    assert found == {
        Phase.DATA: [(0, 100)],
        Phase.FORWARD: [(200, 400)],
        Phase.BACKWARD: [(410, 600)],
        Phase.OPTIMIZER: [(600, 700)],
    }


def test_the_forward_is_widened_to_the_modules_around_it_and_no_further() -> None:
    around = [event("nn.Module: Net_0", 150, 402, "python"), event("train.py(9): train", 0, 1000, "python")]
    assert phases_of(made(events=[*training_step(), *around])).spans[Phase.FORWARD] == [(150, 402)]


def test_an_operator_without_gradient_makes_no_forward() -> None:
    """It carries the number of the node that comes next, as aten::to does before the first layer."""
    early = event("aten::to", 120, 150, sequence=1)
    assert phases_of(made(events=[*training_step(), early])).spans[Phase.FORWARD] == [(200, 400)]


def test_micro_batches_alternate() -> None:
    later = [{**row, "start_ns": row["start_ns"] + 500, "end_ns": row["end_ns"] + 500} for row in training_step()[1:5]]
    later = [{**row, "sequence": row["sequence"] + 10} for row in later]
    phases = phases_of(made(events=[*training_step()[1:5], *later], steps=[(0, 0, 2000)])).spans
    assert phases[Phase.FORWARD] == [(200, 400), (700, 900)]
    assert phases[Phase.BACKWARD] == [(410, 600), (910, 1100)]


def test_steps_are_not_bridged() -> None:
    phases = phases_of(made(events=training_step() + training_step(1000), steps=[(0, 0, 1000), (1, 1000, 2000)])).spans
    assert phases[Phase.BACKWARD] == [(410, 600), (1410, 1600)]


def test_kernels_belong_to_the_phase_that_launched_them() -> None:
    """Backward kernels still run while the host is in the optimizer, and beyond the end of the step."""
    kernels = [kernel(150, 200, 120), kernel(300, 450, 250), kernel(450, 690, 450, ENGINE), kernel(690, 1200, 650)]
    assert parts(made(events=training_step(), kernels=kernels)) == {
        "DATA": 150,  # the loader's 100 and the kernel that moves the batch
        "FORWARD": 150,
        "BACKWARD": 240,
        "OPTIMIZER": 310,
        "PREPARING": 50,
        "DISPATCH": 100,
    }


def test_a_launch_that_was_not_recorded_is_that_of_the_kernel_before() -> None:
    kernels = [kernel(300, 400, 450, ENGINE), kernel(500, 600), kernel(600, 650, stream=9)]
    found = parts(made(events=training_step(), kernels=kernels))
    assert (found["BACKWARD"], found["OTHER"]) == (200, 50)


def test_communication_is_hidden_by_computing_and_divided_beside_it() -> None:
    profile = made(
        events=training_step(),
        kernels=[kernel(0, 500, 250)],
        communication=[collective(400, 1000), collective(700, 900, "wait"), collective(900, 1000, "transmit")],
    )
    assert parts(profile) == {"FORWARD": 500, "WAIT": 400, "TRANSMIT": 100}
    (one,) = split(profile)
    assert (one.overlapped, one.communication, one.transmit, one.wait) == (100, 600, 100, 500)


def test_collectives_without_tasks_are_not_divided() -> None:
    found = parts(made(kernels=[kernel(0, 400, 0)], communication=[collective(400, 1000)]))
    assert found == {"OTHER": 400, "COMMUNICATION": 600}
    some = [collective(400, 700), collective(700, 1000), collective(900, 1000, "transmit")]
    found = parts(made(kernels=[kernel(0, 400, 0)], communication=some))
    assert found == {"OTHER": 400, "COMMUNICATION": 300, "WAIT": 200, "TRANSMIT": 100}


def test_nothing_is_said_of_a_host_that_was_not_recorded() -> None:
    rows = {"kernels": [kernel(0, 400)], "communication": [collective(400, 700)]}
    assert parts(made(**rows)) == {"OTHER": 400, "COMMUNICATION": 300, "UNKNOWN": 300}
    calls = [event("aclrtSynchronizeStream", 700, 800, "runtime")]
    assert parts(made(**rows, events=calls))["SYNCHRONISATION"] == 100
    assert parts(made(**rows, events=calls))["UNKNOWN"] == 200


IDLE: list[tuple[str, Callable[..., Any]]] = [
    ("SYNCHRONISATION", lambda: event("aclrtSynchronizeStreamWithTimeout", 500, 1000, "runtime")),
    ("SYNCHRONISATION", lambda: event("cudaDeviceSynchronize", 500, 1000, "runtime")),
    ("COMPILE", lambda: event("aclopCompileAndExecute", 500, 1000, "runtime", QUEUE)),
    ("ALLOCATOR", lambda: event("aclrtMallocPhysical", 500, 1000, "runtime")),
    ("COLLECTOR", lambda: event("GC", 500, 1000, "collector")),
    ("DATA", lambda: event("enumerate(DataLoader)#It.__next__", 500, 1000)),
    ("DISPATCH", lambda: event("aten::add", 500, 1000)),
    ("GAP", lambda: event("train.py(3): log", 500, 1000, "python")),
]


def test_why_the_device_is_idle() -> None:
    for part, reason in IDLE:
        found = parts(made(events=[reason()], kernels=[kernel(0, 500, 0)]))
        assert found[part] == 500, part


def test_a_blocking_operator_counts_where_no_calls_were_recorded() -> None:
    item = event("aten::item", 500, 1000)
    call = event("aclrtLaunchKernel", 0, 10, "runtime")
    assert parts(made(events=[item], kernels=[kernel(0, 500, 0)]))["SYNCHRONISATION"] == 500
    assert "SYNCHRONISATION" not in parts(made(events=[item, call], kernels=[kernel(0, 500, 0)]))


def test_without_a_device_the_phases_are_the_parts() -> None:
    found = parts(made(events=training_step(), device="cpu"))
    assert found == {"DATA": 100, "FORWARD": 200, "BACKWARD": 190, "OPTIMIZER": 100, "GAP": 410}
    assert Part.SYNCHRONISATION.name not in found


def test_a_copy_to_pageable_memory_blocks_whatever_it_is_called() -> None:
    call = event("cudaMemcpyAsync", 500, 1000, "runtime")
    for name, part in (("DtoH (Device -> Pageable)", "SYNCHRONISATION"), ("HtoD (Pinned -> Device)", "DISPATCH")):
        copy = kernel(450, 500, 500, kind="copy", name=f"Memcpy {name}")
        assert parts(made(events=[call], kernels=[kernel(0, 450, 0), copy]))[part] == 500


def test_threads_that_train_nothing_explain_nothing() -> None:
    """A loader's thread that pins memory, and a watchdog that asks for events."""
    loop = event("train.py(3): train", 0, 1000, "python")
    beside = [
        event("aten::pin_memory", 500, 700, thread=77),
        event("cudaEventQuery", 700, 800, "runtime", 77),
        event("cudaStreamSynchronize", 800, 1000, "runtime", 77),
    ]
    found = parts(made(events=[loop, *beside], kernels=[kernel(0, 500, 0)]))
    assert found == {"OTHER": 500, "GAP": 500}


def test_memory_of_the_host_is_not_the_devices() -> None:
    for name, part in (("cudaMallocHost", "DISPATCH"), ("cudaMalloc", "ALLOCATOR"), ("aclrtFreeHost", "DISPATCH")):
        found = parts(made(events=[event(name, 500, 1000, "runtime")], kernels=[kernel(0, 500, 0)]))
        assert found[part] == 500
