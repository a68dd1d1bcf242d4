"""What one device sends in one step, in bytes by kind: an estimate that ranks layouts, no time."""

from __future__ import annotations

from collections.abc import Mapping

from npuport.llm.planning.layout import Job, Layout, Policy
from npuport.llm.planning.memory import stage_parameters
from npuport.llm.planning.model import Model


def communication(model: Model, job: Job, layout: Layout, policy: Policy) -> Mapping[str, float]:
    """Bytes that a device sends in a step, by the volume of ring algorithms: (n - 1) / n of the data for each gather.

    - TP (Megatron, Shoeybi et al. 2019; sequence parallel: Korthikanti et al. 2022, section 4.2.2): two all-reduces
      forward and two backward in each layer, or as many pairs of all-gather and reduce-scatter, of the activations
      in 16 bits; two more with full recomputation.
    - PP: the activations to the next stage and their gradients back, once for each micro-batch, divided by TP.
    - DP: gradients reduced and parameters gathered (ZeRO 1 and 2, section 7 of ZeRO); gradients alone without; with
      ZeRO 3 parameters gathered for the forward and the backward pass of each micro-batch.
    - CP: keys and values around the ring forward, again with their gradients backward.
    - EP: tokens to their experts and back in each layer, forward and backward.
    """
    tokens = job.sequence // layout.context * layout.micro_batch
    layers = model.layers // layout.pipeline
    activations = 2.0 * tokens * model.hidden
    each = layers * layout.micro_batches
    rerun = 1 if layout.recompute == "full" else 0
    reduces = 4 + 2 * rerun
    keys = 2 * 2.0 * tokens * model.key_width / layout.tensor
    return {
        "TP": each * reduces * 2 * _others(layout.tensor) * activations,
        "PP": 2 * layout.micro_batches * activations / layout.tensor if layout.pipeline > 1 else 0.0,
        "DP": _data_parallel(model, layout, policy),
        "CP": each * (layout.context - 1) * keys * (3 + rerun),
        "EP": each * (4 + 2 * rerun) * _others(layout.expert) * activations * model.top_k / layout.tensor,
    }


def _data_parallel(model: Model, layout: Layout, policy: Policy) -> float:
    shared, experts = stage_parameters(model, layout, 0)
    shards = (shared, layout.shards), (experts, layout.shards // layout.expert)
    if layout.zero == 3:
        gathers, reduces = 2 * 2 * layout.micro_batches, policy.gradient * layout.micro_batches
    elif layout.zero:
        gathers, reduces = policy.parameter, policy.gradient
    else:
        gathers, reduces = 0, 2 * policy.gradient
    return sum((gathers + reduces) * size * _others(ranks) for size, ranks in shards)


def _others(size: int) -> float:
    return (size - 1) / size
