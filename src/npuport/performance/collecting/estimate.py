"""How large a profile will be, within a factor: from the nodes that autograd made in a step.

PyTorch's compressed traces were measured on torch 2.13 (three models with AdamW and SGD on the CPU): bytes for each
node of a step differ by the optimizer, which launches operators for each parameter or for all at once. On an NPU, a
result at level 1 with stacks has 53 events of 219 bytes for each kernel, uncompressed (AlexNet, torch_npu 2.x); that 3
to 10 kernels follow from a node is a guess.
"""

from __future__ import annotations

from collections.abc import Collection

# (least, most) bytes for each node; what each detail adds.
_TRACE = (200, 1000)
_ADDED = {"stacks": (80, 860), "shapes": (70, 120), "memory": (50, 700)}
_KERNELS_OF_A_NODE = (3, 10)
_BYTES_OF_A_KERNEL = 53 * 219


def bytes_of_profile(nodes: int, steps: int, details: Collection[str], *, on_npu: bool) -> tuple[int, int]:
    """(least, most) bytes on the disk of a rank's profile of ``steps`` steps with ``nodes`` nodes each."""
    if on_npu:
        least, most = (_BYTES_OF_A_KERNEL * kernels for kernels in _KERNELS_OF_A_NODE)
    else:
        least = _TRACE[0] + sum(_ADDED[one][0] for one in details)
        most = _TRACE[1] + sum(_ADDED[one][1] for one in details)
    return least * nodes * steps, most * nodes * steps
