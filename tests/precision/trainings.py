"""Small trainings of over a hundred steps, healthy ones and such with one planted trouble."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fault_models import CASES
from torch import nn

from npuport.precision.training_state.history import History, read_histories
from npuport.precision.training_state.recording import monitoring

STEPS = 130


@dataclass
class Training:
    """``trouble`` is told each step before the forward pass (step, model, optimizer, batch) and may give another batch;
    ``late`` between backward pass and optimizer step."""

    model: str = "gpt"
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = lambda m: torch.optim.AdamW(m.parameters(), lr=1e-3)
    batches: int = 4  # that repeat; 0: each is new
    warm_up: int = 0
    clip: float | None = None
    half: bool = False
    accumulate: int = 1
    steps: int = STEPS
    prepare: Callable[[nn.Module], nn.Module] = lambda model: model
    trouble: Callable[[int, nn.Module, torch.optim.Optimizer, Any], Any] = lambda *given: given[-1]
    late: Callable[[int, nn.Module], object] = lambda *_: None

    def run(self, folder: Path) -> History:
        case = CASES[self.model]
        torch.manual_seed(0)
        model = self.prepare(case.model())
        kept = [case.batch() for _ in range(self.batches)]
        optimizer = self.optimizer(model)
        rates = [group["lr"] for group in optimizer.param_groups]
        scaler = torch.amp.GradScaler("cpu", enabled=self.half, growth_interval=50)
        with monitoring(folder), _threads():
            for step in range(self.steps):
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * min(1.0, (step + 1) / self.warm_up) if self.warm_up else rate
                for part in range(self.accumulate):
                    batch = kept[(step + part) % len(kept)] if kept else case.batch()
                    batch = self.trouble(step, model, optimizer, batch)
                    with torch.autocast("cpu", torch.float16, enabled=self.half):
                        loss = model(batch) / self.accumulate
                    scaler.scale(loss).backward()
                self.late(step, model)
                if self.clip is not None:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), self.clip)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        return read_histories(folder)[0]


@contextmanager
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def sgd(rate: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)


def adam(rate: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.AdamW(model.parameters(), lr=rate)


def no_residual_start(model: nn.Module) -> nn.Module:
    """Residual branches that begin at zero, as many models have them: what stands before has no gradient at first."""
    for block in model.blocks:
        nn.init.zeros_(block.out.weight)
        nn.init.zeros_(block.down.weight)
    return model


HEALTHY = {
    "gpt adam": Training(),
    "gpt adam, new batches": Training(batches=0),
    "gpt adam, warm-up, clipping": Training(optimizer=adam(3e-3), warm_up=30, clip=1.0),
    "gpt sgd": Training(optimizer=sgd(0.05), clip=1.0),
    "gpt, residuals from zero": Training(prepare=no_residual_start, optimizer=adam(2e-3)),
    "lstm, half with a scaler": Training("lstm", adam(5e-3), half=True, clip=1.0),
    "gpt, accumulation": Training(accumulate=2, steps=110),
    "cnn adam": Training("cnn"),
    "cnn sgd, new batches": Training("cnn", sgd(0.05), batches=0),
    "cnn, half with a scaler": Training("cnn", sgd(0.02), half=True),
    "lstm adam": Training("lstm", adam(5e-3)),
    "lstm sgd": Training("lstm", sgd(0.3), clip=1.0, warm_up=20),
    "lstm, new batches": Training("lstm", adam(2e-3), batches=0),
    "unet adam": Training("unet"),
    "unet sgd, new batches": Training("unet", sgd(0.05), batches=0),
    "unet adam, large rate": Training("unet", adam(1e-2), warm_up=10),
}


@dataclass
class Planted:
    """A training with a trouble, and the alert that must come first: its name, layer and step, about."""

    training: Training
    name: str
    layer: str | None  # None: all are concerned
    step: int


def in_gradient(
    name: str, start: int, change: Callable[[torch.Tensor], object], last: int = STEPS
) -> Callable[..., None]:
    def late(step: int, model: nn.Module) -> None:
        gradient = model.get_parameter(name).grad
        if start <= step <= last and gradient is not None:
            change(gradient)

    return late


def in_backward(name: str, factor: float, start: int) -> Callable[[nn.Module], nn.Module]:
    """What flows back into a module's output is multiplied from some step on."""

    def prepare(model: nn.Module) -> nn.Module:
        passes = 0

        def hook(_module: nn.Module, gradients: Any) -> Any:
            nonlocal passes
            passes += 1
            return tuple(one * factor for one in gradients) if passes > start else None

        model.get_submodule(name).register_full_backward_pre_hook(hook)
        return model

    return prepare


def at(step: int, change: Callable[[nn.Module, torch.optim.Optimizer, Any], Any]) -> Callable[..., Any]:
    def trouble(now: int, model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> Any:
        if now != step:
            return batch
        with torch.no_grad():
            changed = change(model, optimizer, batch)
        return batch if changed is None else changed

    return trouble


def since(step: int, change: Callable[[nn.Module, torch.optim.Optimizer, Any], Any]) -> Callable[..., Any]:
    def trouble(now: int, model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any) -> Any:
        if now >= step:
            change(model, optimizer, batch)
        return batch

    return trouble


def groups(name: str, rate: float) -> Callable[[nn.Module], torch.optim.Optimizer]:
    """One module with a learning rate of its own."""

    def make(model: nn.Module) -> torch.optim.Optimizer:
        own = list(model.get_submodule(name).parameters())
        rest = [one for one in model.parameters() if not any(one is other for other in own)]
        return torch.optim.AdamW([{"params": own, "lr": rate}, {"params": rest}], lr=1e-3)

    return make


def _wild_targets(_model: nn.Module, _optimizer: torch.optim.Optimizer, batch: Any) -> Any:
    return batch[0], batch[1] * 30, batch[2]


def _broken_image(_model: nn.Module, _optimizer: torch.optim.Optimizer, batch: Any) -> Any:
    broken = batch[0].clone()
    broken[0, 0, 0, 0] = float("nan")
    return broken, batch[1]


def _wild_rate(_model: nn.Module, optimizer: torch.optim.Optimizer, _batch: Any) -> None:
    optimizer.param_groups[0]["lr"] = 30.0


def _cut_off(model: nn.Module) -> None:
    model.head.requires_grad_(False)


def _switch_off(model: nn.Module) -> None:
    model.blocks[2].up.bias.fill_(-1e4)


TROUBLES = {
    "one NaN in a gradient": Planted(
        Training(late=in_gradient("blocks.1.up.weight", 60, lambda g: g.view(-1)[3].fill_(float("nan")), 60)),
        "not-finite", "blocks.1.up", 60,
    ),
    "wild batch": Planted(Training("unet", trouble=at(70, _wild_targets)), "spike", "leave", 70),
    "NaN in a batch": Planted(Training("cnn", trouble=at(50, _broken_image)), "not-finite", "head", 50),
    "vanishing behind a block": Planted(
        Training(prepare=in_backward("blocks.1", 1e-9, 40)), "vanishing", "blocks.1.down", 40
    ),
    "gradient of one layer explodes": Planted(
        Training(late=in_gradient("blocks.0.qkv.weight", 50, lambda g: g.mul_(1e4))), "exploding", "blocks.0.qkv", 50
    ),
    "one spike of one layer": Planted(
        Training("unet", late=in_gradient("middle.weight", 80, lambda g: g.mul_(1e3), 80)), "spike", "middle", 80
    ),
    "dead units": Planted(
        Training(trouble=at(40, lambda model, *_: _switch_off(model))), "dead", "blocks.2.up", 40
    ),
    "far too large a rate for one layer": Planted(Training("lstm", groups("head", 3.0)), "weights-grow", "head", 2),
    "updates too small to add": Planted(
        Training(optimizer=groups("blocks.1.down", 1e-12)), "not-updated", "blocks.1.down", 0
    ),
    "loss scale collapses": Planted(
        Training("cnn", sgd(0.02), half=True, late=in_gradient("head.weight", 40, lambda g: g.fill_(float("inf")))),
        "loss-scale", "", 47,
    ),
    "a layer is cut off": Planted(
        Training("cnn", trouble=at(60, lambda model, *_: _cut_off(model))), "stopped", "head", 60
    ),
    "rate a thousand times too large": Planted(
        Training("cnn", sgd(0.02), trouble=since(60, _wild_rate)),
        "spike", None, 61,
    ),
}  # fmt: skip
