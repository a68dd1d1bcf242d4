"""How an operator that ran here fares on the real chip, as far as ``npuport.facts`` knows, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from npuport.facts.chips import chip as chip_named
from npuport.facts.dtypes import dtype as dtype_named
from npuport.facts.operator_dtypes import refused_dtypes
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


def status_of(
    operator: str, dtypes: Iterable[str], chip: str, torch_npu: str, met: Mapping[str, str] | None = None
) -> ChipStatus:
    """``operator``: ``namespace::name.overload``; ``dtypes``: of the tensors it was given, such as "bfloat16".

    ``met``: dtypes of which the simulated chip said in the run that it does not take them, with the certainty of that:
    "stated" or "unlisted".
    """
    found = _by_operator(operator, torch_npu)
    against = [refusal(operator, dtype, certainty, chip) for dtype, certainty in sorted((met or {}).items())]
    if not against and not refused_dtypes(_family(chip)):  # nobody measured the operators of this chip
        against = _by_dtype(operator, sorted(set(dtypes)), chip)
    return min([*against, found], key=lambda one: ORDER.index(one.status))


def refusal(operator: str, dtype: str, certainty: str, chip: str) -> ChipStatus:
    """What is known against a dtype that the simulated chip did not take."""
    entries = refused_dtypes(_family(chip))
    entry = next((one for one in entries if one.operator == operator and dtype in one.dtypes), None)
    status: Status = "refused" if certainty == "stated" else "untested"
    if entry is None:  # a rule for all operators of torch_npu's own: the chip has no bfloat16
        known = chip_named(chip)
        assert known is not None
        basis = known.basis
        return ChipStatus(status, f"{known.name} has no {dtype}", basis.source, basis.version, certainty)
    by = entry.by or "torch_npu"
    what = f"{by} refuses {dtype}" if certainty == "stated" else f"the document on {by} does not list {dtype}"
    takes = f"; it takes {', '.join(entry.accepts)}" if entry.accepts else ""
    return ChipStatus(status, what + takes, entry.basis.source, entry.basis.version, certainty)


def _family(chip: str) -> str:
    known = chip_named(chip)
    return known.family if known is not None else ""


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


def _by_dtype(operator: str, dtypes: list[str], chip: str) -> list[ChipStatus]:
    """What is known against its dtypes in general."""
    found = []
    known = chip_named(chip)
    for name in dtypes:
        if name == "bfloat16" and known is not None and not known.bf16:
            basis, reason = known.basis, f"{known.name} has no bfloat16"
            found.append(ChipStatus("refused", reason, basis.source, basis.version, basis.certainty))
        fact = dtype_named(name)
        if fact is None or fact.status == "full" or _base(operator) in _ANY_DTYPE:
            continue
        status: Status = "refused" if fact.status == "refused" else "untested"
        reason = f"{name}: {fact.note or 'few operators take it'}"
        found.append(ChipStatus(status, reason, fact.basis.source, fact.basis.version, fact.basis.certainty))
    return found


def _base(operator: str) -> str:
    return operator.partition("::")[2].partition(".")[0]
