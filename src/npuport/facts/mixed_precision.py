"""Which dtype a chip trains in beside float32, and which gradient scaler that asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from npuport.facts.chips import Chip
from npuport.findings import Basis


@dataclass(frozen=True)
class MixedPrecision:
    """``scaler`` is what float16 needs and bfloat16 does not; ``why`` is the end of a sentence."""

    dtype: Literal["bfloat16", "float16"]
    scaler: str | None
    why: str
    basis: Basis


def mixed_precision(chip: Chip) -> MixedPrecision:
    """What the table of chips decides: bfloat16 where the chip computes it, else float16 with a scaler."""
    if chip.bf16:
        why = "bfloat16 has the range of float32, so that nothing underflows and no loss is scaled"
        return MixedPrecision("bfloat16", None, why, chip.basis)
    return MixedPrecision("float16", float16_scaler(chip), f"{chip.name} does not compute bfloat16", chip.basis)


def float16_scaler(chip: Chip) -> str:
    """The scaler for float16: torch_npu's asks the overflow flag, which is all that a saturating chip shows."""
    return "torch.npu.amp.GradScaler" if chip.overflow == "saturation" else "torch.amp.GradScaler"
