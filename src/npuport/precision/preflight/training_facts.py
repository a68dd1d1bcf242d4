"""What a training computes with: the model, its first weights, the optimizer, random numbers, settings, batches."""

from __future__ import annotations

import math
import random
import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from npuport.precision.following import tensors_in, unseen
from npuport.precision.operators.execution import draws
from npuport.precision.operators.unrecorded import called, lengths_read_first
from npuport.precision.preflight.machine_facts import plain, short_hash

_ROWS = 512  # of a batch whose samples are told apart
_UNSEEDED = 67280421310721  # the seed that PyTorch's default generator has when nobody seeds it


def tensor_facts(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape, dtype, a hash of the values that depends on their order, and statistics of the finite ones.

    One tensor at a time is copied to the CPU. Of a sharded tensor this is the part of this process.
    """
    facts: dict[str, Any] = {"shape": list(tensor.shape), "dtype": _name(tensor.dtype)}
    try:
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        if local.layout is not torch.strided or local.is_quantized or local.device.type == "meta":
            return facts
        values = local.detach().to("cpu").contiguous()
        facts["hash"] = short_hash(_bytes(values))
        facts.update(_statistics(values))
    except (RuntimeError, NotImplementedError):
        facts.pop("hash", None)  # a tensor without values of its own: the facts above are what there is
    return facts


def _statistics(values: torch.Tensor) -> dict[str, Any]:
    if not values.numel() or values.is_complex():
        return {}
    numbers = values.double()
    finite = numbers[torch.isfinite(numbers)]
    found = {"not_finite": numbers.numel() - finite.numel()} if finite.numel() < numbers.numel() else {}
    if not finite.numel():
        return found
    return {
        **found,
        "max": float(finite.max()),
        "min": float(finite.min()),
        "mean": float(finite.mean()),
        "rms": float(finite.norm()) / math.sqrt(finite.numel()),
    }


def _bytes(values: torch.Tensor) -> memoryview:
    return memoryview(values.reshape(-1).view(torch.uint8).numpy())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@unseen()
def batch_facts(value: Any) -> dict[str, Any]:
    """The tensors of a batch that are data (no gradient flows into them), and a hash of each sample of all of them.

    Samples are told apart along the first dimension of the first tensor, which is taken to be the batch's.
    """
    tensors = [(name, one) for name, one in tensors_in(value) if not one.requires_grad and one.numel()]
    if not tensors:
        return {}
    facts: dict[str, Any] = {"tensors": {name: tensor_facts(one) for name, one in tensors}}
    length = tensors[0][1].shape[0] if tensors[0][1].dim() else 0
    if 1 < length <= _ROWS:
        along = [one.detach().to("cpu").contiguous() for _, one in tensors if one.dim() and one.shape[0] == length]
        facts["samples"] = [short_hash(b"".join(bytes(_bytes(one[at])) for one in along)) for at in range(length)]
    return facts


@unseen()
def model_facts(model: torch.nn.Module) -> dict[str, Any]:
    """Modules with class and settings, parameters and buffers with values, and where dropout may be."""
    return {
        "class": type(model).__name__,
        "modules": {path: f"{type(one).__name__}({one.extra_repr()})" for path, one in model.named_modules()},
        "parameters": {
            path: {**tensor_facts(one), "trained": one.requires_grad} for path, one in model.named_parameters()
        },
        "buffers": {path: tensor_facts(one) for path, one in model.named_buffers()},
        "dropout": dropout_of(model),
    }


def dropout_of(model: torch.nn.Module) -> dict[str, list[Any]]:
    """Probability and training flag of what drops something, by path: dropout modules, and attributes of others."""
    found = {}
    for path, module in model.named_modules():
        is_dropout = "dropout" in type(module).__name__.lower() or "droppath" in type(module).__name__.lower()
        for name, value in vars(module).items():
            named = "drop" in name.lower() or (is_dropout and name == "p")
            if named and isinstance(value, float) and 0 < value < 1:
                found[path if name == "p" else f"{path}.{name}".lstrip(".")] = [value, module.training]
    return found


def optimizer_facts(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Its class, and the options of each group of parameters; a group's parameters are counted only."""
    return {
        "class": type(optimizer).__name__,
        "groups": [
            {
                **plain({name: value for name, value in group.items() if name != "params"}),
                "tensors": len(group["params"]),
            }
            for group in optimizer.param_groups
        ],
    }


def random_state() -> dict[str, Any]:
    """Seeds, and hashes of the states of the generators as they are now."""
    seed = torch.initial_seed()
    state: dict[str, Any] = {
        "torch_seed": None if seed == _UNSEEDED else seed,
        "torch_state": short_hash(_bytes(torch.get_rng_state())),
        "python_state": short_hash(repr(random.getstate()).encode()),
    }
    if "numpy" in sys.modules:
        import numpy as np

        state["numpy_state"] = short_hash(repr(np.random.get_state(legacy=False)).encode())
    device = _accelerator()
    if device is not None:
        seed = int(device.initial_seed())
        state["device_seed"] = None if seed == _UNSEEDED else seed
    return state


def settings() -> dict[str, Any]:
    """Switches that decide how the same program computes."""
    found: dict[str, Any] = {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "default_dtype": _name(torch.get_default_dtype()),
        "threads": torch.get_num_threads(),
    }
    device = device_type()
    if device == "cuda":
        found["cuda.matmul.allow_tf32"] = torch.backends.cuda.matmul.allow_tf32
        found["cudnn.allow_tf32"] = torch.backends.cudnn.allow_tf32
    if device == "npu":
        found["npu.matmul.allow_hf32"] = getattr(torch.npu.matmul, "allow_hf32", None)
        found["npu.conv.allow_hf32"] = getattr(torch.npu.conv, "allow_hf32", None)
    if device is not None:
        found["device"] = device
        found["device_name"] = str(_accelerator().get_device_name())
    return found


def autocast() -> dict[str, str]:
    """The dtype of autocast by device, where it is on here."""
    devices = {"cpu", device_type() or "cpu"}
    return {device: _name(torch.get_autocast_dtype(device)) for device in devices if torch.is_autocast_enabled(device)}


def parallel() -> dict[str, Any]:
    """Processes of the job and how they talk."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return {"world_size": 1}
    return {"world_size": torch.distributed.get_world_size(), "backend": str(torch.distributed.get_backend())}


def device_type() -> str | None:
    """The accelerator in use, such as "npu"; None while nothing has used one."""
    device = _accelerator()
    return None if device is None else str(device.__name__).rpartition(".")[2]


def _accelerator() -> Any:
    for name in ("npu", "cuda"):
        module = getattr(torch, name, None)
        if module is not None and module.is_initialized():
            return module
    return None


class RandomCalls(TorchDispatchMode):
    """Counts the calls of operators that draw random numbers while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self._lengths = lengths_read_first()

    def __enter__(self) -> RandomCalls:
        self._lengths.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._lengths.__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if draws(func, args, kwargs or {}):
            name = str(func)
            self.counts[name] = self.counts.get(name, 0) + 1
        return called(func, args, kwargs or {})
