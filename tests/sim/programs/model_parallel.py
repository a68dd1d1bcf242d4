"""One model over two processes: tensor parallel, sequence parallel, pipeline stages, and its checkpoint."""

from __future__ import annotations

import tempfile

import torch
import torch.distributed as dist
from group import DEVICE, INPUTS, RANK, TARGETS, WORLD, Net, adam, train, values
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

MESH = init_device_mesh("npu", (WORLD,))


class Block(nn.Module):
    """The two halves of a transformer's feed-forward layer behind a norm."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.gelu(self.up(self.norm(inputs))))


def assert_same_gradients(ours: nn.Module, theirs: nn.Module) -> None:
    for (name, parameter), reference in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        gradient = parameter.grad.full_tensor() if isinstance(parameter.grad, DTensor) else parameter.grad
        torch.testing.assert_close(gradient.cpu(), reference.grad, msg=lambda text, name=name: f"{name}: {text}")


def check_columns_then_rows() -> None:
    net = parallelize_module(Net().to(DEVICE), MESH, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert net[0].weight.to_local().shape == (16 // WORLD, 8) and net[2].weight.to_local().shape == (1, 16 // WORLD)
    trained = train(net, INPUTS.to(DEVICE), TARGETS.to(DEVICE), adam)
    torch.testing.assert_close(values(trained), values(train(Net(), INPUTS, TARGETS, adam)))


def check_rows_then_columns() -> None:
    plan = {"0": RowwiseParallel(input_layouts=Replicate()), "2": ColwiseParallel(output_layouts=Replicate())}
    net = parallelize_module(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(DEVICE), MESH, plan)
    for parameter in net.parameters():
        assert isinstance(parameter, DTensor)
    reference = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    with torch.no_grad():
        for ours, theirs in zip(net.parameters(), reference.parameters(), strict=True):
            ours.copy_(distribute_tensor(theirs.to(DEVICE), MESH, ours.placements))
    output, expected = net(INPUTS.to(DEVICE)), reference(INPUTS)
    torch.testing.assert_close(output.detach().cpu(), expected.detach())
    output.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    assert_same_gradients(net, reference)


def check_sequence_parallel() -> None:
    sequence = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(3))
    block, reference = Block().to(DEVICE), Block()
    plan = {
        "norm": SequenceParallel(),
        "up": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
    }
    parallelize_module(block, MESH, plan)
    parallelize_module(block.up, MESH, ColwiseParallel())
    share = DTensor.from_local(sequence.chunk(WORLD, dim=1)[RANK].to(DEVICE), MESH, [Shard(1)])
    output = block(share)
    output = output if isinstance(output, DTensor) else DTensor.from_local(output, MESH, [Shard(1)])
    torch.testing.assert_close(output.full_tensor().detach().cpu(), reference(sequence).detach())
    output.pow(2).sum().backward()
    reference(sequence).pow(2).sum().backward()
    assert_same_gradients(block, reference)


def check_placements_change_into_one_another() -> None:
    whole = torch.arange(24.0).view(4, 6)
    for before in (Replicate(), Shard(0), Shard(1)):
        spread = distribute_tensor(whole.to(DEVICE), MESH, [before])
        for after in (Replicate(), Shard(0), Shard(1)):
            assert torch.equal(spread.redistribute(MESH, [after]).full_tensor().cpu(), whole)
    partial = DTensor.from_local(whole.to(DEVICE), MESH, [Partial()])
    for after in (Replicate(), Shard(0), Shard(1)):
        assert torch.equal(partial.redistribute(MESH, [after]).full_tensor().cpu(), whole * WORLD)


def check_pipeline_of_two_stages() -> None:
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (output - target).pow(2).mean()

    for schedule in (ScheduleGPipe, Schedule1F1B):
        layers = list(Net())
        part = nn.Sequential(*(layers[:2] if RANK == 0 else layers[2:])).to(DEVICE)
        runner = schedule(PipelineStage(part, RANK, WORLD, DEVICE), n_microbatches=4, loss_fn=loss)
        optimizer = torch.optim.SGD(part.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            if RANK == 0:
                runner.step(INPUTS.to(DEVICE))
            else:
                runner.step(target=TARGETS.to(DEVICE), losses=[])
            optimizer.step()
        reference = Net()
        optimizer = torch.optim.SGD(reference.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss(reference(INPUTS), TARGETS).backward()
            optimizer.step()
        torch.testing.assert_close(values(part), values(reference)[:2] if RANK == 0 else values(reference)[2:])


def check_checkpoint_of_a_sharded_model() -> None:
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    def build() -> tuple[nn.Module, torch.optim.Optimizer]:
        net = fully_shard(Net().to(DEVICE), mesh=MESH)
        return net, torch.optim.Adam(net.parameters(), 0.01)

    def step(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        (net(INPUTS.to(DEVICE)) - TARGETS.to(DEVICE)).pow(2).mean().backward()
        optimizer.step()

    places = [tempfile.mkdtemp() if RANK == 0 else None]
    dist.broadcast_object_list(places)
    first, optimizer = build()
    step(first, optimizer)
    model_state, optimizer_state = get_state_dict(first, optimizer)
    checkpoint.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=places[0])
    second, other = build()
    model_state, optimizer_state = get_state_dict(second, other)
    state = {"model": model_state, "optimizer": optimizer_state}
    checkpoint.load(state, checkpoint_id=places[0])
    set_state_dict(second, other, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    torch.testing.assert_close(values(second), values(first), rtol=0, atol=0)
    step(first, optimizer)
    step(second, other)
    torch.testing.assert_close(values(second), values(first), rtol=0, atol=0)


def check_random_numbers_of_sharded_tensors() -> None:
    def draw() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        torch.manual_seed(5)
        sharded = distribute_tensor(torch.empty(8, 4, device=DEVICE), MESH, [Shard(0)]).uniform_()
        replicated = distribute_tensor(torch.empty(3, 4, device=DEVICE), MESH, [Replicate()]).normal_()
        return sharded.full_tensor(), replicated.to_local(), torch.rand(4, device=DEVICE)

    sharded, replicated, after = draw()
    assert not torch.equal(sharded[:4], sharded[4:]) and sharded.min() >= 0 and sharded.max() < 1
    for mine in (replicated, after):
        both = [torch.empty_like(mine) for _ in range(WORLD)]
        dist.all_gather(both, mine)
        assert torch.equal(both[0], both[1])
    for first, second in zip((sharded, replicated, after), draw(), strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(torch.rand(4, device=DEVICE), after)
    torch.manual_seed(5)  # and the device follows the CPU again
    assert torch.equal(torch.rand(4, device=DEVICE).cpu(), torch.rand(4, generator=torch.Generator().manual_seed(5)))
