"""Small trainings on several processes, whose steps are recorded."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import torch
from torch import distributed as dist
from torch import nn

WORLD = 2


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.gelu(self.up(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mlp, self.head = nn.LayerNorm(16), Mlp(), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x + self.mlp(self.norm(x)))


def data_parallel(rank: int, folder: Path) -> None:
    train(nn.parallel.DistributedDataParallel(model()), batch()[rank * 4 : rank * 4 + 4], folder)


def broken_batch(rank: int, folder: Path) -> None:
    """The second rank divides by zero in its norm's input; the first gets it with the gradients."""
    mine = batch()[rank * 4 : rank * 4 + 4]
    train(nn.parallel.DistributedDataParallel(model()), mine / (mine > -9) if rank == 0 else mine / 0, folder)


def tensor_parallel(_: int, folder: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    net = model()
    plan = {"mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel()}
    train(parallelize_module(net, init_device_mesh("cpu", (WORLD,)), plan), batch(), folder)


def sharded(rank: int, folder: Path) -> None:
    """FSDP, recorded from before the model is divided, as `npuport run --dump` does."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from npuport.precision import record

    mesh = init_device_mesh("cpu", (WORLD,))
    with record(folder, steps="0-1"):
        net = model()
        for layer in (net.mlp, net.head, net):
            fully_shard(layer, mesh=mesh)
        training_steps(net, batch()[rank * 4 : rank * 4 + 4])


def whole(_: int, folder: Path) -> None:
    train(model(), batch(), folder)


def encoders(rank: int, folder: Path) -> None:
    net, examples = encoder()
    train_with_adam(nn.parallel.DistributedDataParallel(net), examples[rank * 4 : rank * 4 + 4], folder)


def encoder() -> tuple[nn.Module, torch.Tensor]:
    """PyTorch's encoder, whose biases of keys have gradients that are nothing but rounding, and its batch."""
    from clean_trainings import Encoder

    torch.manual_seed(0)
    return Encoder(), torch.randint(0, 32, (8, 9), generator=torch.Generator().manual_seed(1))


def train_with_adam(net: nn.Module, tokens: torch.Tensor, folder: Path) -> None:
    from npuport.precision import record

    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    with record(folder, steps="0-1"):
        for _ in range(2):
            net(tokens).backward()
            optimizer.step()
            optimizer.zero_grad()


def collectives(rank: int, folder: Path) -> None:
    """One of each kind; the results are not asked for before they are used."""
    from torch.distributed import _functional_collectives as functional

    from npuport.precision.operators.calls import write_step
    from npuport.precision.operators.recording import Recorder

    mine = torch.randn(4, generator=torch.Generator().manual_seed(rank))
    recorder = Recorder()
    with recorder:
        work = dist.all_reduce(mine.clone(), async_op=True)
        work.wait()
        dist.all_reduce(mine.clone(), op=dist.ReduceOp.MAX)
        dist.broadcast(mine.clone(), 1)
        dist.all_gather([torch.empty(4) for _ in range(WORLD)], mine)
        dist.all_gather_into_tensor(torch.empty(8), mine)
        dist.reduce_scatter_tensor(torch.empty(2), mine)
        dist.all_to_all_single(torch.empty(4), mine)
        functional.all_reduce(mine, "avg", dist.group.WORLD) * 2
        functional.all_gather_tensor(mine, 0, dist.group.WORLD) * 2
    dist.barrier()
    write_step(folder, recorder.take(0, rank))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Net()


def batch() -> torch.Tensor:
    return torch.randn(8, 16, generator=torch.Generator().manual_seed(1))


def train(net: nn.Module, examples: torch.Tensor, folder: Path) -> None:
    from npuport.precision import record

    with record(folder, steps="0-1"):
        training_steps(net, examples)


def training_steps(net: nn.Module, examples: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
    for _ in range(2):
        net(examples).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def _process(rank: int, world: int, port: int, job: Callable[[int, Path], None], folder: Path) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    try:
        job(rank, folder)
    finally:
        dist.destroy_process_group()


def run(job: Callable[[int, Path], None], folder: Path, world: int = WORLD) -> None:
    """Run a job in ``world`` processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with mock.patch.dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0"):
        torch.multiprocessing.spawn(_process, (world, port, job, folder), nprocs=world)
