"""What TrainingArguments, LLaMA-Factory's YAML and DeepSpeed's JSON say, with the defaults of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npuport.guidance.judging import Purpose, Recipe
from npuport.llm.checking.documents import Document, as_number
from npuport.llm.checking.training import Told, Training, size_in

_SEQUENCE = ("cutoff_len", "max_seq_length", "max_seq_len", "model_max_length", "block_size", "max_length")
# Optimizers under other options of LLaMA-Factory and transformers, whose rates are not Adam's.
_OTHER_OPTIMIZERS = ("use_galore", "use_apollo", "use_badam", "use_muon", "use_adam_mini")
_FINAL = {"linear": 0.0, "cosine": 0.0, "constant": 1.0, "constant_with_warmup": 1.0, "polynomial": 0.0}
_TO_ZERO = ("linear", "cosine", "polynomial")


def told_by_trainer(training: Training) -> Told:
    """The recipe of a training by transformers' Trainer."""
    main = training.main
    optimizer = main.text("optim", "adamw_torch")
    is_adam = "adam" in optimizer and not any(main.options.get(name) for name in _OTHER_OPTIMIZERS)
    batch = batch_tokens(training)
    steps = main.number("max_steps", -1)
    recipe = Recipe(
        purpose=training.given.purpose or _purpose(main),
        parameters=training.given.parameters or size_in(main.text("model_name_or_path")),
        rate=main.number("learning_rate", 5e-5) if is_adam else None,
        final_share=_final_share(main),
        warmup_share=_warm_up(main),
        clipping=_clipping(training),
        weight_decay=main.number("weight_decay", 0.0),
        beta2=main.number("adam_beta2", 0.999) if is_adam else None,
        batch_tokens=batch,
        tokens=batch * steps if batch and steps and steps > 0 else None,
        fixed_scale=_fixed_scale(training.deepspeed) if main.flag("fp16") else None,
    )
    ratio = "warmup_ratio" in main.options and as_number(main.options["warmup_ratio"])
    origins = {
        "rate": "learning_rate",
        "final_share": "lr_scheduler_type",
        "warmup_share": "warmup_ratio" if ratio or "warmup_steps" not in main.options else "warmup_steps",
        "clipping": "max_grad_norm",
        "weight_decay": "weight_decay",
        "beta2": "adam_beta2",
        "batch_tokens": "per_device_train_batch_size",
        "tokens": "max_steps",
        "fixed_scale": "fp16.loss_scale",
    }
    return Told(recipe, origins)


def told_by_deepspeed(training: Training) -> Told:
    """The recipe of a DeepSpeed file alone, as far as it goes."""
    main = training.main
    optimizer = node(main, "optimizer")
    parameters = _mapping(optimizer.get("params"))
    is_adam = "adam" in str(optimizer.get("type", "")).lower()
    betas = parameters.get("betas")
    scheduler = node(main, "scheduler")
    shape = _mapping(scheduler.get("params"))
    steps, warm = as_number(shape.get("total_num_steps")), as_number(shape.get("warmup_num_steps"))
    batch, sequence = main.whole("train_batch_size"), training.given.sequence
    recipe = Recipe(
        purpose=training.given.purpose or "unknown",
        parameters=training.given.parameters,
        rate=as_number(parameters.get("lr")) if is_adam else None,
        final_share=0.0 if scheduler.get("type") == "WarmupDecayLR" else None,
        warmup_share=warm / steps if steps and warm is not None else None,
        clipping=main.number("gradient_clipping"),
        weight_decay=as_number(parameters.get("weight_decay")),
        beta2=as_number(betas[1]) if isinstance(betas, list) and len(betas) == 2 and is_adam else None,
        batch_tokens=batch * sequence if batch and sequence else None,
        fixed_scale=_fixed_scale(main) if node(main, "fp16").get("enabled") is True else None,
    )
    origins = {
        "rate": "optimizer.params.lr",
        "final_share": "scheduler.type",
        "warmup_share": "scheduler.params.warmup_num_steps",
        "clipping": "gradient_clipping",
        "weight_decay": "optimizer.params.weight_decay",
        "beta2": "optimizer.params.betas",
        "batch_tokens": "train_batch_size",
        "fixed_scale": "fp16.loss_scale",
    }
    return Told(recipe, origins)


def batch_tokens(training: Training) -> int | None:
    """Tokens of one optimizer step over all devices."""
    main = training.main
    sizes = (
        main.whole("per_device_train_batch_size", 8),
        main.whole("gradient_accumulation_steps", 1),
        training.given.devices,
        training.given.sequence or next((size for name in _SEQUENCE if (size := main.whole(name))), None),
    )
    total = 1
    for size in sizes:
        if not size:
            return None
        total *= size
    return total


def node(document: Document, name: str) -> Mapping[str, Any]:
    """A section of a DeepSpeed file; empty where there is none."""
    return _mapping(document.options.get(name))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _purpose(main: Document) -> Purpose:
    stage, method = main.text("stage"), main.text("finetuning_type")
    if not stage and method in ("", "full") and not any(name in main.options for name in ("use_peft", "lora_r")):
        return "unknown"
    if method in ("lora", "oft") or main.flag("use_peft") or (not method and "lora_r" in main.options):
        return "lora"
    if method == "freeze":
        return "unknown"
    if stage == "pt":
        return "pretraining" if main.flag("train_from_scratch") else "continued pretraining"
    return "fine-tuning"


def _final_share(main: Document) -> float | None:
    kind = main.text("lr_scheduler_type", "linear")
    least, rate = main.number("min_lr"), main.number("learning_rate", 5e-5)
    more = _mapping(main.options.get("lr_scheduler_kwargs"))
    if kind in ("cosine_with_min_lr", "cosine_warmup_with_min_lr") and rate:
        share, floor = as_number(more.get("min_lr_rate")), as_number(more.get("min_lr"))
        return share if share is not None else floor / rate if floor is not None else None
    if least is not None and rate and kind in _TO_ZERO:
        return least / rate
    return _FINAL.get(kind)


def _warm_up(main: Document) -> float | None:
    """The share of the steps; ``warmup_steps`` goes before the ratio, and below 1 is one itself (transformers 5)."""
    kind = main.text("lr_scheduler_type", "linear")
    if kind == "constant":
        return 0.0
    steps, ratio = main.number("warmup_steps", 0), main.number("warmup_ratio", 0)
    if steps is None or ratio is None:
        return None
    if steps >= 1:
        all_of_them = main.number("max_steps", -1)
        return steps / all_of_them if all_of_them and all_of_them > 0 else None
    return steps or ratio


def _clipping(training: Training) -> float | None:
    """DeepSpeed clips by its own file; the Trainer's norm reaches it as "auto" only."""
    own = training.main.number("max_grad_norm", 1.0)
    if training.deepspeed is None:
        return None if training.main.text("deepspeed") else own
    given = training.deepspeed.options.get("gradient_clipping")
    return own if given == "auto" else as_number(given)


def _fixed_scale(deepspeed: Document | None) -> float | None:
    """The loss scale of a DeepSpeed file, where it is not dynamic (0)."""
    return (as_number(node(deepspeed, "fp16").get("loss_scale")) or None) if deepspeed is not None else None
