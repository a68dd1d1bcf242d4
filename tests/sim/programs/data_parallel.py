"""Data parallelism on as many processes as there are: what it trains equals one process with the whole batch."""

from __future__ import annotations

import checks
import torch
import torch.distributed as dist
from group import (
    DEVICE,
    INPUTS,
    RANK,
    SHARE,
    TARGETS,
    WORLD,
    Net,
    adam,
    assert_equals_one_process,
    loss_of,
    sgd,
    train,
    train_share,
    values,
    whole_program,
)
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def check_distributed_data_parallel() -> None:
    assert_equals_one_process(train_share(DistributedDataParallel(Net().to(DEVICE), device_ids=[RANK])))


def check_bucket_views_and_static_graph() -> None:
    net = DistributedDataParallel(Net().to(DEVICE), gradient_as_bucket_view=True, static_graph=True, bucket_cap_mb=1)
    assert_equals_one_process(train_share(net, adam), adam)


def check_unused_parameters() -> None:
    class Partly(Net):
        def __init__(self) -> None:
            super().__init__()
            self.spare = nn.Linear(3, 3)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            for layer in list(self)[:3]:
                inputs = layer(inputs)
            return inputs

    net = train_share(DistributedDataParallel(Partly().to(DEVICE), find_unused_parameters=True))
    assert net.module.spare.weight.grad is None
    torch.testing.assert_close(values(net)[:4], values(train(Net(), INPUTS, TARGETS)))


def check_gradients_gather_without_synchronising() -> None:
    net = DistributedDataParallel(Net().to(DEVICE))
    ours, theirs = INPUTS[SHARE].to(DEVICE), TARGETS[SHARE].to(DEVICE)
    with net.no_sync():
        loss_of(net, ours, theirs).backward()
    alone = net.module[0].weight.grad.clone()
    parts = [torch.empty_like(alone) for _ in range(WORLD)]
    dist.all_gather(parts, alone)
    assert not torch.equal(parts[0], parts[1])
    loss_of(net, ours, theirs).backward()
    reference = Net()
    (2 * loss_of(reference, INPUTS, TARGETS)).backward()
    torch.testing.assert_close(net.module[0].weight.grad.cpu(), reference[0].weight.grad)


def check_communication_hooks() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    for hook, tolerance in (
        (default_hooks.allreduce_hook, {}),
        (default_hooks.fp16_compress_hook, {"rtol": 1e-2, "atol": 1e-3}),
    ):
        net = DistributedDataParallel(Net().to(DEVICE))
        net.register_comm_hook(None, hook)
        assert_equals_one_process(train_share(net), **tolerance)
    net = DistributedDataParallel(Net().to(DEVICE))  # PyTorch itself takes this one for CUDA and XPU only
    checks.raises(TypeError, "BF16 all reduce", lambda: net.register_comm_hook(None, default_hooks.bf16_compress_hook))
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    before = loss_of(Net(), INPUTS, TARGETS).item()
    assert loss_of(train_share(net).module.cpu(), INPUTS, TARGETS).item() < before


def check_ranks_with_fewer_batches_join() -> None:
    net = DistributedDataParallel(Net().to(DEVICE))
    optimizer = sgd(net.parameters())
    with net.join():
        for _ in range(1 + RANK):
            optimizer.zero_grad()
            loss_of(net, INPUTS[SHARE].to(DEVICE), TARGETS[SHARE].to(DEVICE)).backward()
            optimizer.step()
    weight = net.module[0].weight.detach()
    parts = [torch.empty_like(weight) for _ in range(WORLD)]
    dist.all_gather(parts, weight)
    assert all(torch.equal(part, parts[0]) for part in parts)


def check_zero_redundancy_optimizer() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def sharded(parameters: object) -> torch.optim.Optimizer:
        return ZeroRedundancyOptimizer(parameters, torch.optim.Adam, lr=0.01)

    net = DistributedDataParallel(Net().to(DEVICE))
    assert_equals_one_process(train_share(net, sharded), adam)


def check_synchronised_batch_norm() -> None:
    ours, theirs = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(8)).to(DEVICE), nn.BatchNorm1d(8)
    share, whole = INPUTS[SHARE].to(DEVICE).requires_grad_(), INPUTS.clone().requires_grad_()
    result, reference = ours(share), theirs(whole)
    torch.testing.assert_close(result.detach().cpu(), reference[SHARE].detach())
    torch.testing.assert_close(ours.running_var.cpu(), theirs.running_var)
    (result * share.detach()).pow(2).sum().backward()
    (reference * whole.detach()).pow(2).sum().backward()
    torch.testing.assert_close(share.grad.cpu(), whole.grad[SHARE], rtol=1e-4, atol=1e-5)


def check_fully_sharded() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net, mesh = Net().to(DEVICE), init_device_mesh("npu", (WORLD,))
    fully_shard(net[0], mesh=mesh)
    fully_shard(net, mesh=mesh)
    assert net[0].weight.to_local().shape[0] == 16 // WORLD
    assert_equals_one_process(train_share(net, adam), adam)


def check_fully_sharded_of_the_first_kind() -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        net = FullyShardedDataParallel(
            Net().to(DEVICE), sharding_strategy=strategy, device_id=DEVICE, use_orig_params=True
        )
        train_share(net)
        with FullyShardedDataParallel.summon_full_params(net):
            assert_equals_one_process(net)


def check_objects_over_hccl() -> None:
    group = dist.new_group(backend="hccl")
    for turn in range(3):
        gathered = [None] * WORLD if RANK == 0 else None
        dist.gather_object({"rank": RANK, "text": "x" * (RANK * 77 + turn)}, gathered, group=group)
        assert gathered is None or [len(each["text"]) for each in gathered] == [r * 77 + turn for r in range(WORLD)]
        shared = [{"turn": turn}, "y" * 50] if RANK == 0 else [None, None]
        dist.broadcast_object_list(shared, group=group)
        assert shared == [{"turn": turn}, "y" * 50]
        mine: list[object] = [None]
        dist.scatter_object_list(mine, list(range(WORLD)) if RANK == 0 else None, group=group)
        assert mine == [RANK]


if __name__ == "__main__":
    with whole_program():
        checks.run(globals())
