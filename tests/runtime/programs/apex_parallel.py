"""Apex's parallel layers in two processes on the simulated NPU, against the mean over both."""

from __future__ import annotations

import torch
import torch.distributed as dist

from npuport.runtime.activation import activate

activate()

from apex.parallel import (  # noqa: E402
    DistributedDataParallel,
    Reducer,
    SyncBatchNorm,
    convert_syncbn_model,
    create_syncbn_process_group,
)
from torch import nn  # noqa: E402

dist.init_process_group("hccl")
rank = dist.get_rank()
torch.npu.set_device(rank)


class Net(nn.Module):
    """Two layers, of which one is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(3, 1, bias=False), nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x)


x = torch.full((1, 3), 1.0 + rank).npu()
for options, wanted in (
    ({}, 1.5),
    ({"gradient_average": False}, 3.0),
    ({"gradient_predivide_factor": 2.0, "allreduce_always_fp32": True}, 1.5),
):
    torch.manual_seed(rank)  # parameters become those of the first process
    net = DistributedDataParallel(Net().npu(), **options)
    for _ in range(2):
        net.zero_grad()
        net(x).sum().backward()
        torch.testing.assert_close(net.module.used.weight.grad.cpu(), torch.full((1, 3), wanted))
    weights = [torch.zeros(1, 3).npu() for _ in range(2)]
    dist.all_gather(weights, net.module.used.weight.detach())
    assert torch.equal(*weights)
net.disable_allreduce()
net.zero_grad()
net(x).sum().backward()
torch.testing.assert_close(net.module.used.weight.grad.cpu(), torch.full((1, 3), 1.0 + rank))

module = Net().npu()
reducer = Reducer(module)
module(x).sum().backward()
reducer.reduce()
torch.testing.assert_close(module.used.weight.grad.cpu(), torch.full((1, 3), 1.5))

torch.manual_seed(0)
both = torch.randn(4, 2, 5)
plain = nn.BatchNorm1d(2)
expected = plain(both)
half = both[rank * 2 : rank * 2 + 2].npu()
synced = convert_syncbn_model(nn.Sequential(nn.BatchNorm1d(2)).npu())
assert isinstance(synced[0], SyncBatchNorm)
torch.testing.assert_close(synced(half).cpu(), expected[rank * 2 : rank * 2 + 2], atol=1e-5, rtol=1e-5)
torch.testing.assert_close(synced[0].running_var.cpu(), plain.running_var, atol=1e-5, rtol=1e-5)
last = SyncBatchNorm(2, channel_last=True, fuse_relu=True).npu()
found = last(half.movedim(1, -1).contiguous(), torch.ones_like(half.movedim(1, -1)))
wanted = (expected[rank * 2 : rank * 2 + 2].movedim(1, -1) + 1).relu()
torch.testing.assert_close(found.cpu(), wanted, atol=1e-5, rtol=1e-5)
assert create_syncbn_process_group(0) is None
assert dist.get_world_size(create_syncbn_process_group(1)) == 1
dist.destroy_process_group()
print("passed", rank)
