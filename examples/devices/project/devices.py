"""Which device to use: everything a project has gathered over the years."""

import torch
import torch.cuda as tc
from torch import cuda

from . import DEFAULT_DEVICE, DEVICE_PREFIX, FALLBACK_DEVICE

backend = getattr(torch, "cuda")


def spellings(index):
    """The same GPU, spelt in every way this project has seen."""
    return {
        "f-string": f"cuda:{index}",
        "percent": "cuda:%d" % index,
        "format": "cuda:{}".format(index),
        "plus": "cuda:" + str(index),
        "prefix": DEVICE_PREFIX + str(index),
        "object": torch.device("cuda", index),
        "object of string": torch.device(f"cuda:{index}"),
        "object of constant": torch.device(DEFAULT_DEVICE, index),
        "keywords": torch.device(type="cuda", index=index),
    }


def check_spellings(index):
    devices = {torch.device(spelling) for spelling in spellings(index).values()}
    assert len(devices) == 1, f"not all the same device: {devices}"
    return devices.pop()


def choose_device(wanted, index=0):
    """The wanted device, with an index if it is a GPU, or the CPU where there is no GPU."""
    if not str(wanted).startswith("cuda") or not cuda.is_available():
        return torch.device(FALLBACK_DEVICE)
    device = torch.device(wanted)
    return device if device.index is not None else check_spellings(index)


def select(device):
    """Make it the current GPU; integers and objects are both fine."""
    if device.type == "cuda":
        tc.set_device(device.index)
        with tc.device(device.index):
            assert tc.current_device() == device.index
        assert torch.zeros(1).cuda(device.index).get_device() == device.index
        assert torch.zeros(1).to(device.index).is_cuda


def describe(device):
    if device.type != "cuda":
        return "CPU"
    properties = backend.get_device_properties(device)
    return f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"


def seed_everything(seed):
    torch.manual_seed(seed)
    cuda.manual_seed(seed)
    tc.manual_seed_all(seed)


def peak_memory_mib():
    return backend.max_memory_allocated() / 2**20 if cuda.is_available() else 0.0
