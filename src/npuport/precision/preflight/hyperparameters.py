"""Whether the hyper-parameters of a language model are near those that published trainings used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from npuport.facts import PublishedValue, published_values
from npuport.findings import say
from npuport.precision.preflight.differences import Difference, differs
from npuport.precision.preflight.reading import Facts

_SMALLEST = 80_000_000
"""Parameters; for smaller models people use what they like."""

_HIGH = 4.0  # times the largest published rate of this size
_SMALL_BATCH, _LARGE_BATCH = 1 / 64, 8.0  # of the published ones
_SHARDED = ("FullySharded", "DeepSpeed", "FSDP")


def judge_hyperparameters(facts: Facts) -> Iterator[Difference]:
    """What is far from published values; nothing for models that are no language models, are small, or are divided."""
    size = _size(facts)
    if size is None:
        return
    for optimizer in facts["optimizers"]:
        if "adam" in optimizer["class"].lower():
            yield from _of_optimizer(facts, optimizer, size)
    yield from _of_batch(facts, size)
    rates = [entry["lr"] for entry in facts["steps"]]
    if len(rates) >= 10 and rates[0] == rates[-1] and any(rates[0]):
        yield differs(
            "hyperparameter-range",
            say("no warm-up: the learning rate of the first {steps} steps is the same", steps=len(rates)),
        )
    if facts["steps"] and facts.get("clipping") is None:
        value = published_values("clipping")[0]
        text = say(
            "no gradient clipping was seen (torch.nn.utils.clip_grad_norm_); published {value} ({source})",
            value=value.value,
            source=value.basis.source,
        )
        yield differs("hyperparameter-range", text)


def _size(facts: Facts) -> int | None:
    """The parameters of the language model of a run; None if there is none, or it cannot be known."""
    for model in facts["models"]:
        classes = list(model["modules"].values())
        if any(word in text for text in (model["class"], *classes) for word in _SHARDED):
            return None
        attends = any(
            "attention" in text.lower().partition("(")[0] or "attn" in path for path, text in model["modules"].items()
        )
        shapes: list[int] = [math.prod(tensor["shape"]) for tensor in model["parameters"].values()]
        if attends and any(text.startswith("Embedding(") for text in classes) and sum(shapes) >= _SMALLEST:
            return sum(shapes)
    return None


def _of_optimizer(facts: Facts, optimizer: Facts, size: int) -> Iterator[Difference]:
    peak = max((max(entry["lr"], default=0.0) for entry in facts["steps"]), default=0.0)
    near = _nearest("learning_rate", size)
    highest = max(near, key=lambda one: one.value)
    if peak > _HIGH * highest.value:
        text = say(
            "learning rate {rate} is high for {size} parameters: published {value} ({source})",
            rate=f"{peak:g}",
            size=_short(size),
            value=f"{highest.value:g}",
            source=highest.basis.source,
        )
        yield differs("hyperparameter-range", text)
    betas = {tuple(group["betas"]) for group in optimizer["groups"] if group.get("betas")}
    beta = published_values("beta2")[0]
    for _, second in betas:
        if second > 0.99:
            text = say(
                "beta2 {beta}; published {value} ({source}): after a spike it takes longer to recover",
                beta=second,
                value=beta.value,
                source=beta.basis.source,
            )
            yield differs("hyperparameter-range", text)
    decays = [group.get("weight_decay") for group in optimizer["groups"] if group.get("weight_decay") is not None]
    decay = published_values("weight_decay")[0]
    if decays and (max(decays) > 3 * decay.value or max(decays) == 0):
        text = say(
            "weight decay {decay}; published {value} ({source})",
            decay=max(decays),
            value=decay.value,
            source=decay.basis.source,
        )
        yield differs("hyperparameter-range", text)


def _of_batch(facts: Facts, size: int) -> Iterator[Difference]:
    tokens = _tokens(facts)
    if tokens is None:
        return
    near = _nearest("batch_tokens", size)
    low, high = min(one.value for one in near), max(one.value for one in near)
    if tokens < _SMALL_BATCH * low or tokens > _LARGE_BATCH * high:
        text = say(
            "{tokens} tokens in a step (micro-batch x accumulation x processes); published {value} ({source})",
            tokens=f"{tokens:,}",
            value=f"{low:,.0f}",
            source=near[0].basis.source,
        )
        yield differs("hyperparameter-range", text)


def _tokens(facts: Facts) -> int | None:
    """Tokens of one step if every process has other ones."""
    for batch in facts["batches"]:
        for tensor in batch["tensors"].values():
            if "int" in tensor["dtype"] and len(tensor["shape"]) == 2:
                passes = facts.get("forward_passes_of_first_step") or 1
                return int(math.prod(tensor["shape"])) * passes * int(facts["parallel"]["world_size"])
    return None


def _nearest(quantity: str, size: int) -> list[PublishedValue]:
    """The published values of the size that is nearest by factor."""
    known: list[Any] = [one for one in published_values(quantity) if one.parameters is not None]
    distance = {one.name: abs(math.log(size / one.parameters)) for one in known}
    least = min(distance.values())
    return [one for one in known if distance[one.name] <= least + 1e-9]


def _short(number: int) -> str:
    return f"{number / 1e9:.1f} B" if number >= 1e9 else f"{number / 1e6:.0f} M"
