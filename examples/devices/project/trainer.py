import json
import os
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda import amp

from . import AVERAGING, DEFAULT_DEVICE, OPTIMIZER
from .devices import choose_device


@dataclass
class TrainerConfig:
    device: str = "cuda"
    amp: bool = False
    noise: float = 0.02
    seed: int = 0
    optimizer: dict = field(default_factory=lambda: dict(OPTIMIZER))
    averaging: dict = field(default_factory=lambda: dict(AVERAGING))


class MLP(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x):
        if x.is_cuda:
            assert next(self.parameters()).is_cuda, "the model was left on the CPU"
        return self.layers(x)


class Trainer:
    def __init__(self, config):
        self.config = config
        self.device = choose_device(config.device)
        self.model = MLP().to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), **config.optimizer)
        average_device = choose_device(config.averaging["device"], self.device.index or 0)
        self.average = {name: value.clone().to(average_device) for name, value in self.model.state_dict().items()}
        self.scaler = amp.GradScaler(enabled=config.amp and self.device.type == "cuda")
        # noise is drawn where it is used; the generator must live on the same device
        self.generator = torch.Generator(device=self.device)
        self.generator.manual_seed(config.seed)
        self.scale = torch.tensor([2.0, 6.0], device=self.device)
        self.history = {"cuda": [], "cpu": []}  # losses by kind of device, for the report

    def to_device(self, batch):
        return [t.to(self.device, non_blocking=self.device.type == "cuda") for t in batch]

    def step(self, batch):
        x, y = self.to_device(batch)
        assert x.device.type == self.device.type
        noise = self.config.noise * torch.randn(x.shape, generator=self.generator, device=x.device)
        self.optimizer.zero_grad()
        with amp.autocast(enabled=self.config.amp):
            loss = F.mse_loss(self.model(x / self.scale + noise), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.update_average()
        loss = loss.item()
        self.history["cuda" if x.device.type == "cuda" else "cpu"].append(loss)
        return loss

    @torch.no_grad()
    def update_average(self):
        for name, value in self.model.state_dict().items():
            average = self.average[name]
            average.lerp_(value.to(average.device), 1.0 - self.config.averaging["decay"])

    def fit(self, loader, epochs, log=None, max_steps=0):
        step = 0
        for epoch in range(epochs):
            for batch in loader:
                loss = self.step(batch)
                if log:
                    log.write(json.dumps({"step": step, "loss": loss}) + "\n")
                step += 1
                if max_steps and step >= max_steps:
                    return
            print(f"epoch {epoch:2d} step {step:4d} loss {loss:.5f}", flush=True)

    def save(self, directory):
        os.makedirs(directory, exist_ok=True)
        # the folder says where the weights were trained
        path = os.path.join(directory, "trained-on-cuda.pt" if self.device.type == "cuda" else "trained-on-cpu.pt")
        torch.save(self.average, path)
        return path


def load_everywhere(path, device):
    """Load the weights with every form of map_location and check that they agree on the CPU."""
    locations = [
        "cpu",
        device,
        str(device),
        {"cuda:0": "cpu", "cuda:1": "cpu"},
        lambda storage, location: storage,
        lambda storage, location: storage.cuda() if location.startswith("cuda") else storage,
    ]
    if torch.cuda.is_available():
        locations += [DEFAULT_DEVICE, "cuda:0", {"cpu": "cuda:0"}, lambda storage, location: storage.cuda(0)]
    states = [torch.load(path, map_location=location) for location in locations]
    for state in states[1:]:
        for name, value in state.items():
            assert torch.equal(value.cpu(), states[0][name]), f"{name} differs after loading"
    return len(states)
