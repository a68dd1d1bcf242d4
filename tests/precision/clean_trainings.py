"""Whole trainings of some steps, recorded.

Usage: clean_trainings.py DEVICE FOLDER NAME…: a name is that of a training, with "=" and a fault behind it if one is
wanted, and is the name of its folder inside of FOLDER. Weights and batches are made on the CPU: they are the same
everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fault_models import CASES
from held_out_models import HELD_OUT_CASES
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from npuport.precision import record

STEPS = 2


@dataclass(frozen=True)
class Training:
    """``batch`` makes the batch of a step. ``dtype``: that of autocast; float16 goes with scaled gradients."""

    model: Callable[[], nn.Module]
    batch: Callable[[], Any]
    optimizer: Callable[[Any], torch.optim.Optimizer] = lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)
    dtype: torch.dtype | None = None
    clip: float = 1.0


class Mnist(nn.Module):
    """The network of PyTorch's MNIST example, without its dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(images)))), 2)
        return F.nll_loss(F.log_softmax(self.fc2(F.relu(self.fc1(x.flatten(1)))), 1), labels)


class Recurrent(nn.Module):
    """Two layers of tanh over tokens, which the CPU multiplies by the first weights all at once."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.layers = nn.Embedding(32, 24), nn.RNN(24, 24, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.layers(self.tokens(tokens[:, :-1]))
        return F.cross_entropy(self.head(states).flatten(0, 1), tokens[:, 1:].flatten())


class Gru(nn.Module):
    """A cell that one device computes from other operators, with a linear layer between its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.cell, self.head = nn.Embedding(32, 24), nn.GRUCell(24, 24), nn.Linear(24, 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        state, results = torch.zeros(len(tokens), 24, device=tokens.device), []
        for x in self.tokens(tokens[:, :-1]).unbind(1):
            state = self.cell(x, state)
            results.append(self.head(state))
        return F.cross_entropy(torch.stack(results, 1).flatten(0, 1), tokens[:, 1:].flatten())


class Encoder(nn.Module):
    """PyTorch's transformer, with one parameter for the biases of queries, keys and values, and tied tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(32, 32)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1] - 1)
        x = self.layers(self.tokens(tokens[:, :-1]), mask=mask, is_causal=True)
        return F.cross_entropy((x @ self.tokens.weight.t()).flatten(0, 1), tokens[:, 1:].flatten())


class OfTransformers(nn.Module):
    """A model of transformers, small and with random weights."""

    def __init__(self, name: str) -> None:
        super().__init__()
        import transformers

        small = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "vocab_size": 96}
        if name == "LlamaForCausalLM":
            config = transformers.LlamaConfig(**small, intermediate_size=128, num_key_value_heads=2)
        elif name == "BertForSequenceClassification":
            none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
            config = transformers.BertConfig(**small, **none, intermediate_size=128, num_labels=3)
        else:
            config = transformers.T5Config(
                vocab_size=96, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0.0,
                decoder_start_token_id=0,
            )  # fmt: skip
        self.model = getattr(transformers, name)(config)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.model(**batch).loss


def text() -> dict[str, torch.Tensor]:
    tokens = torch.randint(1, 96, (4, 24))
    return {"input_ids": tokens, "labels": tokens}


def padded(labels: Callable[[], torch.Tensor]) -> dict[str, torch.Tensor]:
    mask = torch.ones(4, 24, dtype=torch.long)
    mask[0, 16:] = 0
    return {"input_ids": torch.randint(1, 96, (4, 24)), "attention_mask": mask, "labels": labels()}


def momentum(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4)


TRAININGS = {
    **{name: Training(case.model, case.batch) for name, case in {**CASES, **HELD_OUT_CASES}.items()},
    "cnn_sgd": Training(CASES["cnn"].model, CASES["cnn"].batch, momentum),
    "gpt_bfloat16": Training(CASES["gpt"].model, CASES["gpt"].batch, dtype=torch.bfloat16),
    "gpt_float16": Training(CASES["gpt"].model, CASES["gpt"].batch, dtype=torch.float16),
    "lstm_bfloat16": Training(CASES["lstm"].model, CASES["lstm"].batch, dtype=torch.bfloat16),
    "recurrent": Training(Recurrent, lambda: torch.randint(0, 32, (6, 9))),
    "gru": Training(Gru, lambda: torch.randint(0, 32, (6, 9))),
    "encoder": Training(Encoder, lambda: torch.randint(0, 32, (6, 9))),
    "mnist": Training(
        Mnist,
        lambda: (torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))),
        lambda parameters: torch.optim.Adadelta(parameters, lr=1.0),
    ),
    "llama_sdpa": Training(lambda: OfTransformers("LlamaForCausalLM"), text),
    **{
        name: Training(
            lambda: OfTransformers("BertForSequenceClassification"),
            lambda: padded(lambda: torch.randint(0, 3, (4,))),
            dtype=dtype,
        )
        for name, dtype in (("bert", None), ("bert_bfloat16", torch.bfloat16))
    },
    "t5": Training(
        lambda: OfTransformers("T5ForConditionalGeneration"), lambda: padded(lambda: torch.randint(1, 96, (4, 12)))
    ),
}


def wrong_eps(model: nn.Module) -> None:
    norm = [one for one in model.modules() if isinstance(one, nn.LayerNorm)][1]
    norm.eps = 1e-2


def missing_bias(model: nn.Module) -> None:
    next(one for one in model.modules() if isinstance(one, nn.Conv2d)).bias = None


def scaled_attention(model: nn.Module) -> None:
    attentions = [one for one in model.modules() if hasattr(one, "scaling")]
    attentions[1].scaling *= 1.05


class Scaled(TorchDispatchMode):
    """A device of which one call gives 3 % too much, or by another factor."""

    def __init__(self, operator: str, which: int, factor: float = 1.03) -> None:
        super().__init__()
        self.operator, self.left, self.factor = operator, which, factor

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._schema.name == self.operator:
            if self.left == 0:
                (result[0] if isinstance(result, tuple) else result).mul_(self.factor)
            self.left -= 1
        return result


def scaled_gradient(_: nn.Module) -> AbstractContextManager[object]:
    return Scaled("aten::matmul_backward", 14)  # in the second step, for a state of a cell


FAULTS = {one.__name__: one for one in (wrong_eps, missing_bias, scaled_attention, scaled_gradient)}


def fault_of(name: str) -> Callable[[nn.Module], AbstractContextManager[object] | None] | None:
    """A fault by its name, or "OPERATOR.WHICH": that call gives 10 % too much."""
    operator, _, which = name.partition(".")
    return (lambda _: Scaled(f"aten::{operator}", int(which), 1.1)) if which else FAULTS.get(name)


def to(device: str, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {name: to(device, one) for name, one in value.items()}
    return type(value)(to(device, one) for one in value)


def train(
    device: str,
    folder: Path,
    training: Training,
    fault: Callable[[nn.Module], AbstractContextManager[object] | None] | None,
) -> None:
    torch.manual_seed(0)
    model = training.model()
    batches = [training.batch() for _ in range(STEPS)]
    spoilt = fault(model) if fault is not None else None
    model.to(device).train()
    optimizer = training.optimizer(model.parameters())
    scaler = torch.amp.GradScaler(device, enabled=training.dtype is torch.float16)
    with spoilt or nullcontext(), record(folder, steps=f"0-{STEPS - 1}"), torch.device(device):
        for batch in batches:
            optimizer.zero_grad()
            with torch.autocast(device, training.dtype) if training.dtype else nullcontext():
                loss = model(to(device, batch))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), training.clip)
            scaler.step(optimizer)
            scaler.update()


if __name__ == "__main__":
    for name in sys.argv[3:]:
        training, _, fault = name.partition("=")
        train(sys.argv[1], Path(sys.argv[2]) / name, TRAININGS[training], fault_of(fault))
