"""Two processes, one simulated device each: collectives through torch_npu's own process group."""

from __future__ import annotations

import checks
import torch
import torch.distributed as dist
from group import DEVICE, RANK, WORLD


def full(value: float, *shape: int) -> torch.Tensor:
    return torch.full(shape, float(value), device=DEVICE)


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
    whole = torch.tensor([3, -3, 4], device=DEVICE) + RANK
    dist.all_reduce(whole, op=dist.ReduceOp.AVG)
    assert whole.tolist() == [3, -2, 4]
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


def check_work_is_waited_for_when_its_result_is_needed() -> None:
    dist.all_reduce(full(0, 1))  # joins the ranks
    x, told = full(RANK + 1, 4), torch.tensor([float(RANK)])
    if RANK == 0:
        work = dist.all_reduce(x, async_op=True)
        assert (torch.ones(3, device=DEVICE) * 2).sum().item() == 6  # meanwhile: the other rank has not called yet
        assert not work.is_completed()
        dist.broadcast(told, 0)  # over gloo: only now it will
    else:
        dist.broadcast(told, 0)
        work = dist.all_reduce(x, async_op=True)
    work.wait()
    assert x.tolist() == [3] * 4, x
    assert work.is_completed()
    assert told.item() == 0, told


def check_received_in_advance() -> None:
    early = full(-1, 3)
    if RANK == 0:
        work = dist.irecv(early, 1)
        question = torch.tensor([5.0])
        dist.send(question, 1)  # over gloo: the answer comes after it
        work.wait()
        assert early.tolist() == [10] * 3
    else:
        question = torch.tensor([0.0])
        dist.recv(question, 0)
        dist.send(full(2 * question.item(), 3), 0)


def check_coalesced_calls() -> None:
    first, second = full(RANK, 2), full(RANK + 1, 3)
    with dist._coalescing_manager(device=DEVICE, async_ops=True) as works:
        dist.all_reduce(first)
        dist.all_reduce(second)
    works.wait()
    assert first.tolist() == [1] * 2 and second.tolist() == [3] * 3
    gathered = [full(-1, 2 * WORLD), full(-1, WORLD)]
    with dist._coalescing_manager(device=DEVICE):
        dist.all_gather_into_tensor(gathered[0], full(RANK, 2))
        dist.all_gather_into_tensor(gathered[1], full(RANK + 5, 1))
    assert [t.tolist() for t in gathered] == [[0, 0, 1, 1], [5, 6]]


def check_uneven_splits() -> None:
    counts = [RANK + 1, RANK + 2]
    received = full(-1, sum(rank + 1 + RANK for rank in range(WORLD)))
    dist.all_to_all_single(received, full(RANK, sum(counts)), [rank + 1 + RANK for rank in range(WORLD)], counts)
    assert received.tolist() == [0.0] * (RANK + 1) + [1.0] * (RANK + 2)


def check_objects() -> None:
    objects = [None, None] if RANK else ["one", {"two": 2}]
    dist.broadcast_object_list(objects)
    assert objects == ["one", {"two": 2}]
    mine: list[object] = [None]
    dist.scatter_object_list(mine, [10, 11] if RANK == 0 else None)
    assert mine == [10 + RANK]
    gathered = [None, None] if RANK == 0 else None
    dist.gather_object(RANK, gathered)
    assert gathered in (None, [0, 1])


def check_groups_and_barriers() -> None:
    single = [dist.new_group([rank]) for rank in range(WORLD)]
    x = full(3, 2)
    dist.all_reduce(x, group=single[RANK])
    assert x.tolist() == [3, 3]
    dist.barrier(device_ids=[RANK])
    dist.monitored_barrier(group=dist.new_group(backend="gloo"))
    checks.raises(ValueError, "only implemented for GLOO", lambda: dist.monitored_barrier(group=single[RANK]))


def check_what_torch_npu_refuses() -> None:
    checks.raises(RuntimeError, "Cannot use ReduceOp.BAND", lambda: dist.all_reduce(full(1, 2), dist.ReduceOp.BAND))
    checks.raises(RuntimeError, "contiguous", lambda: dist.all_reduce(torch.ones(4, 4, device=DEVICE).t()[1:]))
    unsigned = torch.ones(2, dtype=torch.uint16).to(DEVICE)
    checks.raises(RuntimeError, "Unsupported data type", lambda: dist.all_reduce(unsigned))
