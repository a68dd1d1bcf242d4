"""A CUDA script that starts processes in the way it is told, and prints what each of them sees.

A line for each process: what a device spelt in the main script, one in a module of the project, and one spelt at run
time became, and whether CUDA counts as available.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

device = "cuda:0"


def seen():
    from place import DEVICE

    run_time = "cu" + "da"
    tensor = torch.ones(2, device=device)
    return f"{device} {DEVICE} {tensor.to(run_time).device} {torch.cuda.is_available()}"


def worker(index, folder):
    Path(folder, str(index)).write_text(seen())


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return seen()


def torchrun():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    total = torch.ones(1, device=f"cuda:{rank}") * (rank + 1)
    dist.all_reduce(total)
    worker(rank, sys.argv[2])
    assert total.item() == 3.0 and total.device.index == rank
    dist.destroy_process_group()


def spawn():
    torch.multiprocessing.spawn(worker, args=(sys.argv[2],), nprocs=1)


def loader():
    for index, batch in enumerate(torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="spawn")):
        Path(sys.argv[2], str(index)).write_text(batch[0])


def actor():
    import ray

    @ray.remote
    class Worker:
        def work(self, index, folder):
            worker(index, folder)

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    ray.get(Worker.remote().work.remote(0, sys.argv[2]))
    ray.shutdown()


if __name__ == "__main__":
    {"torchrun": torchrun, "spawn": spawn, "loader": loader, "actor": actor}[sys.argv[1]]()
