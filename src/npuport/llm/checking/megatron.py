"""What Megatron's and MindSpeed's options say, with the defaults of Megatron-LM (megatron/training/arguments.py)."""

from __future__ import annotations

import math

from npuport.guidance.judging import Purpose, Recipe
from npuport.llm.checking.documents import Document
from npuport.llm.checking.training import Told, Training
from npuport.llm.planning.model import Model

_TUNING_STAGES = (
    "sft",
    "dpo",
    "orm",
    "prm",
    "ppo",
    "grpo",
    "simpo",
    "trl_ppo",
    "ray_ppo",
    "ray_online_dpo",
    "ray_grpo",
)
# What is trained is part of a model for pictures and text, and its sequence that of the pictures.
_SEVERAL_MODELS = ("img_h", "vision_model_type", "language_model_type", "decoder_seq_length", "encoder_seq_length")
# Options of models whose layers differ, or have parts whose sizes are not counted here.
_UNCOUNTED = (
    "multi_latent_attention",
    "first_k_dense_replace",
    "n_shared_experts",
    "hybrid_layer_pattern",
    "mtp_num_layers",
)


def told_by_megatron(training: Training) -> Told:
    """The recipe of a Megatron or MindSpeed training."""
    main = training.main
    rate, adam = main.number("lr"), main.text("optimizer", "adam").startswith("adam")
    batch = batch_tokens(training)
    steps = _steps(main)
    sequence = main.whole("seq_length")
    tokens: float | None = None
    if batch is not None and steps is not None:
        tokens = float(batch) * steps
    elif sequence is not None and (samples := main.number("train_samples")) is not None:
        tokens = sequence * samples
    fixed = main.number("loss_scale") if main.flag("fp16") else None
    recipe = Recipe(
        purpose=training.given.purpose or _purpose(main),
        parameters=training.given.parameters or _parameters(main),
        rate=rate if adam else None,
        final_share=_final_share(main, rate),
        warmup_share=_warm_up(main),
        clipping=main.number("clip_grad", 1.0),
        weight_decay=main.number("weight_decay", 0.01),
        beta2=main.number("adam_beta2", 0.999) if adam else None,
        batch_tokens=batch,
        tokens=tokens,
        fixed_scale=fixed,
    )
    names = {
        "rate": "lr",
        "final_share": "min_lr",
        "warmup_share": "lr_warmup_fraction" if "lr_warmup_fraction" in main.options else "lr_warmup_iters",
        "clipping": "clip_grad",
        "weight_decay": "weight_decay",
        "beta2": "adam_beta2",
        "batch_tokens": "global_batch_size",
        "tokens": "train_iters",
        "fixed_scale": "loss_scale",
    }
    return Told(recipe, {quantity: "--" + name.replace("_", "-") for quantity, name in names.items()})


def data_parallel(training: Training) -> int | None:
    """Ranks of data parallelism; None where the number of devices is not known, or is not divisible."""
    devices, split = training.given.devices, model_parallel(training.main)
    return devices // split if devices and split and devices % split == 0 else None


def model_parallel(main: Document) -> int | None:
    """TP x PP x CP; None where one of them is not known."""
    sizes = [
        main.whole(f"{name}_size", 1)
        for name in ("tensor_model_parallel", "pipeline_model_parallel", "context_parallel")
    ]
    known = [size for size in sizes if size]
    return math.prod(known) if len(known) == len(sizes) else None


def batch_tokens(training: Training) -> int | None:
    """Tokens of one optimizer step."""
    main = training.main
    sequence = training.given.sequence or main.whole("seq_length")
    batch = main.whole("global_batch_size")
    if batch is None and "global_batch_size" not in main.options:
        micro, data = main.whole("micro_batch_size"), data_parallel(training)
        batch = micro * data if micro and data else None
    return sequence * batch if sequence and batch else None


def _purpose(main: Document) -> Purpose:
    if any(name in main.options for name in _SEVERAL_MODELS):
        return "unknown"
    if any(name.startswith("lora_") and name != "lora_load" for name in main.options) or main.flag("qlora"):
        return "lora"
    stage = main.text("stage")
    if stage in _TUNING_STAGES or main.flag("is_instruction_dataset") or "posttrain" in main.program:
        return "fine-tuning"
    if "tune" in main.program or "rlhf" in main.program:
        return "fine-tuning"
    trained = any(main.text(name) for name in ("load", "pretrained_checkpoint"))
    # A checkpoint that is loaded may be the training's own, of its last run.
    resumed = main.text("load") != "" and main.text("load") == main.text("save")
    return "continued pretraining" if (trained and not resumed) or main.flag("finetune") else "pretraining"


def _steps(main: Document) -> float | None:
    return main.number("train_iters")


def _final_share(main: Document, rate: float | None) -> float | None:
    """The rate of the last step over the peak."""
    style = main.text("lr_decay_style", "linear")
    if style == "constant":
        return 1.0
    least = main.number("min_lr", 0.0)
    if not rate or least is None or style not in ("linear", "cosine"):
        return None
    share = least / rate
    steps, decay = _steps(main), main.number("lr_decay_iters")
    if steps and decay and steps < decay:
        done = steps / decay
        left = (1 + math.cos(math.pi * done)) / 2 if style == "cosine" else 1 - done
        return share + (1 - share) * left
    return share


def _warm_up(main: Document) -> float | None:
    """The share of the training's steps; a fraction is one of the steps that the rate decays over."""
    for unit, whole in (("iters", "train_iters"), ("samples", "train_samples")):
        all_of_it = main.number(whole)
        decay = main.number(f"lr_decay_{unit}", all_of_it)
        if f"lr_warmup_{unit}" in main.options and all_of_it:
            some = main.number(f"lr_warmup_{unit}")
            return some / all_of_it if some is not None else None
        if "lr_warmup_fraction" in main.options and all_of_it and decay:
            fraction = main.number("lr_warmup_fraction")
            return fraction * decay / all_of_it if fraction is not None else None
    if "lr_warmup_fraction" in main.options:
        return main.number("lr_warmup_fraction")
    return None if any(name.startswith("lr_warmup") for name in main.options) else 0.0


def _parameters(main: Document) -> int | None:
    """Of a dense model; None for others, and where a size is missing."""
    if any(name in main.options for name in (*_UNCOUNTED, "num_experts")):
        return None
    layers, hidden, heads = (main.whole(name) for name in ("num_layers", "hidden_size", "num_attention_heads"))
    vocabulary = main.whole("padded_vocab_size") or main.whole("vocab_size")
    if not (layers and hidden and heads and vocabulary):
        return None
    gated = main.flag("swiglu")
    ffn = main.whole("ffn_hidden_size", int(4 * hidden * 2 / 3) // 64 * 64 if gated else 4 * hidden)
    groups = main.whole("num_query_groups", 1) if main.flag("group_query_attention") else heads
    width = main.whole("kv_channels", hidden // heads)
    if not (ffn and groups and width):
        return None
    tied = not main.flag("untie_embeddings_and_output_weights")
    return Model(layers, hidden, heads, groups, width, ffn, vocabulary, tied=tied, gated=gated).parameters
