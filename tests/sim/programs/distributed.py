"""Two processes, one simulated device each: collectives through torch_npu's own process group."""

from __future__ import annotations

import warnings

import checks
import torch
import torch.distributed as dist
from torch import nn

warnings.simplefilter("ignore")
dist.init_process_group("hccl")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
torch.npu.set_device(RANK)
DEVICE = torch.device("npu", RANK)
torch.manual_seed(1)
INPUTS, TARGETS = torch.randn(16, 8), torch.randn(16, 1)
SHARE = slice(RANK * 16 // WORLD, (RANK + 1) * 16 // WORLD)


def full(value: float, *shape: int) -> torch.Tensor:
    return torch.full(shape, float(value), device=DEVICE)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def train(net: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(5):
        optimizer.zero_grad()
        (net(inputs) - targets).pow(2).mean().backward()
        optimizer.step()
    whole = (p.full_tensor() if hasattr(p, "full_tensor") else p for p in net.parameters())
    return [p.detach().cpu() for p in whole]


def check_all_reduce() -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.uint8):
        x = torch.ones(5, device=DEVICE).to(dtype)
        dist.all_reduce(x)
        assert x.dtype == dtype and x.float().tolist() == [2.0] * 5, (dtype, x)
    for operation, expected in (
        (dist.ReduceOp.MAX, 2),
        (dist.ReduceOp.MIN, 1),
        (dist.ReduceOp.PRODUCT, 2),
        (dist.ReduceOp.AVG, 1.5),
    ):
        x = full(RANK + 1, 3)
        dist.all_reduce(x, op=operation)
        assert x.tolist() == [expected] * 3
    flags = torch.tensor([RANK == 0, False], device=DEVICE)
    dist.all_reduce(flags, op=dist.ReduceOp.MAX)
    assert flags.tolist() == [True, False]


def check_all_reduce_longer_than_a_slot() -> None:
    x = torch.arange(3_000_001, device=DEVICE, dtype=torch.float32)
    dist.all_reduce(x)
    assert torch.equal(x.cpu(), torch.arange(3_000_001, dtype=torch.float32) * 2)


def check_half_precision_sums_round_like_torch() -> None:
    generator = torch.Generator().manual_seed(7)
    for dtype in (torch.float16, torch.bfloat16):
        scale = torch.tensor([1e-7, 1e-4, 1.0, 1e4]).repeat_interleave(500)
        parts = [(torch.randn(2000, generator=generator) * scale).to(dtype) for _ in range(WORLD)]
        parts[0][:3] = torch.tensor([float("inf"), float("nan"), 65504.0])
        parts[1][2] = 65504.0
        x = parts[RANK].to(DEVICE)
        dist.all_reduce(x)
        torch.testing.assert_close(x.cpu(), parts[0] + parts[1], rtol=0, atol=0, equal_nan=True)


def check_broadcast_and_reduce() -> None:
    x = full(RANK, 7)
    dist.broadcast(x, 1)
    assert x.tolist() == [1.0] * 7
    y = full(1, 3)
    dist.reduce(y, 0)
    assert y.tolist() == [2.0 if RANK == 0 else 1.0] * 3


def check_gathers() -> None:
    lists = [full(-1, 3) for _ in range(WORLD)]
    dist.all_gather(lists, full(RANK, 3))
    assert [t.tolist() for t in lists] == [[0.0] * 3, [1.0] * 3]
    uneven = [full(-1, 3 + rank) for rank in range(WORLD)]
    dist.all_gather(uneven, full(RANK, 3 + RANK))
    assert [t.tolist() for t in uneven] == [[0.0] * 3, [1.0] * 4]
    flat = full(-1, 2 * WORLD)
    dist.all_gather_into_tensor(flat, full(RANK, 2))
    assert flat.tolist() == [0, 0, 1, 1]
    collected = [full(-1, 2) for _ in range(WORLD)] if RANK == 0 else None
    dist.gather(full(RANK, 2), collected, dst=0)
    assert RANK or [t.tolist() for t in collected] == [[0.0] * 2, [1.0] * 2]


def check_scatters() -> None:
    out = full(-1, 2)
    dist.reduce_scatter_tensor(out, torch.arange(4.0, device=DEVICE))
    assert out.tolist() == [[0, 2], [4, 6]][RANK]
    dist.reduce_scatter(out, [full(rank, 2) for rank in range(WORLD)])
    assert out.tolist() == [2.0 * RANK] * 2
    dist.scatter(out, [full(rank, 2) for rank in range(WORLD)] if RANK == 0 else None, src=0)
    assert out.tolist() == [RANK] * 2


def check_all_to_all() -> None:
    out = full(-1, 4)
    dist.all_to_all_single(out, torch.arange(4.0, device=DEVICE) + 10 * RANK)
    assert out.tolist() == [[0, 1, 10, 11], [2, 3, 12, 13]][RANK]
    lists = [full(-1, rank + 1 + RANK) for rank in range(WORLD)]
    dist.all_to_all(lists, [full(RANK, rank + 1 + RANK) for rank in range(WORLD)])
    assert [t.tolist() for t in lists] == [[rank] * (rank + 1 + RANK) for rank in range(WORLD)]


def check_large_sends_in_both_directions_do_not_block() -> None:
    ours, theirs = full(RANK, 2_000_000), full(-1, 2_000_000)
    send, receive = dist.isend(ours, 1 - RANK), dist.irecv(theirs, 1 - RANK)
    send.wait()
    receive.wait()
    assert theirs.unique().tolist() == [1 - RANK]


def check_batched_receive_before_send() -> None:
    theirs = full(-1, 3)
    operations = [dist.P2POp(dist.irecv, theirs, 1 - RANK), dist.P2POp(dist.isend, full(RANK, 3), 1 - RANK)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert theirs.tolist() == [1 - RANK] * 3


def check_objects_groups_and_barrier() -> None:
    objects = [None] * WORLD
    dist.all_gather_object(objects, {"rank": RANK})
    assert objects == [{"rank": 0}, {"rank": 1}]
    group = dist.new_group([0, 1])
    x = full(1, 2)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [2, 2]
    dist.barrier()


def check_data_parallel_equals_one_process() -> None:
    parallel = nn.parallel.DistributedDataParallel(model().npu())
    torch.testing.assert_close(
        train(parallel, INPUTS[SHARE].npu(), TARGETS[SHARE].npu()), train(model(), INPUTS, TARGETS)
    )


def check_fully_sharded_equals_one_process() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net, mesh = model().npu(), init_device_mesh("npu", (WORLD,))
    fully_shard(net[0], mesh=mesh)
    fully_shard(net, mesh=mesh)
    torch.testing.assert_close(train(net, INPUTS[SHARE].npu(), TARGETS[SHARE].npu()), train(model(), INPUTS, TARGETS))


def check_synchronised_batch_norm() -> None:
    ours, theirs = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(8)).npu(), nn.BatchNorm1d(8)
    torch.testing.assert_close(ours(INPUTS[SHARE].npu()).cpu(), theirs(INPUTS)[SHARE])
    torch.testing.assert_close(ours.running_var.cpu(), theirs.running_var)


if __name__ == "__main__":
    checks.run(globals())
    dist.destroy_process_group()
