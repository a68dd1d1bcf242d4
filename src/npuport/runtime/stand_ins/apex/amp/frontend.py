"""``amp.initialize`` and the state of the loss scales."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..fp16_utils import convert_network
from . import amp
from ._amp_state import _amp_state, maybe_print
from ._process_optimizer import process_optimizer, replace_method
from .options import Properties, choose
from .scaler import LossScaler


def initialize(
    models: Any,
    optimizers: Any = None,
    enabled: bool = True,
    opt_level: str = "O1",
    cast_model_type: torch.dtype | None = None,
    patch_torch_functions: bool | None = None,
    keep_batchnorm_fp32: bool | str | None = None,
    master_weights: bool | None = None,
    loss_scale: float | str | None = None,
    cast_model_outputs: torch.dtype | None = None,
    num_losses: int = 1,
    verbosity: int = 1,
    min_loss_scale: float | None = None,
    max_loss_scale: float = 2.0**24,
) -> Any:
    """The models and optimizers, changed in place for ``opt_level``; lists where lists were given.

    Raises:
        RuntimeError: for options that Apex refuses, a model inside a parallel wrapper, or one in float16 already.
        TypeError: for anything that is no model or optimizer.
    """
    _amp_state.verbosity = verbosity
    if not enabled:
        _amp_state.opt_properties = Properties()
        return models if optimizers is None else (models, optimizers)
    options = choose(
        opt_level,
        cast_model_type=cast_model_type,
        patch_torch_functions=patch_torch_functions,
        keep_batchnorm_fp32=keep_batchnorm_fp32,
        master_weights=master_weights,
        loss_scale=loss_scale,
    )
    _amp_state.opt_properties = options
    _amp_state.min_loss_scale, _amp_state.max_loss_scale = min_loss_scale, max_loss_scale
    maybe_print("npuport's stand-in for apex.amp: " + ", ".join(f"{k}={v}" for k, v in options.options.items()))
    all_models, all_optimizers = _models(models), _optimizers(optimizers)
    _cast_models(all_models, all_optimizers, options, cast_model_outputs)
    for optimizer in all_optimizers:
        process_optimizer(optimizer, master_weights=bool(options.master_weights))
    _amp_state.loss_scalers = [
        LossScaler(options.loss_scale, min_loss_scale=min_loss_scale, max_loss_scale=max_loss_scale)
        for _ in range(num_losses)
    ]
    if options.patch_torch_functions:
        amp.start(_device_type(all_models))
        for optimizer in all_optimizers:
            replace_method(optimizer, "step", _without_casts(optimizer.step))
    return models if optimizers is None or optimizers == [] else (models, optimizers)


def _models(models: Any) -> list[nn.Module]:
    found = models if isinstance(models, list) else [models]
    for model in found:
        if not isinstance(model, nn.Module):
            raise TypeError("models must be either a single model or a list of models.")
        if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
            raise RuntimeError(
                f"Incoming model is an instance of {type(model).__name__}. Parallel wrappers should only be applied"
                " to the model(s) AFTER the model(s) have been returned from amp.initialize."
            )
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if tensor.dtype is torch.float16 and not _amp_state.allow_incoming_model_not_fp32:
                raise RuntimeError(f"Found {name} in float16: amp.initialize takes the model in float32")
    return found


def _optimizers(optimizers: Any) -> list[Any]:
    found = [] if optimizers is None else optimizers if isinstance(optimizers, list) else [optimizers]
    if not all(hasattr(optimizer, "param_groups") for optimizer in found):
        raise TypeError("optimizers must be either a single optimizer or a list of optimizers.")
    return found


def _device_type(models: list[nn.Module]) -> str:
    return next((parameter.device.type for model in models for parameter in model.parameters()), "npu")


def _cast_models(
    models: list[nn.Module], optimizers: list[Any], options: Properties, outputs: torch.dtype | None
) -> None:
    dtype = options.cast_model_type
    for model in models:
        if dtype is not None:
            if options.keep_batchnorm_fp32:
                convert_network(model, dtype)
            else:
                model.to(dtype)
            for module in model.modules():
                module._register_state_dict_hook(_as_float)
        if dtype is not None or outputs is not None:
            last = outputs or torch.float32
            model.forward = _casting(model.forward, dtype, last)
    if dtype is not None:
        for optimizer in optimizers:
            optimizer.load_state_dict(optimizer.state_dict())  # state in the dtype of the parameters


def _casting(forward: Callable[..., Any], inputs: torch.dtype | None, outputs: torch.dtype) -> Callable[..., Any]:
    @functools.wraps(forward)
    def cast_forward(*arguments: Any, **keywords: Any) -> Any:
        if inputs is not None:
            arguments, keywords = _apply(arguments, inputs), _apply(keywords, inputs)
        return _apply(forward(*arguments, **keywords), outputs)

    return cast_forward


def _apply(value: Any, dtype: torch.dtype) -> Any:
    """``value`` with its tensors, the floating ones, in ``dtype``."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, str | bytes):
        return value
    if hasattr(value, "to"):  # a batch class of the user's own
        return value.to(dtype)
    if isinstance(value, Mapping):
        parts = {key: _apply(part, dtype) for key, part in value.items()}
        # Mapping declares no constructor; the mappings that batches are made of take one.
        return parts if type(value) is dict else type(value)(parts)  # type: ignore[call-arg]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_apply(part, dtype) for part in value))
    if isinstance(value, Iterable) and isinstance(value, list | tuple | set | frozenset):
        return type(value)(_apply(part, dtype) for part in value)
    return value


def _as_float(_module: nn.Module, state_dict: dict[str, Any], _prefix: str, _metadata: Any) -> None:
    """Checkpoints hold float32, whatever the level."""
    for key, value in state_dict.items():
        if isinstance(value, Tensor) and value.dtype is torch.float16:
            state_dict[key] = value.float()


def _without_casts(step: Callable[..., Any]) -> Callable[..., Any]:
    def plain_step(*arguments: Any, **keywords: Any) -> Any:
        with amp.stopped():
            return step(*arguments, **keywords)

    return plain_step


def state_dict(destination: dict[str, Any] | None = None) -> dict[str, Any]:
    """The loss scales and how many steps each has gone without an overflow."""
    found = OrderedDict() if destination is None else destination
    for number, scaler in enumerate(_amp_state.loss_scalers):
        found[f"loss_scaler{number}"] = {"loss_scale": scaler.loss_scale(), "unskipped": scaler._unskipped}
    return found


def load_state_dict(state_dict: Mapping[str, Any]) -> None:
    """Take up what ``state_dict()`` gave.

    Raises:
        RuntimeError: for keys of something else.
    """
    scalers = _amp_state.loss_scalers
    if len(state_dict) != len(scalers):
        maybe_print(
            f"Warning: state_dict contains {len(state_dict)} entries, while {len(scalers)} loss_scalers are used"
        )
    unexpected = [key for key in state_dict if "loss_scaler" not in key]
    if unexpected:
        raise RuntimeError(f"Error(s) in loading state_dict. Unexpected key(s) in state_dict: {', '.join(unexpected)}")
    for scaler, saved in zip(scalers, state_dict.values(), strict=False):
        scaler._loss_scale, scaler._unskipped = saved["loss_scale"], saved["unskipped"]
