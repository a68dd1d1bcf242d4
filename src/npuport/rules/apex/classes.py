"""Apex's optimizers, norms and parallel layers, and torch's in their place.

torch_npu's fused optimizers are left to the advice on optimizers: they move parameters at the first ``zero_grad`` that
sees gradients, which between a forward and a backward pass is an error. Source of signatures and defaults: NVIDIA/apex,
documents of its classes; torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from npuport.findings import Edit
from npuport.rules.apex.mentions import Mention
from npuport.rules.base import Context


class Blocked(Exception):
    """Why something has no fix, as the end of a sentence."""


@dataclass(frozen=True)
class Counterpart:
    """What takes the place of a class or function of Apex.

    ``parameters`` are Apex's, in order, as far as positional arguments may go. ``dropped`` are keywords that mean
    nothing to the counterpart: with the value that they must have, None for any. ``added`` are keywords that keep
    Apex's default.
    """

    name: str
    parameters: tuple[str, ...] = ()
    dropped: Mapping[str, object] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    since: str = "1.6"
    handed_on: bool = False  # whether the class may take the other's place without being called


_ADAM = {"bias_correction": True, "set_grad_none": None, "capturable": None, "master_weights": False, "amsgrad": False}
_ADAMW = Counterpart("torch.optim.AdamW", ("params", "lr"), _ADAM, {"weight_decay": "0.0"})
_PLAIN_ADAM = Counterpart("torch.optim.Adam", ("params", "lr"), _ADAM)
_DDP_DROPPED = {
    "message_size": None,
    "delay_allreduce": None,
    "allreduce_trigger_params": None,
    "retain_allreduce_buffers": None,
    "num_allreduce_streams": None,
    "allreduce_communicators": None,
    "gradient_average": True,
    "gradient_predivide_factor": 1.0,
    "allreduce_always_fp32": False,
    "prof": None,
}
_LAYER_NORM = Counterpart(
    "torch.nn.LayerNorm",
    ("normalized_shape", "eps", "elementwise_affine"),
    {"memory_efficient": None},
    handed_on=True,
)
_COUNTERPARTS = {
    "FusedSGD": Counterpart(
        "torch.optim.SGD",
        ("params", "lr", "momentum", "dampening", "weight_decay", "nesterov"),
        {"wd_after_momentum": False, "materialize_master_grads": None, "set_grad_none": None},
    ),
    "FusedAdagrad": Counterpart(
        "torch.optim.Adagrad", ("params", "lr"), {"set_grad_none": None, "adagrad_w_mode": False}
    ),
    "FusedLayerNorm": _LAYER_NORM,
    "FastLayerNorm": Counterpart(
        "torch.nn.LayerNorm", ("normalized_shape", "eps"), {"memory_efficient": None}, handed_on=True
    ),
    "FusedRMSNorm": Counterpart(
        "torch.nn.RMSNorm",
        ("normalized_shape", "eps", "elementwise_affine"),
        {"memory_efficient": None},
        {"eps": "1e-5"},
        since="2.4",
    ),
    "DistributedDataParallel": Counterpart(
        "torch.nn.parallel.DistributedDataParallel", ("module",), _DDP_DROPPED, handed_on=True
    ),
    "SyncBatchNorm": Counterpart(
        "torch.nn.SyncBatchNorm",
        ("num_features", "eps", "momentum", "affine", "track_running_stats", "process_group"),
        {"channel_last": False, "fuse_relu": False},
        handed_on=True,
    ),
    "convert_syncbn_model": Counterpart(
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm", ("module", "process_group"), {"channel_last": False}
    ),
    "clip_grad_norm_": Counterpart("torch.nn.utils.clip_grad_norm_", ("parameters", "max_norm"), handed_on=True),
}
_HOMES = (
    "apex.optimizers.",
    "apex.normalization.",
    "apex.parallel.",
    "apex.contrib.clip_grad.",
    "apex.contrib.layer_norm.",
)


def counterpart_edits(mention: Mention, context: Context) -> Iterator[Edit]:
    """The edits that put torch's class in the place of a mention of Apex's.

    Raises:
        Blocked: there is none.
    """
    found = counterpart_of(mention, context)
    module = context.module
    if not context.settings.torch_at_least(found.since):
        raise Blocked(f"{found.name} needs torch {found.since}")
    call = mention.call
    if call is not None:
        yield Edit(*module.lines.span(call.func), found.name)
        yield from argument_edits(call, found, context)
    elif found.handed_on:
        yield Edit(*module.lines.span(mention.node), found.name)
    else:
        raise Blocked(f"it is handed on, and {found.name} takes other arguments")


def counterpart_of(mention: Mention, context: Context) -> Counterpart:
    """What torch has in the place of a class or function. Raises Blocked where there is nothing."""
    short = mention.name.rpartition(".")[2]
    if not mention.name.startswith(_HOMES):
        raise Blocked("it has no counterpart in torch")
    if short == "FusedAdam":
        modes = [keyword.value for keyword in (mention.call.keywords if mention.call else []) if keyword.arg == _MODE]
        if not modes:
            return _with_mode(_ADAMW)
        value = set(context.constants_of(modes[0]) or ())
        if value not in ({0}, {1}):
            raise Blocked("adam_w_mode, which chooses AdamW or Adam, is not known here")
        return _with_mode(_ADAMW if value == {1} else _PLAIN_ADAM)
    if short not in _COUNTERPARTS:
        raise Blocked("torch has no class with these numbers" if short.startswith("Fused") else "torch has none")
    return _COUNTERPARTS[short]


_MODE = "adam_w_mode"


def _with_mode(found: Counterpart) -> Counterpart:
    return Counterpart(found.name, found.parameters, {**found.dropped, _MODE: None}, found.added)


def argument_edits(call: ast.Call, found: Counterpart, context: Context) -> Iterator[Edit]:
    """Without the keywords that mean nothing to the counterpart, and with those whose default differs.

    Raises:
        Blocked: it cannot be seen, or the counterpart has nothing like an argument.
    """
    module = context.module
    if any(isinstance(argument, ast.Starred) for argument in call.args) or len(call.args) > len(found.parameters):
        raise Blocked(f"{found.name} takes its arguments in another order: name them")
    if any(keyword.arg is None for keyword in call.keywords) and (found.added or found.dropped):
        raise Blocked(f"{found.name} does not take all that ** may hold")
    parts: list[ast.AST] = sorted([*call.args, *call.keywords], key=module.lines.span)
    kept = []
    for part in parts:
        if isinstance(part, ast.keyword) and part.arg is not None and part.arg in found.dropped:
            wanted = found.dropped[part.arg]
            if wanted is not None and set(context.constants_of(part.value) or ()) != {wanted}:
                raise Blocked(f"{found.name} has nothing like {module.segment(part)}")
        else:
            kept.append(part)
    names = {part.arg for part in kept if isinstance(part, ast.keyword)} | set(found.parameters[: len(call.args)])
    added = ", ".join(f"{name}={value}" for name, value in found.added.items() if name not in names)
    for place, part in enumerate(parts):
        if part in kept:
            continue
        if any(before in kept for before in parts[:place]):  # with the comma before it
            yield Edit(module.lines.span(parts[place - 1])[1], module.lines.span(part)[1], "")
        elif place + 1 < len(parts):
            yield Edit(module.lines.span(part)[0], module.lines.span(parts[place + 1])[0], "")
    if added and kept:
        at = module.lines.span(kept[-1])[1]
        yield Edit(at, at, f", {added}")
