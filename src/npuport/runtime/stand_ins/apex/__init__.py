"""NVIDIA's ``apex`` on an NPU: mixed precision on torch.amp, its optimizers, norms and parallel layers on torch.

What a script sees is what Apex documents. Parts that are not here cannot be imported, and the error names them.
"""

from __future__ import annotations

from . import amp, fp16_utils, multi_tensor_apply, normalization, optimizers, parallel

__version__ = "0.1"  # as Apex calls itself

__all__ = ["amp", "fp16_utils", "multi_tensor_apply", "normalization", "optimizers", "parallel"]
