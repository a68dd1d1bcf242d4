"""Train a small character-level GPT.

python train.py                                    # GPU if there is one, else CPU
python train.py --device cuda:1 --dtype float16    # mixed precision with loss scaling
python train.py --resume out/ckpt-000040.pt
"""

import argparse
import json
import math
import os
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields

import torch
from data import BatchSampler, CharTokenizer, write_corpus
from model import GPT, GPTConfig


@dataclass
class TrainConfig:
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    dtype: str = "float32"  # float32, bfloat16 or float16; the last one uses a GradScaler
    seed: int = 1337
    steps: int = 60
    batch_size: int = 32
    grad_accum: int = 2
    learning_rate: float = 6e-3
    min_lr: float = 3e-4
    warmup: int = 8
    weight_decay: float = 0.1
    grad_clip: float = 1.0
    eval_every: int = 20
    save_every: int = 0  # 0: no checkpoints
    out_dir: str = "out"
    resume: str = ""
    log: str = ""
    sample: int = 120  # characters generated at the end
    block_size: int = 32
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 128
    dropout: float = 0.1


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(TrainConfig):
        option = "--" + field.name.replace("_", "-")
        parser.add_argument(option, type=field.type, default=field.default, help=f"default: {field.default!r}")
    return TrainConfig(**vars(parser.parse_args()))


def learning_rate_at(step, cfg):
    """Linear warm-up, then half a cosine down to min_lr."""
    if step < cfg.warmup:
        return cfg.learning_rate * (step + 1) / cfg.warmup
    progress = (step - cfg.warmup) / max(1, cfg.steps - cfg.warmup)
    return cfg.min_lr + 0.5 * (1.0 + math.cos(math.pi * progress)) * (cfg.learning_rate - cfg.min_lr)


def rng_state():
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_rng_state(state):
    # map_location has moved the states to the GPU as well; the setters want them on the CPU
    torch.set_rng_state(state["cpu"].cpu())
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.set_rng_state_all([s.cpu() for s in state["cuda"]])


def save_checkpoint(path, step, model, optimizer, scaler, batches):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    torch.save(
        {
            "step": step,
            "model": model.state_dict(),
            "model_config": asdict(model.config),
            "optimizer": optimizer.state_dict(),
            "scaler": scaler.state_dict(),
            "rng": rng_state(),
            "batches": batches.generator.get_state(),
        },
        path,
    )
    print(f"saved {path}")


@torch.no_grad()
def evaluate(model, ids, cfg, ctx, batches=4):
    """Mean loss over the same held-out windows at every call."""
    model.eval()
    sampler = BatchSampler(ids, cfg.batch_size, cfg.block_size, cfg.device, seed=cfg.seed + 2)
    total = 0.0
    for _ in range(batches):
        x, y = sampler.next()
        with ctx:
            _, loss = model(x, y)
        total += loss.item()
    model.train()
    return total / batches


def main():
    cfg = parse_args()
    device = cfg.device
    device_type = "cuda" if "cuda" in device else "cpu"
    if device_type == "cuda":
        torch.cuda.set_device(torch.device(device).index or 0)
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(cfg.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True

    ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[cfg.dtype]
    if device_type == "cpu" or ptdtype == torch.float32:
        ctx = nullcontext()
    else:
        ctx = torch.amp.autocast(device_type=device_type, dtype=ptdtype)
    scaler = torch.cuda.amp.GradScaler(enabled=(device_type == "cuda" and cfg.dtype == "float16"))

    text = write_corpus(sentences=3000, seed=cfg.seed)
    tokenizer = CharTokenizer(text)
    ids = tokenizer.encode(text)
    split = int(0.9 * len(ids))
    batches = BatchSampler(ids[:split], cfg.batch_size, cfg.block_size, device, seed=cfg.seed + 1)

    model_config = GPTConfig(
        vocab_size=tokenizer.vocab_size,
        block_size=cfg.block_size,
        n_layer=cfg.n_layer,
        n_head=cfg.n_head,
        n_embd=cfg.n_embd,
        dropout=cfg.dropout,
    )
    checkpoint = None
    if cfg.resume:
        checkpoint = torch.load(cfg.resume, map_location=device)
        model_config = GPTConfig(**checkpoint["model_config"])
    model = GPT(model_config).to(device)
    optimizer = model.configure_optimizer(cfg.weight_decay, cfg.learning_rate, (0.9, 0.95), device_type)

    # Seed again: dropout must not depend on how many numbers the initialisation has drawn, and where.
    torch.manual_seed(cfg.seed)
    first_step = 0
    if checkpoint is not None:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scaler.load_state_dict(checkpoint["scaler"])
        batches.generator.set_state(checkpoint["batches"].cpu())
        set_rng_state(checkpoint["rng"])
        first_step = checkpoint["step"]
        print(f"resumed {cfg.resume} at step {first_step}")

    tokens_per_step = cfg.batch_size * cfg.grad_accum * cfg.block_size
    print(f"{model.num_parameters():,} parameters on {device} in {cfg.dtype}, {tokens_per_step:,} characters a step")
    print(f"{'step':>5} {'loss':>8} {'lr':>9} {'grad':>7} {'chars/s':>9}")

    log = open(cfg.log, "a" if cfg.resume else "w") if cfg.log else None
    started = time.time()
    model.train()
    for step in range(first_step, cfg.steps):
        lr = learning_rate_at(step, cfg)
        for group in optimizer.param_groups:
            group["lr"] = lr

        step_loss = 0.0
        for _ in range(cfg.grad_accum):
            x, y = batches.next()
            with ctx:
                _, loss = model(x, y)
                loss = loss / cfg.grad_accum
            scaler.scale(loss).backward()
            step_loss += loss.item()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.grad_clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)

        if log:
            log.write(json.dumps({"step": step, "loss": step_loss}) + "\n")
            log.flush()
        last = step + 1 == cfg.steps
        if step % 5 == 0 or last:
            if device_type == "cuda":
                torch.cuda.synchronize()
            speed = tokens_per_step * (step + 1 - first_step) / (time.time() - started)
            print(f"{step:>5} {step_loss:>8.4f} {lr:>9.2e} {norm.item():>7.3f} {speed:>9,.0f}", flush=True)
        if (step + 1) % cfg.eval_every == 0 or last:
            print(f"      validation loss {evaluate(model, ids[split:], cfg, ctx):.4f}")
        if cfg.save_every and ((step + 1) % cfg.save_every == 0 or last):
            path = os.path.join(cfg.out_dir, f"ckpt-{step + 1:06d}.pt")
            save_checkpoint(path, step + 1, model, optimizer, scaler, batches)
    if log:
        log.close()

    print(f"{cfg.steps - first_step} steps in {time.time() - started:.1f} s")
    if torch.cuda.is_available():
        print(f"peak CUDA memory {torch.cuda.max_memory_allocated() / 2**20:.1f} MiB")
    if cfg.sample:
        model.eval()
        start = torch.tensor([tokenizer.encode("\n")], dtype=torch.long, device=device)
        print("sample:" + tokenizer.decode(model.generate(start, cfg.sample, temperature=0.8)[0].tolist()))


if __name__ == "__main__":
    main()
