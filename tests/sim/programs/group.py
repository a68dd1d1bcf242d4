"""What programs of several processes share: the group, a small model, data of the whole batch, and the reference."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn

warnings.simplefilter("ignore")
dist.init_process_group("cpu:gloo,npu:hccl")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
torch.npu.set_device(RANK)
DEVICE = torch.device("npu", RANK)
torch.manual_seed(1)
INPUTS, TARGETS = torch.randn(16, 8), torch.randn(16, 1)
SHARE = slice(RANK * 16 // WORLD, (RANK + 1) * 16 // WORLD)


class Net(nn.Sequential):
    """8 numbers to 1, through 16."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        super().__init__(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


Optimizer = Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]


def sgd(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, 0.1)


def adam(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, 0.01)


def loss_of(net: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (net(inputs) - targets).pow(2).mean()


def train(net: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, optimizer: Optimizer = sgd) -> nn.Module:
    """Five steps."""
    stepper = optimizer(net.parameters())
    for _ in range(5):
        stepper.zero_grad()
        loss_of(net, inputs, targets).backward()
        stepper.step()
    return net


def train_share(net: nn.Module, optimizer: Optimizer = sgd) -> nn.Module:
    """Five steps on this rank's part of the batch."""
    return train(net, INPUTS[SHARE].to(DEVICE), TARGETS[SHARE].to(DEVICE), optimizer)


def values(net: nn.Module) -> list[torch.Tensor]:
    """Whole parameters, on the host."""
    whole = (p.full_tensor() if hasattr(p, "full_tensor") else p for p in net.parameters())
    return [p.detach().cpu() for p in whole]


def assert_equals_one_process(net: nn.Module, optimizer: Optimizer = sgd, **tolerance: float) -> None:
    """The parameters are what training on the whole batch in one process on the CPU makes of them."""
    torch.testing.assert_close(values(net), values(train(Net(), INPUTS, TARGETS, optimizer)), **tolerance)


@contextmanager
def whole_program() -> Iterator[None]:
    try:
        yield
    finally:
        dist.destroy_process_group()
