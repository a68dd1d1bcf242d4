"""A training loop with accelerate: accumulation, clipping, gathered metrics, a saved and restored state."""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader, TensorDataset

GLOBAL_BATCH, ACCUMULATED, HALF = 8, 2, 6


def main(accelerator: Accelerator, checkpoint: str) -> dict[str, Any]:
    set_seed(0)
    model: Any = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
    inputs = torch.randn(100, 8)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=GLOBAL_BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

    losses = []
    for step, (x, y) in enumerate(loader):
        if step == HALF:
            accelerator.save_state(checkpoint)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.zero_()
            accelerator.wait_for_everyone()
            accelerator.load_state(checkpoint)
        with accelerator.accumulate(model):
            error = (model(x) - y).square()
            accelerator.backward(error.mean())
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather_for_metrics(error.detach()).mean().item())
    device = accelerator.device.type
    return {"device": device, "processes": accelerator.num_processes, "numbers": losses}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args()
    splitting = DataLoaderConfiguration(split_batches=True)
    chosen = Accelerator(cpu=given.cpu, gradient_accumulation_steps=ACCUMULATED, dataloader_config=splitting)
    chosen.print("RESULTS", json.dumps({"loop": main(chosen, given.checkpoint)}))
    chosen.end_training()
