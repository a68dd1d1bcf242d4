"""Programs of several processes on the simulated NPU, however they are started and however they end."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable

import pytest
from test_programs import checks_in

from npuport.sim import SimOptions

# program, processes, the files its checks are in
PROGRAMS = [
    ("two_processes.py", 2, ("distributed.py", "data_parallel.py", "model_parallel.py")),
    ("data_parallel.py", 4, ("data_parallel.py",)),
]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("program", "processes", "check"),
    [(name, count, check) for name, count, files in PROGRAMS for file in files for check in checks_in(file)],
)
def test_program(outcomes: Callable[..., dict[str, str | None]], program: str, processes: int, check: str) -> None:
    error = outcomes(program, processes, processes)[check]
    assert error is None, error


BODY = """
import os, signal, sys, time
import torch, torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, size, ending):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1], RANK=str(rank), WORLD_SIZE=str(size))
    torch.npu.set_device(rank)
    dist.init_process_group(device_id=torch.device("npu", rank))  # the backend of the device: hccl
    x = torch.ones(3, device="npu")
    dist.all_reduce(x)
    assert x.tolist() == [size] * 3 and dist.get_backend() == "hccl"
    os.write(1, b"joined\\n")  # in one piece: both write to the same pipe
    if rank == 1 and ending == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1 and ending == "raises":
        raise ValueError("rank 1 gives up")
    if rank == 1 and ending == "hangs":
        time.sleep(100)
    dist.all_reduce(x)
    os.write(1, f"{x.sum().item()}\\n".encode())
    dist.destroy_process_group()
"""
SPAWN = BODY + "\nif __name__ == '__main__':\n    mp.spawn(work, (2, sys.argv[2]), nprocs=2)\n"
APART = (
    BODY
    + """
if __name__ == "__main__":
    processes = [mp.get_context("spawn").Process(target=work, args=(rank, 2, sys.argv[2])) for rank in range(2)]
    for process in processes:
        process.start()
    processes[0].join()  # and the other one stays as the kernel leaves it
    code = processes[0].exitcode
    processes[1].kill()
    sys.exit(code != 0)
"""
)


@pytest.fixture
def port() -> str:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def start(
    simulated: Run, tmp_path: object, text: str, *arguments: str, **variables: str
) -> tuple[str, str, int, float]:
    script = tmp_path / "script.py"  # type: ignore[operator]
    script.write_text(text)
    begin = time.monotonic()
    done = simulated([script, *arguments], SimOptions(devices=2), **variables)
    return done.stdout, done.stderr, done.returncode, time.monotonic() - begin


def test_a_killed_rank_ends_the_job(simulated: Run, tmp_path: object, port: str) -> None:
    stdout, stderr, code, seconds = start(simulated, tmp_path, APART, port, "killed")
    assert stdout.split() == ["joined", "joined"] and code == 1 and seconds < 60
    said = re.search(
        r"^npuport simulated NPU: EI0002: .* rank 0, waiting for the other ranks: rank 1 \(process", stderr, re.M
    )
    assert said, stderr[-3000:]


def test_a_spawned_rank_that_gives_up_ends_the_job(simulated: Run, tmp_path: object, port: str) -> None:
    stdout, stderr, code, seconds = start(simulated, tmp_path, SPAWN, port, "raises")
    assert "joined" in stdout and code == 1 and "rank 1 gives up" in stderr and seconds < 60


def test_a_rank_that_hangs_is_not_waited_for_longer_than_hccl_may(simulated: Run, tmp_path: object, port: str) -> None:
    _, stderr, code, seconds = start(simulated, tmp_path, APART, port, "hangs", HCCL_EXEC_TIMEOUT="2")
    assert code == 1 and "no answer within 2 s" in stderr and seconds < 60, stderr[-3000:]


def test_many_machines_are_tried_with_the_fake_backend(simulated: Run) -> None:
    code = """
import torch, torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

dist.init_process_group("npu:fake", store=FakeStore(), rank=3, world_size=512)
mesh = init_device_mesh("npu", (64, 8), mesh_dim_names=("data", "tensor"))
net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.Linear(4096, 1024)).npu()
fully_shard(net, mesh=mesh["data"])
optimizer = torch.optim.AdamW(net.parameters())
net(torch.randn(2, 1024, device="npu")).sum().backward()
optimizer.step()
print(dist.get_world_size(), net[0].weight.to_local().shape, torch.npu.max_memory_allocated() > 32 << 20)
"""
    done = simulated(["-c", code])
    assert done.stdout == "512 torch.Size([64, 1024]) True\n", done.stderr[-2000:]
