"""Trains three small transformers and prints the allocator's peaks as JSON: `trained_models.py plain|shard FOLDER…`.

Run under `npuport run --sim`. Each peak is that of the second step, when the optimizer's moments exist.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path

import torch
import torch_npu  # noqa: F401
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

SEQUENCE, BATCH = 256, 2


def built(folder: Path) -> PreTrainedModel:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))


def peak(model: PreTrainedModel, *, recompute: bool) -> int:
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, model.config.vocab_size, (BATCH, SEQUENCE), device="npu")
    for _ in range(2):
        torch.npu.reset_peak_memory_stats()
        output = model(tokens, labels=tokens, use_cache=False)
        output.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del output
    return torch.npu.max_memory_allocated()


def sharded(model: PreTrainedModel) -> PreTrainedModel:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    blocks = model.transformer.h if hasattr(model, "transformer") else model.model.layers
    for block in blocks:
        fully_shard(block, mp_policy=policy)
    return fully_shard(model, mp_policy=policy)


def main() -> None:
    shard = sys.argv[1] == "shard"
    if shard:
        torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("hccl")
    found = {}
    for folder in map(Path, sys.argv[2:]):
        for recompute in (False, True):
            model = sharded(built(folder).npu()) if shard else built(folder).to("npu", torch.bfloat16)
            found[f"{folder.name} {'full' if recompute else 'none'}"] = peak(model, recompute=recompute)
            del model
            gc.collect()
    if not shard or torch.distributed.get_rank() == 0:
        print("PEAKS " + json.dumps(found))
    if shard:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
