"""npuport moves PyTorch training from NVIDIA GPUs to Huawei Ascend NPUs.

PYTEST_DONT_REWRITE: npuport has a plugin for pytest, which warns of a plugin's package that was imported before it came
to rewrite it; processes on the simulated NPU import this one as they start.
"""

from __future__ import annotations

__version__ = "0.1.0"
