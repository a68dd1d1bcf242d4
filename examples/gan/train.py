"""Train a small DCGAN on synthetic rings.

python train.py --epochs 8 --log losses.jsonl
"""

import argparse
import json
import os
import time

import torch
import torch.nn as nn
from data import make_loader
from model import Discriminator, Generator, weights_init
from prefetcher import CUDAPrefetcher

MB = 1024 * 1024


class StepTimer:
    """Milliseconds between start() and stop(): CUDA events on a GPU, the wall clock on a CPU."""

    def __init__(self, device):
        self.on_gpu = device.type == "cuda"
        if self.on_gpu:
            self.begin = torch.cuda.Event(enable_timing=True)
            self.end = torch.cuda.Event(enable_timing=True)

    def start(self):
        if self.on_gpu:
            self.begin.record()
        else:
            self.begin = time.perf_counter()

    def stop(self):
        if self.on_gpu:
            self.end.record()
            torch.cuda.synchronize()
            return self.begin.elapsed_time(self.end)
        return 1000 * (time.perf_counter() - self.begin)


class Trainer:
    def __init__(self, opt, device):
        self.opt = opt
        self.device = device
        self.netG = Generator(opt.nz, opt.width).apply(weights_init).to(device)
        self.netD = Discriminator(opt.width).apply(weights_init).to(device)
        self.criterion = nn.BCEWithLogitsLoss().to(device)
        self.optimizerD = torch.optim.Adam(self.netD.parameters(), lr=opt.lr, betas=(0.5, 0.999))
        self.optimizerG = torch.optim.Adam(self.netG.parameters(), lr=opt.lr, betas=(0.5, 0.999))

    def step(self, real):
        """One update of both networks; their losses as floats."""
        real_label = torch.full((real.size(0),), 0.9, device=self.device)
        fake_label = torch.zeros(real.size(0), device=self.device)
        noise = torch.randn(real.size(0), self.opt.nz, 1, 1, device=self.device)
        fake = self.netG(noise)

        self.optimizerD.zero_grad(set_to_none=True)
        loss_real = self.criterion(self.netD(real), real_label)
        loss_fake = self.criterion(self.netD(fake.detach()), fake_label)
        lossD = loss_real + loss_fake
        lossD.backward()
        self.optimizerD.step()

        self.optimizerG.zero_grad(set_to_none=True)
        lossG = self.criterion(self.netD(fake), real_label)
        lossG.backward()
        self.optimizerG.step()
        return lossD.item(), lossG.item()

    def step_or_skip(self, real):
        """The losses, or None where the batch did not fit into GPU memory."""
        try:
            return self.step(real)
        except RuntimeError as e:
            if "CUDA out of memory" not in str(e):
                raise
            print("| WARNING: ran out of CUDA memory, skipping this batch")
            self.optimizerD.zero_grad(set_to_none=True)
            self.optimizerG.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            return None


def ascii_image(image):
    """A 32 x 32 image in [-1, 1] as 16 lines of text."""
    small = nn.functional.avg_pool2d(image.unsqueeze(0), (2, 1))[0, 0]
    return "\n".join("".join(" .:-=+*#%@"[min(9, int(5 * (v + 1)))] for v in row) for row in small.tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--max-steps", type=int, default=0, help="stop after this many steps, 0: never")
    parser.add_argument("--dataset-size", type=int, default=1280)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--nz", type=int, default=32, help="length of the noise vector")
    parser.add_argument("--width", type=int, default=16, help="channels of the widest images")
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=999)
    parser.add_argument("--outdir", default="", help="write the networks' weights here")
    parser.add_argument("--log", default="", help="write one JSON line per step to this file")
    opt = parser.parse_args()

    torch.manual_seed(opt.seed)
    torch.cuda.manual_seed(opt.seed)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = device.type == "cuda"

    loader = make_loader(opt.dataset_size, opt.batch_size, opt.workers, opt.seed)
    batches = CUDAPrefetcher(loader) if device.type == "cuda" else loader
    trainer = Trainer(opt, device)
    timer = StepTimer(device)
    torch.manual_seed(opt.seed)  # the noise starts from here, whatever the initialisation has drawn
    fixed_noise = torch.randn(1, opt.nz, 1, 1, device=device)

    log = open(opt.log, "w") if opt.log else None
    step = 0
    for epoch in range(opt.epochs):
        for real in batches:
            timer.start()
            losses = trainer.step_or_skip(real)
            ms = timer.stop()
            if losses is not None:
                lossD, lossG = losses
                if log:
                    log.write(json.dumps({"step": step, "loss": lossD, "loss_g": lossG}) + "\n")
                if step % 10 == 0:
                    memory = f" mem {torch.cuda.memory_allocated() / MB:.0f} MB" if device.type == "cuda" else ""
                    print(f"[{epoch}/{opt.epochs}][{step}] Loss_D {lossD:.4f} Loss_G {lossG:.4f} {ms:.0f} ms{memory}")
            step += 1
            if opt.max_steps and step >= opt.max_steps:
                break
        if opt.max_steps and step >= opt.max_steps:
            break
    if log:
        log.close()

    with torch.no_grad():
        print("a generated ring:")
        print(ascii_image(trainer.netG.eval()(fixed_noise)[0].cpu()))
    if opt.outdir:
        os.makedirs(opt.outdir, exist_ok=True)
        torch.save(trainer.netG.state_dict(), f"{opt.outdir}/netG_{step}.pth")
        torch.save(trainer.netD.state_dict(), f"{opt.outdir}/netD_{step}.pth")


if __name__ == "__main__":
    main()
