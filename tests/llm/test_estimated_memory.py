"""The estimate beside what the allocator of the simulated NPU measures while small transformers train."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from npuport.llm.planning.layout import Framework, Job, Layout, Masks, Policy, Recompute, framework
from npuport.llm.planning.memory import estimate, stage_memory
from npuport.llm.planning.model import model_from
from npuport.sim import SimOptions

PROGRAM = Path(__file__).with_name("trained_models.py")
SEQUENCE, BATCH = 256, 2

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "llama": {
        "model_type": "llama",
        "hidden_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 1408,
        "vocab_size": 1000,
    },
    "qwen2": {
        "model_type": "qwen2",
        "hidden_size": 256,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "intermediate_size": 688,
        "vocab_size": 4000,
        "tie_word_embeddings": True,
    },
    "gpt2": {
        "model_type": "gpt2",
        "n_embd": 384,
        "n_layer": 5,
        "n_head": 6,
        "vocab_size": 2000,
        "n_positions": 512,
        "resid_pdrop": 0,
        "embd_pdrop": 0,
        "attn_pdrop": 0,
    },
}


pytestmark = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")


def _masks() -> Masks:
    """Nothing is padded here; transformers 5 then gives attention no mask."""
    return "given" if importlib.metadata.version("transformers").startswith("4.") else "causal"


Simulated = Callable[..., "subprocess.CompletedProcess[str]"]


def measured(simulated: Simulated, folder: Path, kind: str, devices: int) -> dict[str, int]:
    configs = []
    for name, config in CONFIGS.items():
        place = folder / name
        place.mkdir()
        (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
        configs.append(place)
    several = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"] if devices > 1 else []
    done = simulated([*several, PROGRAM, kind, *configs], SimOptions(devices=devices), timeout=300)
    line = next((line for line in done.stdout.splitlines() if "PEAKS " in line), None)
    assert line is not None, done.stdout + done.stderr
    peaks: dict[str, int] = json.loads(line.partition("PEAKS ")[2])
    return peaks


def layout(recompute: str, data: int) -> Layout:
    return Layout(1, 1, data, 1, 1, 3 if data > 1 else 0, cast(Recompute, recompute), BATCH, 1)


def test_training_of_a_whole_model(simulated: Simulated, tmp_path: Path) -> None:
    # Everything in bfloat16, torch.optim.AdamW: 2 + 2 + 4 bytes, and square roots of one moment while it steps.
    policy = Policy(2, 2, 4, keeps_gradients=False, kernels="modules", masks=_masks(), step_copy=2)
    alone = Framework("torch", policy, (0,), splits_models=False)
    for case, peak in measured(simulated, tmp_path, "plain", 1).items():
        name, recompute = case.split()
        model = model_from(tmp_path / name)
        found = stage_memory(model, Job(1, 1, SEQUENCE, BATCH), layout(recompute, 1), alone, 0)
        assert found.total == pytest.approx(peak, rel=0.1), (case, found)


def test_training_of_a_model_that_fsdp_divides(simulated: Simulated, tmp_path: Path) -> None:
    fsdp = framework("fsdp")
    fsdp = replace(fsdp, policy=replace(fsdp.policy, masks=_masks()))
    for case, peak in measured(simulated, tmp_path, "shard", 2).items():
        name, recompute = case.split()
        model = model_from(tmp_path / name)
        job = Job(1, 2, SEQUENCE, 2 * BATCH)
        parts = dict(estimate(model, job, layout(recompute, 2), fsdp).parts)
        parts.pop("HCCL buffers")  # not the allocator's
        assert sum(parts.values()) == pytest.approx(peak, rel=0.1), (case, parts)
