"""Which chip is simulated; what is known about chips is in ``npuport.facts.chips``."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_CHIP = "Ascend910B3"
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class SimOptions:
    """A machine with ``devices`` chips of one kind.

    ``memory_gib``: memory of each chip in GiB, in place of what is known about it; a chip of unknown memory needs it.
    ``strict``: what the chip is known to refuse raises the error of a real device; otherwise it is computed, with a
    warning once for each line of the program.
    """

    chip: str = DEFAULT_CHIP
    devices: int = 1
    memory_gib: int | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        from npuport.facts.chips import all_chips, chip

        known = chip(self.chip)
        if known is None:
            raise ValueError(f"unknown chip {self.chip!r}; known are {', '.join(each.name for each in all_chips())}")
        object.__setattr__(self, "chip", known.name)
        if not 1 <= self.devices <= 64:
            raise ValueError(f"the number of devices must lie between 1 and 64, not {self.devices}")
        memory = self.memory_gib or known.memory_gib
        if memory is None or memory <= 0:
            raise ValueError(
                f"how much memory {known.name} has is not known here; say it with memory_gib (--memory), for example 64"
            )
        object.__setattr__(self, "memory_gib", memory)

    @property
    def keeps_inf(self) -> bool:
        """Whether infinities and NaN stay in the results of the chip; otherwise it saturates."""
        from npuport.facts.chips import chip

        known = chip(self.chip)
        return known is None or known.overflow != "saturation"

    @property
    def cube_cores(self) -> int | None:
        """AI cores of the chip, None where unknown."""
        from npuport.facts.chips import chip

        known = chip(self.chip)
        return known.ai_cores if known else None

    @property
    def reductions(self) -> str:
        """What HCCL reduces on the chip: for sum, prod, max and min a mask of HCCL's numbers of dtypes; "" unknown."""
        from npuport.facts.chips import chip
        from npuport.facts.reductions import reductions

        known = chip(self.chip)
        taken = reductions(known.family) if known else None
        if taken is None:
            return ""
        return " ".join(
            str(sum(1 << number for number, dtype in enumerate(_HCCL_DTYPES) if taken.takes(operation, dtype)))
            for operation in ("sum", "prod", "max", "min")
        )


# torch_npu/include/third_party/hccl/inc/hccl/hccl_types.h, HcclDataType from 0
_HCCL_DTYPES = (
    "int8",
    "int16",
    "int32",
    "float16",
    "float32",
    "int64",
    "uint64",
    "uint8",
    "uint16",
    "uint32",
    "float64",
    "bfloat16",
)
