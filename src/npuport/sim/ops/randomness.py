"""Random draws inside kernels come from the default generator of the device that called.

That generator follows the CPU's unless it was seeded on its own (npuport.sim.rng), so that a run draws what the same
run on the CPU draws.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from npuport.sim.ops.registration import cpu_view, device_of_call


def bernoulli(like: Tensor, probability: float) -> Tensor:
    """A CPU tensor of ones (with `probability`) and zeros in the shape and dtype of `like`."""
    device = device_of_call()
    drawn = torch.empty_like(like, device=device).bernoulli_(probability)
    return drawn if device.type == "cpu" else cpu_view(drawn)


@contextlib.contextmanager
def device_generator() -> Iterator[Tensor]:
    """Let CPU code draw from the generator of the calling device; gives the state (uint8) from which it starts."""
    device = device_of_call()
    if device.type == "cpu":
        yield torch.get_rng_state()
        return
    npu = getattr(torch, device.type)
    torch.empty(0, device=device).bernoulli_(0.5)  # tells npuport.sim.rng that this device draws
    before, state = torch.get_rng_state(), npu.get_rng_state(device)
    torch.set_rng_state(state)
    try:
        yield state
    finally:
        after = torch.get_rng_state()
        torch.set_rng_state(before)
        npu.set_rng_state(after, device)
