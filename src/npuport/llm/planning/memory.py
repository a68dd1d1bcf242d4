"""Memory of one device at the peak of a training step, term by term."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from npuport.facts.variables import ascend_variable
from npuport.llm.planning.activations import CAUSAL_MASK, head_activations, layer_activations, layer_working
from npuport.llm.planning.layout import Framework, Job, Layout, Policy, Recompute
from npuport.llm.planning.model import Model

DEEPSPEED_BUCKET = 500_000_000  # elements; what `written` puts into the DeepSpeed configuration


class Moment(Enum):
    """When in a step memory may be fullest."""

    LOSS = "loss"
    LAYER = "backward of a layer"
    BACKWARD_ENDS = "end of the backward pass"
    STEP = "optimizer step"


@dataclass(frozen=True)
class Memory:
    """Bytes at the peak of one pipeline stage. ``parts`` add up to ``total``."""

    stage: int
    moment: Moment
    parts: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())


def estimate(model: Model, job: Job, layout: Layout, framework: Framework) -> Memory:
    """The peak of the fullest device."""
    found = max(_stages(model, job, layout, framework), key=lambda one: one.total)
    return Memory(found.stage, found.moment, {**found.parts, "HCCL buffers": hccl_buffers(layout)})


def _stages(model: Model, job: Job, layout: Layout, framework: Framework) -> Iterator[Memory]:
    """The first stage keeps the most micro-batches, the last one has the logits; those between have less."""
    for stage in sorted({0, layout.pipeline - 1}):
        yield stage_memory(model, job, layout, framework, stage)


def stage_memory(model: Model, job: Job, layout: Layout, framework: Framework, stage: int) -> Memory:
    """The peak of one stage, without HCCL's buffers.

    1F1B: stage i holds min(p - i, m) micro-batches (Narayanan et al. 2021, section 2.2). With sequence parallelism
    every term of a layer is divided by the tensor-parallel size (Korthikanti et al. 2022, equation 4), and context
    parallelism divides the tokens.
    """
    policy = framework.policy
    tokens = job.sequence * layout.micro_batch / (layout.tensor * layout.context)
    layers = model.layers // layout.pipeline
    kept = _kept(model, layout, policy, job.sequence, layout.recompute)
    held = min(layout.pipeline - stage, layout.micro_batches)
    has_head = stage == layout.pipeline - 1
    head = head_activations(model, policy.kernels) if has_head else {}
    # The input of the first layer lives as long as the step's graph, whatever is recomputed.
    activations = tokens * (held * layers * kept + (2 * model.hidden if stage == 0 else 0))
    parameters, gradients, optimizer = parameter_memory(model, layout, policy, stage)
    fixed = {"parameters": parameters, "optimizer": optimizer}
    full = _kept(model, layout, policy, job.sequence, "none")
    layer = layer_working(model) + (full if layout.recompute == "full" else 0)
    held_logits = 2 * model.vocabulary if has_head and policy.kernels == "modules" else 0
    # Gradients that are accumulated over micro-batches are there when the second forward pass begins.
    early = gradients if policy.keeps_gradients or layout.micro_batches > 1 else 0
    moments = [
        (Moment.LAYER, early, activations, tokens * (layer + held_logits)),
        (Moment.BACKWARD_ENDS, gradients, tokens * kept, tokens * (layer + held_logits)),
        (
            Moment.STEP,
            gradients,
            0.0,
            tokens * held_logits + parameters / policy.parameter * policy.step_copy,
        ),
    ]
    if has_head:
        moments.append((Moment.LOSS, early, activations, tokens * sum(head.values())))
    candidates = [
        Memory(
            stage,
            moment,
            {
                **fixed,
                "gradients": gradient,
                "activations": saved,
                "working memory": working,
                "communication buffers": framework_buffers(model, layout, framework, moment),
            },
        )
        for moment, gradient, saved, working in moments
    ]
    return max(candidates, key=lambda one: one.total)


def _kept(model: Model, layout: Layout, policy: Policy, sequence: int, recompute: Recompute) -> float:
    """Bytes of one token in one layer."""
    return sum(layer_activations(model, policy, recompute, sequence, layout.micro_batch).values())


def parameter_memory(model: Model, layout: Layout, policy: Policy, stage: int) -> tuple[float, float, float]:
    """(parameters, gradients, optimizer) in bytes of one device on a stage.

    ZeRO 1 divides the optimizer, 2 the gradients too, 3 the parameters too; experts are divided among fewer ranks, for
    each has only some of them.
    """
    shared, experts = stage_parameters(model, layout, stage)
    over, over_experts = layout.shards, layout.shards // layout.expert

    def sized(size: int, from_stage: int) -> float:
        if layout.zero >= from_stage:
            return size * (shared / over + experts / over_experts)
        return size * (shared + experts)

    return sized(policy.parameter, 3), sized(policy.gradient, 2), sized(policy.optimizer, 1)


def stage_parameters(model: Model, layout: Layout, stage: int) -> tuple[float, float]:
    """(all but experts, experts): parameters of one device on a stage, before ZeRO. Norms and routers are not split."""
    layers = model.layers // layout.pipeline
    tensor = layout.tensor
    whole = 2 * model.norm_parameters + model.router_parameters
    mlp = model.expert_parameters / tensor
    shared = layers * (model.attention_parameters / tensor + whole + (mlp if model.experts == 1 else 0))
    experts = layers * mlp * model.experts / layout.expert if model.experts > 1 else 0
    if stage == 0:
        shared += model.embedding_parameters / tensor
    if stage == layout.pipeline - 1:
        # A tied head is the embedding itself, unless that lies on another stage: then it is a copy.
        if not model.tied or layout.pipeline > 1:
            shared += model.vocabulary * model.hidden / tensor
        shared += model.norm_parameters
    return shared, experts


def hccl_buffers(layout: Layout) -> float:
    """HCCL's own buffers in bytes, of each group and of all devices together. The allocator does not see them."""
    sizes = (layout.tensor, layout.pipeline, layout.data, layout.context, layout.expert)
    groups = sum(size > 1 for size in sizes)
    return float(_hccl_group() * (groups + 1)) if groups else 0.0


def _hccl_group() -> int:
    """Two buffers of HCCL_BUFFSIZE MiB."""
    size = ascend_variable("HCCL_BUFFSIZE")
    assert size is not None, "the table of Ascend's variables has it"
    return 2 * int(size.default) * 1024**2


def framework_buffers(model: Model, layout: Layout, framework: Framework, moment: Moment) -> float:
    """What the framework gathers or puts into buckets at that moment, in bytes."""
    # MindSpeed keeps one mask for all layers.
    buffers = float(CAUSAL_MASK) if framework.policy.kernels == "fused" else 0.0
    if framework.name == "deepspeed" and layout.zero:
        # One bucket to reduce, one to gather.
        buffers += 2 * 2 * min(DEEPSPEED_BUCKET, model.parameters)
    if layout.zero == 3:
        # In 16 bits. Embedding and head stay gathered until the backward pass ends, when their gradients are reduced.
        # While a layer's backward runs, it is whole, with its gradients, and the next one is being gathered.
        ends = model.parameters - model.layers * model.layer_parameters
        layers, tables = {Moment.LOSS: (0, 1), Moment.LAYER: (3, 2), Moment.BACKWARD_ENDS: (2, 2), Moment.STEP: (0, 0)}[
            moment
        ]
        buffers += 2 * (layers * model.layer_parameters + tables * ends)
    return buffers
