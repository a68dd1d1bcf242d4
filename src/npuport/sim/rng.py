"""Random numbers on the simulated NPU: ``torch.manual_seed`` gives what the same program draws on the CPU.

The compiled kernels keep the generators (native/kernels/generators.h); here torch_npu's Python functions for seeds and
states are told about them. An explicit ``torch.Generator("npu")`` needs nothing: its seed and its offset say where it
stands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

_PLACE_BYTES = 16  # the state of a real NPU's generator: seed and offset
_seeding_everything = False  # inside torch.manual_seed or torch.seed, which seed the CPU and every device


def install() -> None:
    """Connect the default generator of every simulated device with the CPU's."""
    import torch
    import torch_npu
    from torch.utils._python_dispatch import _disable_current_modes
    from torch_npu.npu import random as npu_random

    kernels = torch.ops.npuport_sim

    @functools.cache
    def connect() -> None:
        torch_npu.npu._lazy_init()
        for generator in torch_npu.npu.default_generators:
            kernels.add_default_generator(generator)

    def index_of(device: Any) -> int:
        index = device if isinstance(device, int) else torch.device(device).index
        return torch_npu.npu.current_device() if index is None else index

    def get_rng_state(device: Any = "npu") -> torch.Tensor:
        connect()
        with _disable_current_modes():  # a generator is real, also among fake tensors
            return kernels.default_generator_state(index_of(device))

    def set_rng_state(new_state: torch.Tensor, device: Any = "npu") -> None:
        connect()
        with _disable_current_modes():
            if new_state.numel() == _PLACE_BYTES:
                kernels.place_default_generator(index_of(device), *new_state.view(torch.int64).tolist())
            else:
                kernels.set_default_generator_state(index_of(device), new_state)

    def place_of_default_generator(_tracker: Any = None) -> torch.Tensor:
        connect()
        with _disable_current_modes():
            place = kernels.default_generator_place(torch_npu.npu.current_device())
            return torch.tensor(place, dtype=torch.int64).view(torch.uint8).to("npu")

    def all_devices() -> Iterable[int]:
        return range(torch_npu.npu.device_count())

    def current_device() -> Iterable[int]:
        return [torch_npu.npu.current_device()]

    def telling(function: Callable[..., Any], devices: Callable[[], Iterable[int]]) -> Callable[..., Any]:
        @functools.wraps(function)
        def seed(*args: Any, **kwargs: Any) -> Any:
            with_cpu = _seeding_everything

            def tell() -> None:
                connect()
                for index in devices():
                    seed = torch_npu.npu.default_generators[index].initial_seed()
                    # torch.seed() draws all 64 bits, and the kernel's parameter is signed.
                    kernels.seed_default_generator(index, seed - (seed >> 63 << 64), with_cpu)

            result = function(*args, **kwargs)
            torch_npu.npu._lazy_call(tell)
            return result

        return seed

    replacements = {
        "get_rng_state": functools.wraps(npu_random.get_rng_state)(get_rng_state),
        "set_rng_state": functools.wraps(npu_random.set_rng_state)(set_rng_state),
        "manual_seed": telling(npu_random.manual_seed, current_device),
        "manual_seed_all": telling(npu_random.manual_seed_all, all_devices),
        "seed": telling(npu_random.seed, current_device),
        "seed_all": telling(npu_random.seed_all, all_devices),
    }
    for name, function in replacements.items():
        setattr(npu_random, name, function)
        setattr(torch_npu.npu, name, function)
    _install_places(place_of_default_generator)
    torch.random._seed_custom_device = _marking(torch.random._seed_custom_device)
    torch_npu.npu._lazy_call(connect)


def _install_places(place: Callable[[Any], Any]) -> None:
    """DTensor computes with the 16 bytes that a generator of a device has as its state: give it those."""
    from torch.distributed.tensor import _random

    whole_state = _random.OffsetBasedRNGTracker._get_device_state

    def get_device_state(self: Any) -> Any:
        return place(self) if self._device.type == "npu" else whole_state(self)

    _random.OffsetBasedRNGTracker._get_device_state = get_device_state


def _marking(function: Callable[[int], None]) -> Callable[[int], None]:
    @functools.wraps(function)
    def seed_custom_device(seed: int) -> None:
        global _seeding_everything  # noqa: PLW0603
        _seeding_everything = True
        try:
            function(seed)
        finally:
            _seeding_everything = False

    return seed_custom_device
