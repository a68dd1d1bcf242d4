"""Random draws inside kernels come from the default generator of the device that called.

That generator follows the CPU's unless it was seeded on its own (npuport.sim.rng), so that a run draws what the same
run on the CPU draws.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
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


@contextlib.contextmanager
def replaying(state: Tensor) -> Iterator[None]:
    """Let CPU code draw from a saved generator state; the generator is left as it was found."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(state.clone())
        yield


_SEED_OF_STATE = 1 << 62  # marks the numbers that `seed_for` gives out
_MOST_STATES = 4096  # 5 kB each
_states: OrderedDict[int, Tensor] = OrderedDict()
_states_lock = threading.Lock()


def seed_for(state: Tensor) -> int:
    """A number that stands for a generator state, for operators that hand a seed to their backward operator."""
    digest = hashlib.blake2b(state.numpy().tobytes(), digest_size=7).digest()
    seed = _SEED_OF_STATE | int.from_bytes(digest, "big")
    with _states_lock:
        _states[seed] = state.clone()
        _states.move_to_end(seed)
        while len(_states) > _MOST_STATES:
            _states.popitem(last=False)
    return seed


def state_for(seed: int) -> Tensor | None:
    """The state behind a seed of `seed_for`; None for a seed from elsewhere.

    Raises RuntimeError when more than 4096 later draws have displaced it.
    """
    if seed < _SEED_OF_STATE:
        return None
    with _states_lock:
        if seed not in _states:
            raise RuntimeError(
                f"simulated NPU: the random draw behind seed {seed} is forgotten, {_MOST_STATES} later ones are kept. "
                "Next step: run the backward pass nearer to its forward pass."
            )
        return _states[seed]
