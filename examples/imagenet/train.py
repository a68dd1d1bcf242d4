"""Train an image classifier on all GPUs of this machine, from one process.

python train.py --arch resnet_small --batch-size 64
"""

import argparse
import json
import os
import shutil
import time

import model as models
import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim
from data import FakeImages
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description="Image classification")
parser.add_argument("--arch", default="resnet_small", choices=["resnet_tiny", "resnet_small"])
parser.add_argument("--epochs", default=5, type=int)
parser.add_argument("-b", "--batch-size", default=64, type=int, help="over all GPUs together")
parser.add_argument("--lr", default=0.05, type=float, help="halved every other epoch")
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--weight-decay", default=1e-4, type=float)
parser.add_argument("-j", "--workers", default=2, type=int)
parser.add_argument("--train-size", default=2048, type=int)
parser.add_argument("--val-size", default=256, type=int)
parser.add_argument("--num-classes", default=20, type=int)
parser.add_argument("--print-freq", default=10, type=int)
parser.add_argument("--resume", default="", help="checkpoint to go on from")
parser.add_argument("--evaluate", action="store_true", help="only look at the validation set")
parser.add_argument("--checkpoint", default="", help="write a checkpoint to this file after each epoch")
parser.add_argument("--seed", default=1, type=int)
# torchrun takes --log for an abbreviation of its own --log-dir, hence the second name
parser.add_argument("--log", "--log-file", default="", help="write one JSON line per epoch to this file")

best_acc1 = 0.0


def main():
    global best_acc1
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    cudnn.benchmark = True

    print(f"=> creating model {args.arch}")
    model = models.__dict__[args.arch](args.num_classes)
    if torch.cuda.is_available():
        print(f"=> on {torch.cuda.device_count()} GPUs")
        model = nn.DataParallel(model).cuda()
    else:
        print("=> on the CPU, this will be slow")

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)

    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=device)
        start_epoch, best_acc1 = checkpoint["epoch"], checkpoint["best_acc1"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        print(f"=> going on from epoch {start_epoch} of {args.resume}")

    train_dataset = FakeImages(args.train_size, num_classes=args.num_classes)
    val_dataset = FakeImages(args.val_size, num_classes=args.num_classes, first=args.train_size)
    train_loader = DataLoader(
        train_dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=True
    )
    val_loader = DataLoader(val_dataset, batch_size=args.batch_size, shuffle=False, num_workers=args.workers)

    if args.evaluate:
        validate(val_loader, model, criterion, device)
        return

    for epoch in range(start_epoch, args.epochs):
        adjust_learning_rate(optimizer, epoch, args)
        loss, acc1 = train(train_loader, model, criterion, optimizer, epoch, device, args)
        val_acc1 = validate(val_loader, model, criterion, device)

        is_best = val_acc1 > best_acc1
        best_acc1 = max(val_acc1, best_acc1)
        if args.log:
            with open(args.log, "a" if epoch else "w") as log:
                log.write(json.dumps({"step": epoch, "loss": loss, "acc1": acc1, "val_acc1": val_acc1}) + "\n")
        if args.checkpoint:
            state = {
                "epoch": epoch + 1,
                "arch": args.arch,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
            }
            save_checkpoint(state, is_best, args.checkpoint)


def train(loader, model, criterion, optimizer, epoch, device, args):
    batch_time = AverageMeter("time", ":.3f")
    losses = AverageMeter("loss", ":.4f")
    top1 = AverageMeter("acc@1", ":.2f")

    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)

        output = model(images)
        loss = criterion(output, target)

        losses.update(loss.item(), images.size(0))
        top1.update(accuracy(output, target), images.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            print(f"epoch {epoch} [{i}/{len(loader)}] {batch_time} {losses} {top1}", flush=True)
    return losses.avg, top1.avg


def validate(loader, model, criterion, device):
    losses = AverageMeter("loss", ":.4f")
    top1 = AverageMeter("acc@1", ":.2f")

    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images, target = images.to(device), target.to(device)
            output = model(images)
            losses.update(criterion(output, target).item(), images.size(0))
            top1.update(accuracy(output, target), images.size(0))
    print(f" * {losses} {top1}", flush=True)
    return top1.avg


def save_checkpoint(state, is_best, filename):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, os.path.join(os.path.dirname(filename), "model_best.pth.tar"))


class AverageMeter:
    """The last value, and the average of all."""

    def __init__(self, name, fmt):
        self.name, self.fmt = name, fmt
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)


def adjust_learning_rate(optimizer, epoch, args):
    for group in optimizer.param_groups:
        group["lr"] = args.lr * 0.5 ** (epoch // 2)


def accuracy(output, target):
    """Percent of the batch whose first guess is right."""
    return 100.0 * (output.argmax(dim=1) == target).float().mean().item()


if __name__ == "__main__":
    main()
