"""What the Trainer and DeepSpeed refuse when they read their options, and what reaches them otherwise than it reads."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.findings import say
from npuport.llm.checking.contradictions import Contradiction, contradicts
from npuport.llm.checking.documents import Document, as_number
from npuport.llm.checking.trainer import node
from npuport.llm.checking.training import Training

_AUTO = "auto"


def check_trainer(training: Training) -> Iterator[Contradiction]:
    """Each contradiction in TrainingArguments, and between them and DeepSpeed's file."""
    main = training.main
    if main.flag("fp16") and main.flag("bf16"):
        yield contradicts("trainer-precisions", say("fp16 and bf16 are both on"))
    if training.deepspeed is not None:
        yield from _unlike(training, training.deepspeed)
        yield from check_deepspeed(training, training.deepspeed)


def check_deepspeed(training: Training, deepspeed: Document) -> Iterator[Contradiction]:
    """Each contradiction in a DeepSpeed file."""
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    batch, micro, steps = (deepspeed.whole(name) for name in names)
    devices = training.given.devices
    if batch and micro and steps and (batch != micro * steps * devices if devices else batch % (micro * steps)):
        text = say(
            "train_batch_size {batch} is not micro-batch {micro} x accumulation {steps} x {devices} devices",
            batch=batch,
            micro=micro,
            steps=steps,
            devices=devices or "n",
        )
        yield contradicts("deepspeed-batch", text)
    if all(node(deepspeed, name).get("enabled") is True for name in ("fp16", "bf16")):
        yield contradicts("deepspeed-precisions", say("fp16 and bf16 are both enabled"))
    if "gradient_clipping" not in deepspeed.options:
        yield contradicts("deepspeed-clipping", say("{path} has no gradient_clipping", path=deepspeed.path.name))
    zero = node(deepspeed, "zero_optimization")
    stage = as_number(zero.get("stage", 0))
    for name, least in (("offload_param", 3), ("offload_optimizer", 1)):
        place = zero.get(name)
        device = place.get("device", "none") if isinstance(place, dict) else "none"
        if device not in ("none", None) and stage is not None and stage < least:
            text = say("{name} to {device} with ZeRO stage {stage}", name=name, device=device, stage=int(stage))
            yield contradicts("deepspeed-offload", text)


def _unlike(training: Training, deepspeed: Document) -> Iterator[Contradiction]:
    """Values of the DeepSpeed file that are neither "auto" nor those of TrainingArguments."""
    main = training.main
    micro, steps = (
        main.whole("per_device_train_batch_size", 8),
        main.whole("gradient_accumulation_steps", 1),
    )
    devices = training.given.devices
    whole = micro * steps * devices if micro and steps and devices else None
    rate, decay = main.number("learning_rate", 5e-5), main.number("weight_decay", 0.0)
    betas = [main.number("adam_beta1", 0.9), main.number("adam_beta2", 0.999)]
    wanted: dict[str, object] = {
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": steps,
        "train_batch_size": whole,
        "gradient_clipping": main.number("max_grad_norm", 1.0),
        "optimizer.params.lr": rate,
        "optimizer.params.betas": betas if None not in betas else None,
        "optimizer.params.eps": main.number("adam_epsilon", 1e-8),
        "optimizer.params.weight_decay": decay,
        "scheduler.params.warmup_max_lr": rate,
        "fp16.enabled": main.flag("fp16"),
        "bf16.enabled": main.flag("bf16"),
    }
    for path, value in wanted.items():
        given = _at(deepspeed, path)
        if given in (None, _AUTO) or value is None or given == value or as_number(given) == value:
            continue
        text = say(
            "{path} is {given} in {file}, and {value} by TrainingArguments",
            path=path,
            given=given,
            file=deepspeed.path.name,
            value=value,
        )
        yield contradicts("deepspeed-mismatch", text)


def _at(deepspeed: Document, path: str) -> object:
    value: object = deepspeed.options
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
