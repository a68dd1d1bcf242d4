"""Where each aten operator runs on the npu device, as the dispatcher of torch_npu says."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Literal

from npuport.facts._tables import DATA
from npuport.findings import Basis

Status = Literal["npu", "composite", "cpu_fallback", "mixed", "none"]

_RUNS_ON = {"npu": "npu", "composite": "composite", "composite_explicit": "composite", "cpu_fallback": "cpu_fallback"}

# Kernels of op-plugin that are registered for the NPU but call the CPU's implementation in some or all cases.
_CPU_INSIDE = frozenset(
    {
        "_fused_adam_",  # before Ascend950 (measured: fused_operators.csv, torch.optim.Adam)
        "_masked_softmax",
        "_transform_bias_rescale_qkv",
        "adaptive_max_pool3d",
        "adaptive_max_pool3d_backward",
        "logit",
        "logit_backward",
        "unfold_backward",
    }
)


@dataclass(frozen=True)
class Operator:
    """An operator, or one overload of it.

    ``status`` is "npu" (an NPU kernel; of several overloads some may be compositions), "composite" (made of other
    operators, each with its own status), "cpu_fallback" (copied to the CPU and back, with a warning;
    TORCH_NPU_FALLBACK_CPU_DISABLE=1 makes that an error), "mixed" (some overloads fall back) or "none" (for other
    devices or layouts: sparse, MKL-DNN, quantised).
    """

    name: str  # such as "aten::lgamma" or "aten::add.Tensor"
    status: Status
    overloads: dict[str, str]
    """Overload without "aten::" -> npu, composite, composite_explicit, cpu_fallback or other."""
    cpu_inside: bool
    """op-plugin's source has a path through the CPU although a kernel is registered (read, not measured)."""
    basis: Basis


def operator_status(name: str) -> Operator | None:
    """The entry of an operator, with all its overloads, or of one overload; None if torch has no such operator.

    Accepts "aten::lgamma", "lgamma", "aten::lgamma.out" and the form of torch.ops, "aten.lgamma.default".
    """
    bare = name.removeprefix("aten::").removeprefix("aten.")
    base, dot, overload = bare.partition(".")
    group = _by_base().get(base, {})
    if dot:
        wanted = base if overload == "default" else bare
        group = {wanted: group[wanted]} if wanted in group else {}
        base = wanted
    if not group:
        return None
    return Operator(f"aten::{base}", _combined(group), group, base.partition(".")[0] in _CPU_INSIDE, _basis())


def all_operators() -> tuple[str, ...]:
    """The base names of all operators, such as "add"."""
    return tuple(_by_base())


def _combined(overloads: dict[str, str]) -> Status:
    found = {_RUNS_ON[status] for status in overloads.values() if status in _RUNS_ON}
    if not found:
        return "none"
    if "cpu_fallback" in found:
        return "cpu_fallback" if found == {"cpu_fallback"} else "mixed"
    return "npu" if "npu" in found else "composite"


@cache
def _document() -> dict[str, object]:
    document: dict[str, object] = json.loads((DATA / "operators.json").read_text(encoding="utf-8"))
    return document


def _basis() -> Basis:
    document = _document()
    return Basis(str(document["source"]), str(document["certainty"]), str(document["version"]))


@cache
def _by_base() -> dict[str, dict[str, str]]:
    by_base: dict[str, dict[str, str]] = defaultdict(dict)
    overloads = _document()["overloads"]
    assert isinstance(overloads, dict)
    for status, names in overloads.items():
        for name in names:
            by_base[name.partition(".")[0]][name] = status
    return dict(sorted(by_base.items()))
