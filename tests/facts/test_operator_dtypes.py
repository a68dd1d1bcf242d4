"""What users of real devices reported of refused dtypes, and what torch_npu's documents list, against the table."""

from __future__ import annotations

import pytest

from npuport.facts import all_chips, refused_dtypes
from npuport.facts.operator_dtypes import RefusedDtypes


def entry(family: str, operator: str, dtype: str) -> RefusedDtypes | None:
    found = [e for e in refused_dtypes(family) if e.operator == operator and dtype in e.dtypes]
    assert len(found) <= 1, "a dtype of an operator is told once for each family"
    return found[0] if found else None


# From the errors of real devices, with the list of dtypes that CANN names there.
REPORTED = [
    # https://github.com/huggingface/diffusers/issues/10428 (Ascend910B)
    (
        "A2",
        "aten::repeat_interleave.self_int",
        "float64",
        "aclnnRepeatInterleaveInt",  # and aclnnRepeatInterleaveIntWithDim: the table names one of them
        {"uint8", "int8", "int16", "int32", "int64", "bool", "float16", "float32", "bfloat16"},
    ),
]


@pytest.mark.parametrize(("family", "operator", "dtype", "function", "accepts"), REPORTED)
def test_what_devices_refused(family: str, operator: str, dtype: str, function: str, accepts: set[str]) -> None:
    told = entry(family, operator, dtype)
    assert told is not None and told.certainty == "stated"
    assert told.by == function and set(told.accepts) == accepts


@pytest.mark.parametrize("operator", ["aten::mm", "aten::bmm", "aten::addmm", "aten::convolution"])
@pytest.mark.parametrize("family", ["A2", "A3", "950"])
def test_products_take_what_training_uses_and_nothing_wider(family: str, operator: str) -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        assert entry(family, operator, dtype) is None
    for dtype in ("float64", "complex64", "int64"):
        told = entry(family, operator, dtype)
        assert told is not None and told.certainty == "stated" and told.parameter


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [
        ("aten::cumsum", "bool"),
        ("aten::expm1", "float64"),
        ("aten::tanh", "float64"),
        ("aten::_foreach_sqrt", "float64"),
    ],
)
def test_what_torch_npus_documents_call_verified_is_not_stated_to_be_refused(operator: str, dtype: str) -> None:
    told = entry("A2", operator, dtype)
    assert told is not None and told.certainty == "unlisted"


def test_only_chips_without_bfloat16_refuse_it_everywhere() -> None:
    for family in {chip.family for chip in all_chips()}:
        refused = sum("bfloat16" in e.dtypes and e.certainty == "stated" for e in refused_dtypes(family))
        without = any(chip.family == family and not chip.bf16 for chip in all_chips())
        assert refused > 300 if without else refused < 40, (family, refused)


def test_entries_are_whole() -> None:
    for family in ("A2", "A3", "950", "310P", "910"):
        assert refused_dtypes(family)
        for told in refused_dtypes(family):
            assert told.dtypes and told.arguments and told.certainty in ("stated", "unlisted")
            assert bool(told.by) != bool(told.error), told
            assert not set(told.accepts) & set(told.dtypes), told
    assert refused_dtypes("310B") == ()  # nobody measured it
