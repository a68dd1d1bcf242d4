"""Predict the speed of a barracuda from its length and depth, on the device of your choice.

python train.py                       # DEVICE from the environment, else cuda, else the CPU
python train.py --device cuda:1
"""

import argparse
import logging
import tempfile

import torch
from project import DEVICE, Barracuda
from project.data import make_loader
from project.devices import check_spellings, choose_device, describe, peak_memory_mib, seed_everything, select
from project.trainer import Trainer, TrainerConfig, load_everywhere

logging.basicConfig(level=logging.INFO, format="%(message)s")
logger = logging.getLogger("cuda.demo")

HELP_URL = "https://pytorch.org/docs/stable/notes/cuda.html"


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=DEVICE, help="cpu, cuda or cuda:N")
    parser.add_argument("--eval-device", type=str, default="cuda:0", help="where the trained model is tried")
    parser.add_argument("--gpu", type=int, default=0, help="index, if --device has none")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--max-steps", type=int, default=0, help="stop after this many steps, 0: never")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--log", default="", help="write one JSON line per step to this file")
    return parser.parse_args()


def main():
    args = parse_args()
    seed_everything(args.seed)
    check_spellings(args.gpu)
    device = choose_device(args.device, args.gpu)
    select(device)
    logger.info("cuda requested: %s, using %s (%s)", args.device == "cuda", device, describe(device))
    if device.type == "cpu":
        logger.info("No cuda here? See %s", HELP_URL)

    trainer = Trainer(TrainerConfig(device=str(device), amp=args.amp, seed=args.seed))
    loader = make_loader(args.size, args.batch_size, args.seed, device)
    log = open(args.log, "w") if args.log else None
    trainer.fit(loader, args.epochs, log=log, max_steps=args.max_steps)
    if log:
        log.close()

    eval_device = choose_device(args.eval_device)
    with tempfile.TemporaryDirectory(prefix="cuda-weights-") as directory:
        path = trainer.save(directory)
        forms = load_everywhere(path, trainer.device)
        logger.info("the weights load the same in %d ways", forms)
        trainer.model.load_state_dict(torch.load(path, map_location=eval_device))

    model = trainer.model.to(eval_device).eval()
    fish = Barracuda(length_m=1.5, depth_m=2.0)
    with torch.no_grad():
        scale = torch.tensor([2.0, 6.0], device=eval_device)
        guess = model(torch.tensor([[fish.length_m, fish.depth_m]], device=eval_device) / scale)
    print(f"{Barracuda.CUDA}: {guess.item():.2f} m/s, in truth {fish.cuda():.2f} m/s")
    kind = max(trainer.history, key=lambda name: len(trainer.history[name]))
    print(f"{len(trainer.history[kind])} steps on {kind}, peak memory {peak_memory_mib():.1f} MiB")


if __name__ == "__main__":
    main()
