"""Scaling a loss around its backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from . import amp
from ._amp_state import _amp_state, maybe_print
from ._process_optimizer import replace_method
from .scaler import LossScaler, clear_flag


@contextmanager
def scale_loss(
    loss: Tensor,
    optimizers: Any,
    loss_id: int = 0,
    model: Any = None,  # noqa: ARG001 - reserved by Apex
    delay_unscale: bool = False,
    delay_overflow_check: bool = False,
) -> Iterator[Tensor]:
    """Yields the loss as float32 times the scale; afterwards gradients are unscaled and an overflow skips the step.

    Raises:
        RuntimeError: before ``amp.initialize``.
    """
    options = _amp_state.opt_properties
    if options is None:
        raise RuntimeError(
            "amp.scale_loss needs model, optimizer = amp.initialize(model, optimizer, opt_level=…) first"
        )
    if not options.enabled:
        yield loss
        return
    all_optimizers = optimizers if isinstance(optimizers, list | tuple) else [optimizers]
    scaler = _amp_state.loss_scalers[loss_id]
    scale = scaler.loss_scale()
    if not options.master_weights and not scaler.dynamic and scale == 1.0:
        yield loss.float()
        return
    stashes = [optimizer._amp_stash for optimizer in all_optimizers]
    if not any(stash.params_have_scaled_gradients for stash in stashes):
        clear_flag(loss.device)
    if not delay_unscale:
        for stash in stashes:
            if not stash.params_have_scaled_gradients:
                stash.prepare_backward()
    yield loss.float() * scale
    for stash in stashes:
        stash.params_have_scaled_gradients = delay_unscale
    if delay_unscale:
        return
    scaler.clear_overflow_state()
    for stash in stashes:
        stash.finish_backward(scaler)
    if not delay_overflow_check and scaler.update_scale():
        for optimizer in all_optimizers:
            _skip_next_step(optimizer, scaler, loss_id)


def _skip_next_step(optimizer: Any, scaler: LossScaler, loss_id: int) -> None:
    stash = optimizer._amp_stash
    if stash.already_patched:
        return
    step = optimizer.step

    def skip(closure: Any = None) -> None:
        if closure is not None:
            raise RuntimeError("Currently, Amp does not support closure use with optimizers.")
        maybe_print(
            f"Gradient overflow.  Skipping step, loss scaler {loss_id} reducing loss scale to {scaler.loss_scale()}"
        )
        stash.forget_master_gradients()
        optimizer.step = step
        stash.already_patched = False

    replace_method(optimizer, "step", skip)
    stash.already_patched = True


@contextmanager
def disable_casts() -> Iterator[None]:
    """Nothing is cast inside, at level O1."""
    with amp.stopped():
        yield
