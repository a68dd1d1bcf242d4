"""What programs ask of torch.npu beside operators: properties first of all, threads, streams, cores, memory history."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import tempfile
import threading
from pathlib import Path

import checks
import torch
import torch_npu

assert torch.npu.get_device_properties(1).name == torch.npu.get_device_name(0)  # before anything is on the device
assert torch.npu.get_device_properties("npu:0").total_memory == torch.npu.mem_get_info()[1]


def check_each_thread_has_its_device() -> None:
    found: dict[int, tuple[int, int | None, float]] = {}

    def work(number: int) -> None:
        torch.npu.set_device(number % 2)
        held = torch.full((100,), float(number), device="npu")
        stream = torch.npu.Stream()
        with torch.npu.stream(stream):
            held = held + 1
        stream.synchronize()
        found[number] = (torch.npu.current_device(), held.device.index, held[-1].item())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: (number % 2, number % 2, number + 1.0) for number in range(8)}, found
    assert torch.npu.current_device() == 0


def check_backward_in_a_thread_of_another_device() -> None:
    weight = torch.ones(3, device="npu:1", requires_grad=True)
    thread = threading.Thread(target=lambda: (weight * 2).sum().backward())
    thread.start()
    thread.join()
    assert weight.grad is not None and weight.grad.tolist() == [2.0, 2.0, 2.0]


def check_cores_are_limited_by_device_and_stream() -> None:
    own = torch.npu.get_device_limit(0)
    assert own["cube_core_num"] == torch.npu.get_device_properties(0).cube_core_num
    torch.npu.set_device_limit(0, 8, 16)
    assert torch.npu.get_device_limit(0) == {"cube_core_num": 8, "vector_core_num": 16}
    assert torch.npu.get_device_limit(1) == own
    stream, other = torch.npu.Stream(), torch.npu.Stream()
    torch.npu.set_stream_limit(stream, 3, 5)
    assert torch.npu.get_stream_limit(stream) == {"cube_core_num": 3, "vector_core_num": 5}
    assert torch.npu.get_stream_limit(other) == {"cube_core_num": 8, "vector_core_num": 16}
    torch.npu.reset_stream_limit(stream)
    assert torch.npu.get_stream_limit(stream) == {"cube_core_num": 8, "vector_core_num": 16}


def use_event(handle: bytes) -> None:
    event = torch.npu.Event.from_ipc_handle("npu:0", handle)
    event.wait()
    event.synchronize()
    assert event.query()


def check_an_event_of_another_process() -> None:
    event = torch.npu.Event(interprocess=True)
    event.record()
    child = multiprocessing.get_context("spawn").Process(target=use_event, args=(event.ipc_handle(),))
    child.start()
    child.join(60)
    assert child.exitcode == 0, child.exitcode


def check_memory_history_is_kept_and_written() -> None:
    torch.npu.memory._record_memory_history()
    held = torch.ones(1 << 20, device="npu")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # torch_npu writes a table of the memory of CANN's components there
        torch.npu.memory._dump_snapshot("memory.pickle")
        snapshot = pickle.loads(Path("memory.pickle").read_bytes())
        os.chdir(here)
    torch.npu.memory._record_memory_history(enabled=None)
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    assert any(block["state"] == "active_allocated" and block["requested_size"] == held.nbytes for block in blocks)
    assert any(entry["action"] == "alloc" for entry in snapshot["device_traces"][0])
    frames = [frame for block in blocks for frame in block.get("frames", [])]
    assert any(frame["filename"] == __file__ for frame in frames), frames


def check_pinned_memory() -> None:
    pinned = torch.arange(5.0).pin_memory()
    assert pinned.is_pinned() and torch.empty(3, pin_memory=True).is_pinned() and not torch.empty(3).is_pinned()
    assert pinned.to("npu", non_blocking=True).cpu().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert not pinned.clone().is_pinned()


def check_memory_of_the_host_that_the_device_sees() -> None:
    for _ in range(3):
        held = [
            torch_npu.empty_with_swapped_memory([256 * n], dtype=torch.float32, device="npu:0") for n in range(1, 6)
        ]
        for number, tensor in enumerate(held):
            tensor.fill_(float(number))
        assert [(tensor + 1).sum().item() for tensor in held] == [256.0 * n * n for n in range(1, 6)]
        assert all(tensor.data_ptr() % 4096 == 0 for tensor in held)
        del held, tensor
        torch.npu.empty_cache()


def check_a_delay_is_accepted() -> None:
    torch.npu._sleep(1 << 40)  # times are not simulated
    torch.npu.synchronize()
    checks.raises(RuntimeError, "cycles", lambda: torch.npu._sleep(-1))


def check_work_of_a_device_is_aborted() -> None:
    assert torch.npu.stop_device(0) == 0
    torch.npu.restart_device(0)
    assert torch.ones(2, device="npu").sum().item() == 2.0


def check_graph_capture_is_refused() -> None:
    linear = torch.nn.Linear(3, 3).npu()
    held = torch.ones(2, 3, device="npu")

    def capture() -> None:
        with torch.npu.graph(torch.npu.NPUGraph()):
            linear(held)

    checks.raises(RuntimeError, "the simulated NPU captures no graph", capture)
    checks.raises(
        RuntimeError, "the simulated NPU captures no graph", lambda: torch.npu.make_graphed_callables(linear, (held,))
    )
    assert not torch.npu.is_current_stream_capturing()
    torch.nn.functional.mse_loss(linear(held), held).backward()  # and the program goes on


if __name__ == "__main__":
    checks.run(globals())
