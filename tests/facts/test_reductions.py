from __future__ import annotations

from npuport.facts.reductions import reductions
from npuport.sim import SimOptions


def test_families_differ() -> None:
    a2, first = reductions("A2"), reductions("910")
    assert a2 and first
    assert a2.takes("sum", "bfloat16") and not a2.takes("prod", "bfloat16") and not first.takes("sum", "bfloat16")
    assert not a2.takes("sum", "float64") and not a2.takes("sum", "uint8")
    assert reductions("none") is None


def test_the_simulation_gets_masks_by_the_numbers_of_hccl() -> None:
    total, product, *_ = map(int, SimOptions(chip="Ascend910A").reductions.split())
    assert total == product == 0b111101  # all of int8, int32, float16, float32, int64; not int16
    total, product, largest, smallest = map(int, SimOptions(chip="Ascend910B3").reductions.split())
    assert total == largest == smallest == 0b100000111111 and product == 0b000000111101
    assert SimOptions(chip="Ascend310B4", memory_gib=8).reductions == ""
