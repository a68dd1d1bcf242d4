"""npuport moves PyTorch training from NVIDIA GPUs to Huawei Ascend NPUs."""

from __future__ import annotations

__version__ = "0.1.0"
