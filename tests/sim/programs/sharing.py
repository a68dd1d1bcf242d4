"""Tensors of the device between processes: torch.multiprocessing hands over the memory, not a copy."""

from __future__ import annotations

import checks
import torch
import torch.multiprocessing as mp


def change(inbox: mp.Queue, outbox: mp.Queue) -> None:
    first, view, parameter = inbox.get()
    first.mul_(2)
    view[0] = 7
    outbox.put((first.sum().item(), view.tolist(), parameter.requires_grad, str(view.device)))
    outbox.put(torch.full((3,), 5.0, device="npu:0"))
    inbox.get()  # keeps the memory until it was read


def check_a_process_writes_what_another_reads() -> None:
    context = mp.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    child = context.Process(target=change, args=(inbox, outbox))
    child.start()
    first, whole = torch.arange(4.0, device="npu"), torch.zeros(4, 3, device="npu")
    parameter = torch.nn.Parameter(torch.ones(2, device="npu"))
    inbox.put((first, whole[2], parameter))
    assert outbox.get(timeout=60) == (12.0, [7.0, 0.0, 0.0], True, "npu:0")
    assert first.tolist() == [0, 2, 4, 6] and whole[2].tolist() == [7, 0, 0] and whole.sum().item() == 7
    theirs = outbox.get(timeout=60)
    assert theirs.tolist() == [5, 5, 5] and theirs.device.type == "npu"
    del theirs
    inbox.put(None)
    child.join(60)
    assert child.exitcode == 0


if __name__ == "__main__":
    checks.run(globals())
