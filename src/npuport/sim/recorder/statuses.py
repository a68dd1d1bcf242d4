"""How an operator that ran here fares on the real chip, as far as ``npuport.facts`` knows, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from npuport.facts.chips import chip as chip_named
from npuport.facts.dtypes import dtype as dtype_named
from npuport.facts.operators import operator_status

Status = Literal["native", "composed", "untested", "partly_cpu", "cpu", "refused", "unknown"]

# Wrong first, unknown last: the order of reading.
ORDER: tuple[Status, ...] = ("refused", "cpu", "partly_cpu", "untested", "unknown", "composed", "native")

# They move or make values, which every dtype that can be stored allows.
_ANY_DTYPE = frozenset({"copy_", "_copy_from", "_to_copy", "clone", "zero_", "zeros", "ones", "fill_", "full", "empty"})


@dataclass(frozen=True)
class ChipStatus:
    """``reason`` is one sentence; ``source``, ``version`` and ``certainty`` are those of the fact."""

    status: Status
    reason: str
    source: str
    version: str
    certainty: str


def status_of(operator: str, dtypes: Iterable[str], chip: str, torch_npu: str) -> ChipStatus:
    """``operator``: ``namespace::name.overload``; ``dtypes``: of the tensors it was given, such as "bfloat16"."""
    found = _by_operator(operator, torch_npu)
    by_dtype = _by_dtype(operator, sorted(set(dtypes)), chip)
    if by_dtype is not None and ORDER.index(by_dtype.status) < ORDER.index(found.status):
        return by_dtype
    return found


def _by_operator(operator: str, torch_npu: str) -> ChipStatus:
    if operator.startswith("npu::"):
        return ChipStatus("native", "torch_npu's own operator", "registrations of torch_npu", torch_npu, "measured")
    # Without a name of an overload the facts would answer for all of them.
    fact = operator_status(operator if "." in operator else f"{operator}.default")
    if fact is None or fact.status == "none":
        return ChipStatus("unknown", "nothing is known of it on an NPU", "", "", "")
    source = (fact.basis.source, fact.basis.version, fact.basis.certainty)
    if fact.status in ("cpu_fallback", "mixed"):
        return ChipStatus("cpu", "has no NPU kernel: copied to the CPU, computed there, copied back", *source)
    if fact.cpu_inside:
        return ChipStatus(
            "partly_cpu", "its NPU kernel calls the CPU in some cases", "op-plugin", source[1], "inferred"
        )
    if fact.status == "composite":
        return ChipStatus("composed", "made of other operators", *source)
    return ChipStatus("native", "has an NPU kernel", *source)


def _by_dtype(operator: str, dtypes: list[str], chip: str) -> ChipStatus | None:
    """What is known against one of its dtypes."""
    known = chip_named(chip)
    for name in dtypes:
        if name == "bfloat16" and known is not None and not known.bf16:
            basis = known.basis
            return ChipStatus("refused", f"{known.name} has no bfloat16", basis.source, basis.version, basis.certainty)
        fact = dtype_named(name)
        if fact is None or fact.status == "full" or _base(operator) in _ANY_DTYPE:
            continue
        basis = fact.basis
        status: Status = "refused" if fact.status == "refused" else "untested"
        reason = f"{name}: {fact.note or 'few operators take it'}"
        return ChipStatus(status, reason, basis.source, basis.version, basis.certainty)
    return None


def _base(operator: str) -> str:
    return operator.partition("::")[2].partition(".")[0]
