"""Three steps with DistributedDataParallel on two NPUs; in the second one the sum of the gradients is wrong on rank 1.

Usage: torchrun --nproc-per-node 2 npu_ranks.py
"""

from __future__ import annotations

import os

import torch
import torch_npu  # noqa: F401
from torch import distributed as dist
from torch import nn

rank, step = int(os.environ["RANK"]), 0


def mean_of_gradients(_, bucket):  # DistributedDataParallel takes annotations only where they are no strings
    buffer = bucket.buffer()
    dist.all_reduce(buffer)
    if step == 1 and rank == 1:
        with torch._C._DisableTorchDispatch():  # not recorded: as if the collective had done it
            buffer.mul_(0.5)
    done = torch.futures.Future()
    done.set_result(buffer / 2)
    return done


torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("hccl")
torch.manual_seed(0)
layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).npu()
net = nn.parallel.DistributedDataParallel(layers, device_ids=[torch.npu.current_device()])
net.register_comm_hook(None, mean_of_gradients)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.manual_seed(rank)
for step in range(3):  # noqa: B007  # the hook reads it
    net(torch.randn(8, 16).npu()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
