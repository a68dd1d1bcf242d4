"""What two runs differ in before their first operator."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from npuport.findings import Sentence, say
from npuport.precision.operators.renames import plain_path
from npuport.precision.preflight.batches import compare_batches
from npuport.precision.preflight.differences import Difference, alike, differs, ranked
from npuport.precision.preflight.reading import Facts

_DECIDES = re.compile(
    r"(?:^|[_.-])(?:lr|learning_?rate|min_lr|max_lr|warm_?up\w*|decay\w*|weight_decay|betas?\d?|adam_\w+|eps|epsilon|momentum"
    r"|clip\w*|grad_clip|max_grad_norm|batch_?size\w*|micro_batch\w*|global_batch\w*|accumulat\w*|gradient_accumulation\w*"
    r"|seed|\w*dropout\w*|drop_path\w*|dtype|bf16|fp16|fp32|tf32|precision|mixed_precision|amp\w*|loss_scale\w*"
    r"|block_size|seq_?len\w*|seq_length|max_length|n_?layers?|num_layers|n_?heads?|n_?embd|hidden_size|vocab_size"
    r"|num_hidden_layers|num_attention_heads|intermediate_size|optim\w*|lr_scheduler\w*|scheduler|max_steps|max_iters"
    r"|train_iters|num_train_epochs|epochs|label_smoothing\w*|temperature|world_size|tensor_parallel\w*|pipeline\w*parallel\w*"
    r"|init_method_std|initializer_range|bias|tie_\w+|shuffle)$",
    re.IGNORECASE,
)
_COUNTS = (
    "torch",
    "torch-npu",
    "cann",
    "transformers",
    "tokenizers",
    "accelerate",
    "deepspeed",
    "megatron-core",
    "numpy",
)
_ROUNDED = 1e-6  # how far statistics of weights that were only stored and loaded differ
_SHOWN = 4


def compare_runs(reference: Mapping[int, Facts], candidate: Mapping[int, Facts]) -> list[Difference]:
    """Everything that differs, the likeliest cause first. Ranks that both have are compared one by one."""
    found: list[Difference] = []
    common = sorted(reference.keys() & candidate.keys())
    for rank in common or [0]:
        one = reference.get(rank) or next(iter(reference.values()))
        other = candidate.get(rank) or next(iter(candidate.values()))
        found += _of_rank(one, other, rank)
        if rank == (common or [0])[0]:
            found += _of_run(one, other)
    return ranked(found)


def _of_rank(one: Facts, other: Facts, rank: int) -> Iterator[Difference]:
    yield from _models(one, other, rank)
    yield from compare_batches(one, other, rank)
    yield from _random(one, other, rank)


def _of_run(one: Facts, other: Facts) -> Iterator[Difference]:
    yield from _optimizers(one, other)
    yield from _hyperparameters(one, other)
    yield from _precision(one, other)
    yield from _job(one, other)
    yield from _environment(one, other)


def _models(one: Facts, other: Facts, rank: int) -> Iterator[Difference]:
    if not (one["models"] and other["models"]):
        yield differs("unknown", say("no model was seen in one of the two"), rank)
        return
    for model, twin in zip(one["models"], other["models"], strict=False):
        yield from _structure(model, twin, rank)
        yield from _weights(model, twin, rank)
        yield from _dropout(model, twin, rank)


def _structure(model: Facts, twin: Facts, rank: int) -> Iterator[Difference]:
    shapes = [
        {plain_path(path): tuple(tensor["shape"]) for path, tensor in facts["parameters"].items()}
        for facts in (model, twin)
    ]
    for path in _uneven(*shapes):
        text = say(
            "parameter {path}: shape {reference} and {candidate}",
            path=path,
            reference=_or_missing(shapes[0].get(path)),
            candidate=_or_missing(shapes[1].get(path)),
        )
        yield differs("model-structure", text, rank)
    modules = [
        {plain_path(path): _class_and_options(text) for path, text in facts["modules"].items()}
        for facts in (model, twin)
    ]
    changed = [path for path in modules[0].keys() & modules[1].keys() if modules[0][path] != modules[1][path] and path]
    for path in sorted(changed)[:_SHOWN]:
        text = say(
            "module {path}: {reference} and {candidate}",
            path=path,
            reference=modules[0][path],
            candidate=modules[1][path],
        )
        yield differs("model-structure", text, rank)


def _class_and_options(text: str) -> str:
    """A module's class and options; dropout's probability is compared as such."""
    return re.sub(r"\bp=[\d.]+, inplace=\w+", "", text)


def _uneven(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The first keys that only one has, or whose values differ."""
    keys = [*one, *(key for key in other if key not in one)]
    return [key for key in keys if one.get(key) != other.get(key)][:_SHOWN]


def _or_missing(value: Any) -> Any:
    return say("missing") if value is None else value


def _weights(model: Facts, twin: Facts, rank: int) -> Iterator[Difference]:
    tensors = [
        {plain_path(path): tensor for part in ("parameters", "buffers") for path, tensor in facts[part].items()}
        for facts in (model, twin)
    ]
    both = [path for path in tensors[0] if path in tensors[1]]
    dtypes = [path for path in both if tensors[0][path]["dtype"] != tensors[1][path]["dtype"]]
    if dtypes:
        text = say(
            "{number} weights have another dtype: {path} is {reference} and {candidate}",
            number=len(dtypes),
            path=dtypes[0],
            reference=tensors[0][dtypes[0]]["dtype"],
            candidate=tensors[1][dtypes[0]]["dtype"],
        )
        yield differs("precision", text, rank)
    other = [path for path in both if path not in dtypes and _differ(tensors[0][path], tensors[1][path])]
    if other:
        only_rounded = all(_is_near(tensors[0][path], tensors[1][path]) for path in other)
        how = say("by rounding only, as far as statistics tell") if only_rounded else say("drawn or loaded otherwise")
        text = say(
            "{number} of {all} weights differ at the first forward pass, {how}: {paths}",
            number=len(other),
            all=len(both),
            how=how,
            paths=", ".join(other[:_SHOWN]),
        )
        yield differs("initial-weights", text, rank)


def _differ(one: Facts, other: Facts) -> bool:
    known = one.get("hash"), other.get("hash")
    return None not in known and one["shape"] == other["shape"] and known[0] != known[1]


def _is_near(one: Facts, other: Facts) -> bool:
    scale = max(abs(one.get("rms", 0.0)), abs(other.get("rms", 0.0)), 1e-30)
    return all(
        math.isclose(one.get(name, 0.0), other.get(name, 0.0), rel_tol=_ROUNDED, abs_tol=_ROUNDED * scale)
        for name in ("max", "min", "mean", "rms")
    )


def _dropout(model: Facts, twin: Facts, rank: int) -> Iterator[Difference]:
    drops = [{plain_path(path): value for path, value in facts["dropout"].items()} for facts in (model, twin)]
    for path in _uneven(*drops):
        text = say(
            "dropout of {path}: {reference} and {candidate}",
            path=path,
            reference=_probability(drops[0].get(path)),
            candidate=_probability(drops[1].get(path)),
        )
        yield differs("dropout", text, rank)


def _probability(value: list[Any] | None) -> Any:
    if value is None:
        return say("none")
    return value[0] if value[1] else say("{value}, switched off by eval()", value=value[0])


def is_dropping(facts: Facts) -> bool:
    """Whether dropout or stochastic depth takes part in the training."""
    return any(training for model in facts["models"] for _, training in model["dropout"].values())


def _random(one: Facts, other: Facts, rank: int) -> Iterator[Difference]:
    seeds = [facts["random"].get("torch_seed") for facts in (one, other)]
    states = [facts["random"].get("torch_state") for facts in (one, other)]
    drops = is_dropping(one) and is_dropping(other)
    if seeds[0] != seeds[1] or None in seeds:
        text = say("seed of PyTorch: {reference} and {candidate}", reference=_seed(seeds[0]), candidate=_seed(seeds[1]))
        yield differs("dropout" if drops else "seed", text, rank)
    elif states[0] != states[1]:
        text = say("the generator has drawn other numbers from seed {seed} before the first batch", seed=seeds[0])
        yield differs("dropout" if drops else "seed", text, rank)
    for name in ("python", "numpy"):
        state = [facts["random"].get(f"{name}_state") for facts in (one, other)]
        if state[0] != state[1] and None not in state:
            yield differs("seed", say("state of the random numbers of {name}", name=name), rank)
    if one["random_calls"] and other["random_calls"] and one["random_calls"][0] != other["random_calls"][0]:
        text = say(
            "random operators of the first forward pass: {reference} and {candidate}",
            reference=_counts(one["random_calls"][0]),
            candidate=_counts(other["random_calls"][0]),
        )
        yield differs("random-calls", text, rank)


def _seed(value: Any) -> Any:
    return say("never seeded") if value is None else value


def _counts(calls: Mapping[str, int]) -> Any:
    return ", ".join(f"{count} x {name}" for name, count in sorted(calls.items())) or say("none")


def _optimizers(one: Facts, other: Facts) -> Iterator[Difference]:
    if not (one["optimizers"] and other["optimizers"]):
        yield differs("unknown", say("no optimizer step was seen in one of the two"))
        return
    for number, (optimizer, twin) in enumerate(zip(one["optimizers"], other["optimizers"], strict=False)):
        if optimizer["class"] != twin["class"]:
            text = say("optimizer: {reference} and {candidate}", reference=optimizer["class"], candidate=twin["class"])
            yield differs("optimizer", text)
        for group, (options, others) in enumerate(zip(optimizer["groups"], twin["groups"], strict=False)):
            yield from _options(options, others, f"{number}.{group}")
        if len(optimizer["groups"]) != len(twin["groups"]):
            groups = len(optimizer["groups"]), len(twin["groups"])
            text = say("groups of parameters: {reference} and {candidate}", reference=groups[0], candidate=groups[1])
            yield differs("optimizer", text)
    clips = one.get("clipping"), other.get("clipping")
    if clips[0] != clips[1]:
        text = say(
            "gradients are clipped to norm: {reference} and {candidate}",
            reference=clips[0] or say("none"),
            candidate=clips[1] or say("none"),
        )
        yield differs("optimizer", text)
    rates = [[entry["lr"] for entry in facts["steps"]] for facts in (one, other)]
    first = next((step for step, (a, b) in enumerate(zip(*rates, strict=False)) if a != b), None)
    if first is not None and first > 0:
        text = say(
            "learning rate from step {step} on: {reference} and {candidate}",
            step=first,
            reference=rates[0][first],
            candidate=rates[1][first],
        )
        yield differs("learning-rate", text)


_IMPLEMENTATION = {"foreach", "fused", "capturable", "differentiable", "decoupled_weight_decay"}


def _options(options: Facts, others: Facts, which: str) -> Iterator[Difference]:
    for name in options.keys() & others.keys():
        if options[name] != others[name]:
            text = say(
                "{name} of the optimizer (group {group}): {reference} and {candidate}",
                name=name,
                group=which,
                reference=options[name],
                candidate=others[name],
            )
            yield differs("setting" if name in _IMPLEMENTATION else "optimizer", text)


def hyperparameters(facts: Facts) -> dict[str, Any]:
    """Those that a run told, by name: arguments of parsers, files on its command line, variables of its script."""
    found = dict(facts["hyperparameters"]["globals"])
    for values in facts["hyperparameters"]["files"].values():
        found.update(values)
    return {**found, **facts["hyperparameters"]["arguments"]}


def _hyperparameters(one: Facts, other: Facts) -> Iterator[Difference]:
    values = hyperparameters(one), hyperparameters(other)
    sides: tuple[Sentence, Sentence] = (say("the reference"), say("the candidate"))
    for own, side in zip(values, sides, strict=True):
        if not own:
            yield differs(
                "unknown", say("hyper-parameters of {side}: it parses no arguments and reads no file", side=side)
            )
    if not (values[0] and values[1]):
        return
    for name in sorted(values[0].keys() | values[1].keys()):
        decides = bool(_DECIDES.search(name))
        if name in values[0] and name in values[1]:
            if not alike(values[0][name], values[1][name]):
                text = say(
                    "{name}: {reference} and {candidate}",
                    name=name,
                    reference=values[0][name],
                    candidate=values[1][name],
                )
                is_path = any("/" in str(value[name]) for value in values)
                yield differs("hyperparameter" if decides and not is_path else "argument", text)
        elif decides:
            side = sides[1] if name in values[0] else sides[0]
            value = values[0].get(name, values[1].get(name))
            yield differs(
                "unknown",
                say("{name} is {value} in one run; of {side} it is not known", name=name, value=value, side=side),
            )


_SHORTER = {
    "matrix products": ("cuda.matmul.allow_tf32", "npu.matmul.allow_hf32"),
    "convolutions": ("cudnn.allow_tf32", "npu.conv.allow_hf32"),
}


def _precision(one: Facts, other: Facts) -> Iterator[Difference]:
    amp = [" ".join(sorted(set(facts.get("autocast", {}).values()))) for facts in (one, other)]
    if amp[0] != amp[1]:
        text = say(
            "autocast: {reference} and {candidate}", reference=amp[0] or say("off"), candidate=amp[1] or say("off")
        )
        yield differs("precision", text)
    settings = one["settings"], other["settings"]
    for name in ("default_dtype", "float32_matmul_precision"):
        values = settings[0].get(name), settings[1].get(name)
        if None not in values and values[0] != values[1]:
            yield differs(
                "precision",
                say("{name}: {reference} and {candidate}", name=name, reference=values[0], candidate=values[1]),
            )
    for name, switches in _SHORTER.items():
        on = [next((one[switch] for switch in switches if one.get(switch) is not None), None) for one in settings]
        if None not in on and on[0] != on[1]:
            text = say(
                "{name} in TF32 or HF32: {reference} and {candidate}", name=name, reference=on[0], candidate=on[1]
            )
            yield differs("precision", text)
    deterministic = [
        name for name in ("deterministic_algorithms", "cudnn.deterministic") if settings[0][name] != settings[1][name]
    ]
    for name in deterministic:
        text = say(
            "{name}: {reference} and {candidate}", name=name, reference=settings[0][name], candidate=settings[1][name]
        )
        yield differs("determinism", text)
    scales = one.get("loss_scale"), other.get("loss_scale")
    if scales[0] != scales[1]:
        text = say(
            "first loss scale: {reference} and {candidate}",
            reference=scales[0] or say("none"),
            candidate=scales[1] or say("none"),
        )
        yield differs("loss-scale", text)


def _job(one: Facts, other: Facts) -> Iterator[Difference]:
    worlds = one["parallel"]["world_size"], other["parallel"]["world_size"]
    if worlds[0] != worlds[1]:
        yield differs(
            "scale-of-job", say("processes: {reference} and {candidate}", reference=worlds[0], candidate=worlds[1])
        )
    passes = one.get("forward_passes_of_first_step"), other.get("forward_passes_of_first_step")
    if None not in passes and passes[0] != passes[1]:
        text = say("forward passes for one step: {reference} and {candidate}", reference=passes[0], candidate=passes[1])
        yield differs("scale-of-job", text)


def _environment(one: Facts, other: Facts) -> Iterator[Difference]:
    for name in sorted(one["versions"].keys() & other["versions"].keys(), key=lambda name: (name not in _COUNTS, name)):
        versions = one["versions"][name], other["versions"][name]
        if versions[0].partition("+")[0] != versions[1].partition("+")[0]:
            yield differs(
                "version",
                say("{name}: {reference} and {candidate}", name=name, reference=versions[0], candidate=versions[1]),
            )
    if one["code"].get("hash") != other["code"].get("hash"):
        yield differs("code", say("the text of {script}", script=other["code"].get("script", "…")))
    commits = one["code"].get("commit"), other["code"].get("commit")
    if commits[0] != commits[1]:
        yield differs(
            "code",
            say("commit: {reference} and {candidate}", reference=_short(commits[0]), candidate=_short(commits[1])),
        )
    for name in sorted(one["variables"].keys() | other["variables"].keys()):
        if name in _OWN or not (name in one["variables"] or name in other["variables"]):
            continue
        values = one["variables"].get(name), other["variables"].get(name)
        if values[0] != values[1]:
            text = say(
                "{name}: {reference} and {candidate}",
                name=name,
                reference=values[0] or say("not set"),
                candidate=values[1] or say("not set"),
            )
            yield differs("determinism" if "DETERMINISTIC" in name else "variable", text)


_OWN = {"NPUPORT_SIM", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK"}


def _short(commit: str | None) -> Any:
    return say("unknown") if commit is None else commit[:10]
