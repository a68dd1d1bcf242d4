"""The chips that can be simulated: the name CANN gives them and what they hold."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. ``memory_bytes`` is the memory on the board; a driver leaves about 3 GiB less to programs."""

    name: str  # what aclrtGetSocName answers and torch_npu expects, for example "Ascend910B3"
    memory_bytes: int
    cube_cores: int  # aicore count

    @property
    def memory_gib(self) -> int:
        """Memory in GiB (2^30 bytes)."""
        return self.memory_bytes // GIB


# Memory and AI cores: the device tables of the Kubernetes plug-ins that share these chips out (Project-HAMi/HAMi and
# volcano-sh/volcano, `vnpus` configuration: memoryCapacity in MiB, aiCore). Names: torch_npu,
# csrc/core/npu/NpuVariables.cpp.
CHIPS = {
    chip.name: chip
    for chip in (
        Chip("Ascend910A", 32 * GIB, 30),
        Chip("Ascend910B2", 64 * GIB, 24),
        Chip("Ascend910B3", 64 * GIB, 20),
        Chip("Ascend910B4", 32 * GIB, 20),
        Chip("Ascend910B4-1", 64 * GIB, 20),
        Chip("Ascend310P3", 24 * GIB, 8),
    )
}

DEFAULT_CHIP = "Ascend910B3"
