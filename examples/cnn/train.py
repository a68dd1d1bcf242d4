"""Train a small residual CNN on CIFAR-shaped images.

python train.py                                 # one GPU, or the CPU if there is none
python train.py --amp                           # mixed precision
python train.py --dataparallel                  # all GPUs of this machine, one process
torchrun --nproc_per_node=4 train.py --amp      # DistributedDataParallel, one process per GPU
"""

import argparse
import json
import os
import random
import time

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn as nn
from data import SyntheticCIFAR
from model import SmallResNet
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def get_args():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--max-steps", type=int, default=None, help="stop after this many steps")
    p.add_argument("--train-size", type=int, default=1280)
    p.add_argument("--batch-size", type=int, default=64, help="per process")
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--width", type=int, default=16, help="channels of the first layer")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--gpu", type=int, default=0, help="GPU to use in a single-process run")
    p.add_argument("--amp", action="store_true", help="mixed precision")
    p.add_argument("--dataparallel", action="store_true", help="nn.DataParallel over all GPUs")
    p.add_argument("--dist-backend", default=None, help="default: nccl on GPUs, gloo otherwise")
    # torchrun takes --log for an abbreviation of its own --log-dir, hence the second name
    p.add_argument("--log", "--log-file", default="", help="write one JSON line per step to this file (rank 0)")
    p.add_argument("--save", default="", help="write the weights to this file (rank 0)")
    return p.parse_args()


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def init_distributed(args, use_cuda):
    """Join the process group torchrun has described in the environment; (rank, local_rank, world_size)."""
    if "LOCAL_RANK" not in os.environ:
        return 0, args.gpu, 1
    local_rank = int(os.environ["LOCAL_RANK"])
    if args.dist_backend:
        dist.init_process_group(args.dist_backend)
    elif use_cuda:
        torch.cuda.set_device(local_rank)
        dist.init_process_group(backend="nccl", init_method="env://")
    else:
        dist.init_process_group(backend="gloo", init_method="env://")
    return dist.get_rank(), local_rank, dist.get_world_size()


def reduce_mean(value, world_size):
    if world_size == 1:
        return value
    value = value.clone()
    dist.all_reduce(value, op=dist.ReduceOp.SUM)
    return value / world_size


@torch.no_grad()
def evaluate(model, loader, use_cuda):
    model.eval()
    correct = total = 0
    for images, target in loader:
        if use_cuda:
            images, target = images.cuda(non_blocking=True), target.cuda(non_blocking=True)
        correct += (model(images).argmax(dim=1) == target).sum().item()
        total += target.numel()
    return 100.0 * correct / total


def main():
    args = get_args()
    use_cuda = torch.cuda.is_available()
    rank, local_rank, world_size = init_distributed(args, use_cuda)
    distributed = world_size > 1
    is_main = rank == 0

    set_seed(args.seed)
    cudnn.benchmark = True
    if use_cuda:
        torch.cuda.set_device(local_rank)
        if is_main:
            print(f"Using {torch.cuda.device_count()} GPU(s): {torch.cuda.get_device_name(local_rank)}")
    elif is_main:
        print("CUDA is not available, training on the CPU")

    train_set = SyntheticCIFAR(args.train_size, train=True, seed=args.seed)
    test_set = SyntheticCIFAR(512, train=False, seed=args.seed)
    sampler = DistributedSampler(train_set, shuffle=True, seed=args.seed) if distributed else None
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=sampler is None,
        sampler=sampler,
        num_workers=args.workers,
        pin_memory=use_cuda,
        drop_last=True,
        generator=torch.Generator().manual_seed(args.seed),
    )
    test_loader = DataLoader(test_set, batch_size=256, pin_memory=use_cuda)

    model = SmallResNet(width=args.width)
    if use_cuda:
        model = model.cuda()
    if distributed:
        model = DDP(model, device_ids=[local_rank] if use_cuda else None)
    elif args.dataparallel:
        model = nn.DataParallel(model)

    criterion = nn.CrossEntropyLoss()
    if use_cuda:
        criterion = criterion.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
    total_steps = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=total_steps)
    scaler = GradScaler(enabled=args.amp)

    log = open(args.log, "w") if args.log and is_main else None
    step = 0
    for epoch in range(args.epochs):
        model.train()
        if sampler is not None:
            sampler.set_epoch(epoch)
        tic = time.time()
        for images, target in train_loader:
            if use_cuda:
                images = images.cuda(non_blocking=True)
                target = target.cuda(non_blocking=True)
            optimizer.zero_grad()
            with autocast(enabled=args.amp):
                loss = criterion(model(images), target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()

            mean_loss = reduce_mean(loss.detach(), world_size).item()
            if log:
                log.write(json.dumps({"step": step, "loss": mean_loss}) + "\n")
            if is_main and step % 10 == 0:
                print(
                    f"epoch {epoch} step {step:3d} loss {mean_loss:.4f} lr {scheduler.get_last_lr()[0]:.4f}", flush=True
                )
            step += 1
            if args.max_steps is not None and step >= args.max_steps:
                break

        if use_cuda:
            torch.cuda.synchronize()
        seconds = time.time() - tic
        accuracy = evaluate(model, test_loader, use_cuda)
        if is_main:
            print(
                f"epoch {epoch} done: loss {mean_loss:.4f} test accuracy {accuracy:.1f}% ({seconds:.1f} s)", flush=True
            )
        if args.max_steps is not None and step >= args.max_steps:
            break

    if log:
        log.close()
    if args.save and is_main:
        bare = model.module if hasattr(model, "module") else model
        torch.save(bare.state_dict(), args.save)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
