"""``torch.backends.cudnn``: programs ask whether it is there. Flags are set on PyTorch's own, where they do nothing."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch.backends.cudnn

VERSION = 90100
"""A cuDNN that has all that programs ask for."""


class _Cudnn(types.ModuleType):
    def is_available(self) -> bool:
        """The NPU's own operators stand for cuDNN's."""
        return True

    def version(self) -> int:
        """See ``VERSION``."""
        return VERSION

    def is_acceptable(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is on the device, in a dtype of cuDNN's."""
        return tensor.device.type == "npu" and tensor.dtype in (torch.float16, torch.bfloat16, torch.float32)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.backends.cudnn, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(torch.backends.cudnn, name, value)


sys.modules[__name__].__class__ = _Cudnn
