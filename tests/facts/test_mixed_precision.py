"""Which dtype and which scaler a chip trains with, as the table of chips decides."""

from __future__ import annotations

import pytest

from npuport import facts
from npuport.facts.mixed_precision import float16_scaler, mixed_precision


@pytest.mark.parametrize(
    ("name", "dtype", "scaler"),
    [
        ("Ascend910A", "float16", "torch.npu.amp.GradScaler"),
        ("Ascend910B", "float16", "torch.npu.amp.GradScaler"),  # first generation in spite of its name
        ("910B1", "bfloat16", None),
        ("Ascend910B3", "bfloat16", None),
        ("Ascend310P3", "float16", "torch.npu.amp.GradScaler"),
        ("Ascend950", "bfloat16", None),
    ],
)
def test_what_a_chip_trains_with(name: str, dtype: str, scaler: str | None) -> None:
    chip = facts.chip(name)
    assert chip is not None
    advised = mixed_precision(chip)
    assert (advised.dtype, advised.scaler) == (dtype, scaler)
    assert advised.basis == chip.basis


def test_float16_without_the_flag_needs_torch_s_scaler_only() -> None:
    found = {name: facts.chip(name) for name in ("Ascend910B3", "Ascend310B1")}
    assert [float16_scaler(chip) for chip in found.values() if chip] == [
        "torch.amp.GradScaler",
        "torch.npu.amp.GradScaler",  # computes bfloat16, and saturates
    ]


def test_no_chip_without_bfloat16_shows_overflow_by_itself() -> None:
    """Why the advice for them is torch_npu's scaler alone."""
    assert {chip.overflow for chip in facts.all_chips() if not chip.bf16} == {"saturation"}
