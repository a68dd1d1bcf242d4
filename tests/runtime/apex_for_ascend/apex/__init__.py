"""What scripts converted for Apex for Ascend may ask for: its names and signatures, over npuport's stand-in.

Source: Ascend/apex, patch/npu.patch and src/apex/optimizers. NVIDIA's norms and parallel layers are left out, for their
kernels are not there.
"""

from . import amp, optimizers

__all__ = ["amp", "optimizers"]
