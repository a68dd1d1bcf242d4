"""How a training is divided over devices, and the kinds of training that differ in what they keep in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from npuport.facts.training_memory import parameter_bytes
from npuport.llm.planning.model import Model

Recompute = Literal["none", "selective", "full"]
Kernels = Literal["fused", "modules"]
Masks = Literal["given", "causal", "either"]


@dataclass(frozen=True)
class Policy:
    """Bytes of each parameter by what they are for.

    ``keeps_gradients``: gradients live in a buffer through the whole step; otherwise they come with the backward.
    ``kernels``: "fused" as MindSpeed's, "modules" as the classes of transformers compute, tensor by tensor.
    ``masks``: how the modules tell attention what to see; which, depends on their release and on padding.
    ``step_copy``: further bytes of a parameter while the optimizer steps (foreach Adam of torch.optim: square roots).
    """

    parameter: int
    gradient: int
    optimizer: int
    keeps_gradients: bool
    kernels: Kernels
    masks: Masks = "either"
    step_copy: int = 0


@dataclass(frozen=True)
class Framework:
    """What a framework offers: which ZeRO stages, and whether it splits models (TP, PP, CP, EP)."""

    name: str
    policy: Policy
    stages: tuple[int, ...]
    splits_models: bool


FRAMEWORKS = ("megatron", "deepspeed", "fsdp")


def framework(name: str) -> Framework:
    """What a framework of ``FRAMEWORKS`` offers; the bytes of a parameter come from its documents."""
    size = parameter_bytes(name)
    fused = name == "megatron"
    policy = Policy(
        size.parameter,
        size.gradient,
        size.optimizer,
        keeps_gradients=name != "fsdp",
        kernels="fused" if fused else "modules",
        step_copy=size.parameter if name == "fsdp" else 0,
    )
    stages = {"megatron": (1, 0), "deepspeed": (1, 2, 3, 0), "fsdp": (3,)}[name]
    return Framework(name, policy, stages, splits_models=fused)


@dataclass(frozen=True)
class Job:
    """What is asked for. ``global_batch`` counts sequences of one optimizer step; ``sequence`` their tokens."""

    nodes: int
    devices_per_node: int
    sequence: int
    global_batch: int
    micro_batch: int | None = None

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node


@dataclass(frozen=True)
class Layout:
    """Sizes of the parallel groups. ``data`` is DP alone: devices = tensor x pipeline x context x data.

    ``expert`` divides ``data``: the experts of a layer lie on that many of its ranks.
    """

    tensor: int
    pipeline: int
    data: int
    context: int
    expert: int
    zero: int
    recompute: Recompute
    micro_batch: int
    micro_batches: int  # of one step on each pipeline

    @property
    def bubble(self) -> float:
        """Idle time of 1F1B over the useful time: (p - 1) / m (Narayanan et al. 2021, section 2.2)."""
        return (self.pipeline - 1) / self.micro_batches

    @property
    def shards(self) -> int:
        """Ranks that hold the same parameters, over which ZeRO divides."""
        return self.data * self.context


def layouts(model: Model, job: Job, framework: Framework) -> Iterator[Layout]:
    """Every layout that divides the model, the devices and the batch without remainder."""
    for tensor, pipeline, context in _splits(model, job, framework):
        data = job.devices // (tensor * pipeline * context)
        if job.global_batch % data:
            continue
        sequences = job.global_batch // data
        sizes = (job.micro_batch,) if job.micro_batch else (1, 2, 4, 8)
        for micro_batch in sizes:
            if sequences % micro_batch:
                continue
            for expert in _experts(model, data, framework):
                for zero in framework.stages if data * context > 1 else (0,):
                    for recompute in _recomputing(framework):
                        yield Layout(
                            tensor,
                            pipeline,
                            data,
                            context,
                            expert,
                            zero,
                            recompute,
                            micro_batch,
                            sequences // micro_batch,
                        )


def _splits(model: Model, job: Job, framework: Framework) -> Iterator[tuple[int, int, int]]:
    """(tensor, pipeline, context): TP within a node, heads and layers divided evenly."""
    if not framework.splits_models:
        yield 1, 1, 1
        return
    for tensor in _divisors(job.devices_per_node):
        if any(size % tensor for size in (model.heads, model.kv_heads, model.ffn, job.sequence)):
            continue
        rest = job.devices // tensor
        for pipeline in _divisors(rest):
            if model.layers % pipeline:
                continue
            for context in _divisors(rest // pipeline):
                # Ring attention gives each rank two chunks, one from each end, so that causal work is even.
                if context == 1 or job.sequence % (2 * context * tensor) == 0:
                    yield tensor, pipeline, context


def _experts(model: Model, data: int, framework: Framework) -> list[int]:
    if model.experts == 1 or not framework.splits_models:
        return [1]
    return [size for size in _divisors(data) if model.experts % size == 0]


def _recomputing(framework: Framework) -> tuple[Recompute, ...]:
    return ("none", "selective", "full") if framework.splits_models else ("none", "full")


def _divisors(number: int) -> list[int]:
    return [size for size in range(1, number + 1) if number % size == 0]
