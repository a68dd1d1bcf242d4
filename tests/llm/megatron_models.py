"""Trains a small GPT of megatron-core, divided over devices, and prints the allocator's peaks of every rank as JSON.

`megatron_models.py CASES` under torchrun and `npuport run --sim`; CASES is a JSON list of objects with "name" and the
fields of ``Case``. Fused operators stand where MindSpeed puts them (attention, RMSNorm, SwiGLU), and what of
megatron-core asks for CUDA's generator is redirected as MindSpeed does. Each peak is that of the second step.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch_npu
from torch_npu.contrib import transfer_to_npu  # noqa: F401 - before megatron-core is imported

# isort: split
import megatron.core.optimizer as megatron_optimizer
import megatron.core.tensor_parallel.random as generators
import megatron.core.transformer.mlp as megatron_mlp
import megatron.core.transformer.moe.moe_utils as megatron_experts
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.distributed.finalize_model_grads import finalize_model_grads
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules
from megatron.core.transformer.transformer_config import TransformerConfig

generators._set_cuda_rng_state = lambda state, *_, **__: torch.npu.set_rng_state(state)
generators._get_cuda_rng_state = lambda *_, **__: torch.npu.get_rng_state()
_type = torch.Tensor.type
_tensor: Any = torch.Tensor
_tensor.type = (  # the optimizer asks for CUDA's names
    lambda self, *dtype, **more: (
        _type(self, *dtype, **more) if dtype else _type(self).replace("torch.npu", "torch.cuda")
    )
)
megatron_mlp.bias_swiglu_impl = lambda inputs, *_: torch_npu.npu_swiglu(inputs, dim=-1)


class Adam(torch.optim.AdamW):
    """One parameter after the other, so that nothing large lives beside them: fused Adam of MindSpeed keeps nothing."""

    def __init__(self, params: Any, **options: Any) -> None:
        options.pop("adam_w_mode")  # Apex's: decay apart from the gradients, as AdamW always does
        super().__init__(params, foreach=False, **options)


megatron_optimizer.Adam, megatron_optimizer.USING_PYTORCH_OPTIMIZER = Adam, False
megatron_experts.te_general_gemm = None  # where Transformer Engine is missing, 0.16 forgets to say so


@dataclass(frozen=True)
class Case:
    """Sizes as those of ``npuport.llm.planning``; ``micro_batches`` of one step."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocabulary: int
    sequence: int
    micro_batch: int
    micro_batches: int
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    experts: int = 1
    top_k: int = 1
    zero: int = 0
    recompute: bool = False


class Norm(torch.nn.Module):
    """RMSNorm as one operator."""

    def __init__(self, config: Any, hidden_size: int, eps: float = 1e-5, **_: Any) -> None:
        super().__init__()
        self.weight: Any = torch.nn.Parameter(torch.ones(hidden_size, dtype=config.params_dtype))
        self.weight.sequence_parallel = config.sequence_parallel
        self.eps = eps

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch_npu.npu_rms_norm(inputs, self.weight, self.eps)[0]


class Attention(torch.nn.Module):
    """Flash attention over sequences of the layout that megatron-core has: (sequence, batch, heads, width)."""

    mask: torch.Tensor | None = None  # one for all layers, as MindSpeed keeps it

    def __init__(self, config: Any, *_: Any, **__: Any) -> None:
        super().__init__()
        self.width = config.kv_channels

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        if Attention.mask is None:
            Attention.mask = torch.ones(2048, 2048, dtype=torch.bool, device=query.device).triu(1)
        sequence, batch, heads, width = query.shape
        query, key, value = (one.reshape(sequence, batch, -1) for one in (query, key, value))
        if parallel_state.get_context_parallel_world_size() > 1:
            return Ring.apply(query, torch.stack((key, value)), heads, width**-0.5)
        return torch_npu.npu_fusion_attention(
            query, key, value, heads, "SBH", atten_mask=Attention.mask, sparse_mode=3, scale=width**-0.5
        )[0]


class Ring(torch.autograd.Function):
    """Ring attention (Liu et al. 2023) as MindSpeed computes it: keys and values go around, in both passes.

    Each block of keys is attended to whole, causal or not: the numbers differ from a causal model's, what is kept does
    not.
    """

    @staticmethod
    def forward(context: Any, query: Any, keys: Any, heads: int, scale: float) -> Any:
        here, most, total, output = keys, None, None, None
        for _ in range(parallel_state.get_context_parallel_world_size()):
            found = torch_npu.npu_fusion_attention(query, *here, heads, "SBH", scale=scale)
            if output is None:
                output, most, total = found[:3]
            else:
                largest = torch.maximum(most, found[1])
                old, new = total * torch.exp(most - largest), found[2] * torch.exp(found[1] - largest)
                most, total = largest, old + new
                output = _spread(old / total, output) + _spread(new / total, found[0])
            here = _passed_on(here)
        context.save_for_backward(query, keys, output, most, total)
        context.heads, context.scale = heads, scale
        return output

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        query, keys, output, most, total = context.saved_tensors
        here, of_query, of_keys = keys, torch.zeros_like(query), torch.zeros_like(keys)
        for _ in range(parallel_state.get_context_parallel_world_size()):
            found = torch_npu.npu_fusion_attention_grad(
                query,
                *here,
                gradient,
                context.heads,
                "SBH",
                softmax_max=most,
                softmax_sum=total,
                attention_in=output,
                scale_value=context.scale,
            )
            of_query += found[0]
            of_keys = _passed_on(of_keys + torch.stack(found[1:3]))
            here = _passed_on(here)
        return of_query, of_keys, None, None


def _spread(share: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    """``output`` (sequence, batch, heads x width) times the share of each row (batch, heads, sequence, 8)."""
    sequence, batch, _ = output.shape
    rows = share[..., :1].permute(2, 0, 1, 3)
    return (output.view(sequence, batch, rows.shape[2], -1) * rows).to(output.dtype).view_as(output)


def _passed_on(mine: torch.Tensor) -> torch.Tensor:
    """What the rank before has, while this one's goes to the next."""
    group = parallel_state.get_context_parallel_group()
    ranks = torch.distributed.get_process_group_ranks(group)
    place = torch.distributed.get_rank(group)
    other = torch.empty_like(mine)
    send = torch.distributed.P2POp(torch.distributed.isend, mine.contiguous(), ranks[(place + 1) % len(ranks)], group)
    receive = torch.distributed.P2POp(torch.distributed.irecv, other, ranks[place - 1], group)
    for work in torch.distributed.batch_isend_irecv([send, receive]):
        work.wait()
    return other


def built(case: Case) -> list[Any]:
    """The part of the model of this rank, in megatron-core's wrapper for data parallelism."""
    config = TransformerConfig(
        num_layers=case.layers,
        hidden_size=case.hidden,
        num_attention_heads=case.heads,
        num_query_groups=case.kv_heads,
        ffn_hidden_size=case.ffn,
        moe_ffn_hidden_size=case.ffn if case.experts > 1 else None,
        num_moe_experts=case.experts if case.experts > 1 else None,
        moe_router_topk=max(case.top_k, 2),
        moe_token_dispatcher_type="alltoall",
        moe_router_load_balancing_type="aux_loss",
        moe_aux_loss_coeff=0.01 if case.experts > 1 else 0.0,
        add_bias_linear=False,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        bias_activation_fusion=True,
        normalization="RMSNorm",
        attention_dropout=0.0,
        hidden_dropout=0.0,
        bf16=True,
        params_dtype=torch.bfloat16,
        pipeline_dtype=torch.bfloat16,
        tensor_model_parallel_size=case.tensor,
        sequence_parallel=case.tensor > 1,
        pipeline_model_parallel_size=case.pipeline,
        context_parallel_size=case.context,
        expert_model_parallel_size=case.expert,
        recompute_granularity="full" if case.recompute else None,
        recompute_method="uniform" if case.recompute else None,
        recompute_num_layers=1 if case.recompute else None,
        gradient_accumulation_fusion=False,
        finalize_model_grads_func=finalize_model_grads,
        variable_seq_lengths=False,
    )
    spec = get_gpt_layer_local_spec(
        num_experts=case.experts if case.experts > 1 else None, moe_grouped_gemm=False, normalization="RMSNorm"
    )
    spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
    spec.submodules.self_attention.submodules.core_attention = Attention
    stage = parallel_state.get_pipeline_model_parallel_rank()
    layers = case.layers // case.pipeline
    model = GPTModel(
        config,
        TransformerBlockSubmodules(layer_specs=[spec] * layers, layer_norm=Norm),
        vocab_size=case.vocabulary,
        max_sequence_length=case.sequence,
        position_embedding_type="rope",
        share_embeddings_and_output_weights=False,
        pre_process=stage == 0,
        post_process=stage == case.pipeline - 1,
    ).npu()
    options = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True, use_distributed_optimizer=case.zero == 1, overlap_grad_reduce=False
    )
    return [DistributedDataParallel(config, options, model)]


def trained(case: Case) -> int:
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=case.tensor,
        pipeline_model_parallel_size=case.pipeline,
        context_parallel_size=case.context,
        expert_model_parallel_size=case.expert,
    )
    generators.model_parallel_cuda_manual_seed(1)
    models = built(case)
    options = OptimizerConfig(
        optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16, use_distributed_optimizer=case.zero == 1
    )
    optimizer = get_megatron_optimizer(options, models)
    length = case.sequence // case.context
    tokens = torch.randint(0, case.vocabulary, (case.micro_batch, length), device="npu")
    positions = torch.arange(length, device="npu")[None].expand(case.micro_batch, -1)

    def forward(_: Any, model: Any) -> Any:
        output = model(tokens, positions, None, labels=tokens)
        return output, partial(lambda losses: (losses.float().mean(), {}))

    step = get_forward_backward_func()
    for _ in range(2):
        torch.npu.reset_peak_memory_stats()
        for model in models:
            model.zero_grad_buffer()
        optimizer.zero_grad()
        step(
            forward_step_func=forward,
            data_iterator=None,
            model=models,
            num_microbatches=case.micro_batches,
            seq_length=case.sequence,
            micro_batch_size=case.micro_batch,
            forward_only=False,
        )
        optimizer.step()
    peak = torch.npu.max_memory_allocated()
    parallel_state.destroy_model_parallel()
    Attention.mask = None
    return peak


def main() -> None:
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("hccl")
    ranks, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
    peaks: dict[str, list[int]] = {}
    for fields in json.loads(sys.argv[1]):
        name = fields.pop("name")
        gc.collect()
        torch.npu.empty_cache()
        here = torch.npu.memory_allocated()
        mine = torch.tensor([trained(Case(**fields)) - here], device="npu")
        every = [torch.zeros_like(mine) for _ in range(ranks)]
        torch.distributed.all_gather(every, mine)
        peaks[name] = [int(one) for one in every]
    if rank == 0:
        print("PEAKS " + json.dumps(peaks), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
