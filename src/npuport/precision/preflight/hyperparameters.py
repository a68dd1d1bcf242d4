"""Whether the hyper-parameters of a run of a language model are near those that published trainings used."""

from __future__ import annotations

import math
from collections.abc import Iterator

from npuport.findings import say
from npuport.guidance.judging import Recipe, judge
from npuport.precision.preflight.differences import Difference, differs
from npuport.precision.preflight.reading import Facts

_SMALLEST = 80_000_000
"""Parameters; for smaller models people use what they like."""

_SHARDED = ("FullySharded", "DeepSpeed", "FSDP")


def judge_hyperparameters(facts: Facts) -> Iterator[Difference]:
    """What is far from published values; nothing for models that are no language models, are small, or are divided."""
    size = _size(facts)
    if size is None:
        return
    for recipe in _recipes(facts, size):
        for one in judge(recipe):
            if one.status != "usual":
                yield differs("hyperparameter-range", one.text)
    rates = [entry["lr"] for entry in facts["steps"]]
    if len(rates) >= 10 and rates[0] == rates[-1] and any(rates[0]):
        yield differs(
            "hyperparameter-range",
            say("no warm-up: the learning rate of the first {steps} steps is the same", steps=len(rates)),
        )


def _recipes(facts: Facts, size: int) -> Iterator[Recipe]:
    """What each Adam of a run was told; the batch and clipping once."""
    clipping = facts.get("clipping") or 0.0
    yield Recipe("pretraining", size, clipping=clipping if facts["steps"] else None, batch_tokens=_tokens(facts))
    peak = max((max(entry["lr"], default=0.0) for entry in facts["steps"]), default=None)
    for optimizer in facts["optimizers"]:
        if "adam" in optimizer["class"].lower():
            betas = [group["betas"][1] for group in optimizer["groups"] if group.get("betas")]
            decays = [group["weight_decay"] for group in optimizer["groups"] if group.get("weight_decay") is not None]
            yield Recipe(
                "pretraining",
                size,
                rate=peak,
                is_warming=True,  # only the first steps were seen
                beta2=max(betas, default=None),
                weight_decay=max(decays, default=None),
            )


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


def _tokens(facts: Facts) -> int | None:
    """Tokens of one step if every process has other ones."""
    for batch in facts["batches"]:
        for tensor in batch["tensors"].values():
            if "int" in tensor["dtype"] and len(tensor["shape"]) == 2:
                passes = facts.get("forward_passes_of_first_step") or 1
                return int(math.prod(tensor["shape"])) * passes * int(facts["parallel"]["world_size"])
    return None
