"""A layout as the configuration of a framework: flags of Megatron (and MindSpeed), DeepSpeed's JSON or accelerate's."""

from __future__ import annotations

import json
from typing import Any

from npuport.llm.planning.layout import Framework, Job, Layout
from npuport.llm.planning.memory import DEEPSPEED_BUCKET
from npuport.llm.planning.model import Model


def configuration(model: Model, job: Job, layout: Layout, framework: Framework) -> str:
    """The text of the file; for Megatron a shell script that sets ``PLAN_ARGS``."""
    if framework.name == "megatron":
        return _megatron(model, job, layout)
    if framework.name == "deepspeed":
        return json.dumps(_deepspeed(job, layout), indent=2) + "\n"
    return _accelerate(job, layout)


def _megatron(model: Model, job: Job, layout: Layout) -> str:
    flags: list[tuple[str, object]] = [
        ("num-layers", model.layers),
        ("hidden-size", model.hidden),
        ("num-attention-heads", model.heads),
        ("ffn-hidden-size", model.ffn),
        ("seq-length", job.sequence),
        ("micro-batch-size", layout.micro_batch),
        ("global-batch-size", job.global_batch),
        ("tensor-model-parallel-size", layout.tensor),
        ("pipeline-model-parallel-size", layout.pipeline),
        ("context-parallel-size", layout.context),
    ]
    switches = ["bf16", "use-flash-attn"]
    if model.head_width * model.heads != model.hidden:
        flags.append(("kv-channels", model.head_width))
    if model.kv_heads != model.heads:
        switches.append("group-query-attention")
        flags.append(("num-query-groups", model.kv_heads))
    if model.gated:
        switches.append("swiglu")
    if not model.tied:
        switches.append("untie-embeddings-and-output-weights")
    if model.experts > 1:
        flags += [("num-experts", model.experts), ("moe-router-topk", model.top_k)]
        flags += [("expert-model-parallel-size", layout.expert), ("moe-token-dispatcher-type", "alltoall")]
    if layout.tensor > 1:
        switches.append("sequence-parallel")
    if layout.zero:
        switches.append("use-distributed-optimizer")
    if layout.recompute != "none":
        flags.append(("recompute-granularity", layout.recompute))
    if layout.recompute == "full":
        flags += [("recompute-method", "uniform"), ("recompute-num-layers", 1)]
    lines = [*(f"--{switch}" for switch in switches), *(f"--{name} {value}" for name, value in flags)]
    return "PLAN_ARGS=(\n" + "".join(f"  {line}\n" for line in lines) + ")\n"


def _deepspeed(job: Job, layout: Layout) -> dict[str, Any]:
    stage: dict[str, Any] = {"stage": layout.zero}
    if layout.zero:
        stage |= {"reduce_bucket_size": DEEPSPEED_BUCKET, "overlap_comm": False}
    if layout.zero in (1, 2):
        stage["allgather_bucket_size"] = DEEPSPEED_BUCKET
    return {
        "train_batch_size": job.global_batch,
        "train_micro_batch_size_per_gpu": layout.micro_batch,
        "gradient_accumulation_steps": layout.micro_batches,
        # Releases differ in their default, and the Trainer's norm reaches DeepSpeed as "auto" only.
        "gradient_clipping": 1.0,
        "bf16": {"enabled": True},
        "zero_optimization": stage,
    }


def _accelerate(job: Job, layout: Layout) -> str:
    checkpointing = "true" if layout.recompute == "full" else "false"
    return f"""\
# per_device_train_batch_size {layout.micro_batch}, gradient_accumulation_steps {layout.micro_batches}
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: {job.nodes}
num_processes: {job.devices}
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
  fsdp_activation_checkpointing: {checkpointing}
  fsdp_state_dict_type: SHARDED_STATE_DICT
"""
