"""What the simulated chip does not take: a warning once for each line of the program, or (strict) the device's error.

Only what is stated to be refused is raised, by CANN's documents and sources together or by torch_npu itself; what a
document merely does not list is a warning in both modes. An operator that falls back to the CPU is neither: torch_npu
itself warns of it.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import torch

    from npuport.facts.chips import Chip
    from npuport.facts.operator_dtypes import RefusedDtypes

Function = TypeVar("Function", bound=Callable[..., Any])

# Names of dtypes in CANN's errors (ge::DataType).
_CANN_NAMES = {
    "bfloat16": "DT_BFLOAT16", "bool": "DT_BOOL", "complex128": "DT_COMPLEX128", "complex32": "DT_COMPLEX32",
    "complex64": "DT_COMPLEX64", "float16": "DT_FLOAT16", "float32": "DT_FLOAT", "float64": "DT_DOUBLE",
    "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64", "int8": "DT_INT8", "uint16": "DT_UINT16",
    "uint32": "DT_UINT32", "uint64": "DT_UINT64", "uint8": "DT_UINT8",
}  # fmt: skip


_CASTS = ("npu::_npu_dtype_cast", "npu::npu_dtype_cast", "npu::_npu_dtype_cast_backward")


class ChipWarning(UserWarning):
    """The simulated chip would refuse a call, or nobody vouches that it takes it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An operator that met a dtype which the chip does not take, at one line of the program."""

    operator: str
    dtype: str
    certainty: str
    path: str
    line: int


met: Counter[Refused] = Counter()
"""What this process met, and how often."""


def install() -> None:
    """Have the kernels watch for what the chip does not take."""
    import torch

    library = torch.library.Library("npuport_sim", "IMPL")
    library.impl("refused", _on_refused, "CompositeExplicitAutograd")
    _kept_alive.append(library)
    entries = [entry for entries in _entries().values() for entry in entries]
    bits = [sum(1 << _scalar_types()[dtype] for dtype in entry.dtypes) for entry in entries]
    torch.ops.npuport_sim.refuse([entry.operator for entry in entries], bits, [entry.arguments for entry in entries])
    if not _chip().bf16:
        torch.ops.npuport_sim.refuse_casts("aten::copy_", 1 << _scalar_types()["bfloat16"], _CASTS[0])


_warned: set[tuple[str, int, str]] = set()
_kept_alive: list[Any] = []  # the dispatcher forgets kernels whose library is gone


def guarded(operator: str, function: Function) -> Function:
    """A reference kernel that first looks whether the chip takes the dtypes it is called with."""
    if _chip().bf16 and operator not in _entries():
        return function
    from torch import Tensor, dtype

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        from npuport.sim.ops.registration import device_of_call

        given = (*args, *kwargs.values())
        dtypes = {a.dtype for a in given if isinstance(a, Tensor) and a.numel()} | {
            a for a in given if type(a) is dtype
        }
        for one in dtypes:
            refused(operator, str(one).removeprefix("torch."), device_of_call().index or 0)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _on_refused(operator: str, dtype: int, device: int) -> None:
    refused(operator, _names()[dtype], device)


def refused(operator: str, dtype: str, device: int) -> None:
    """Warn of, or raise, the use of ``dtype`` with ``operator`` on the device, if the chip does not take it."""
    entry = _entry(operator, dtype)
    if entry is None:
        return
    from npuport.sim.call_site import call_site

    site = call_site()
    path, line = (site.path, site.line) if site is not None else ("<unknown>", 0)
    seen = Refused(operator, dtype, entry.certainty, path, line)
    met[seen] += 1
    if entry.certainty == "stated" and os.environ.get("NPUPORT_SIM_STRICT") == "1":
        raise RuntimeError(error_text(entry, dtype, device))
    if (path, line, dtype) not in _warned:  # an operator and its parts are one matter
        _warned.add((path, line, dtype))
        warnings.warn_explicit(_warning_text(entry, dtype), ChipWarning, path, line, registry={})


def error_text(entry: RefusedDtypes, dtype: str, device: int) -> str:
    """The error as a device words it.

    Seen on devices: "AclNN_Parameter_Error(EZ1001)" (vllm-ascend issue 6636), "EZ3002" (LLaMA-Factory issue 6694).
    """
    if entry.error:
        return entry.error
    name, process, now = entry.operator.removeprefix("aten::").partition(".")[0], os.getpid(), _now()
    where = f"[ERROR] {now} (PID:{process}, Device:{device}, RankID:{os.environ.get('RANK', '-1')})"
    if not entry.by.startswith("aclnn"):
        return (
            f"{name}: OPS function error: {entry.by}, error code is 500002\n"
            f"{where} ERR01100 OPS call acl api failed.\n"
            f"EZ3002: [PID: {process}] {now} Optype [{entry.by}] of Ops kernel [AIcoreEngine] is unsupported. Reason: "
            f"data type {_CANN_NAMES[dtype]} of input is not supported.\n"
            f"        No supported Ops kernel and engine are found for [{entry.by}1], optype [{entry.by}]."
        )
    accepts = "".join(f"{_CANN_NAMES[accepted]}," for accepted in entry.accepts)
    listed = f", should be in dtype support list [{accepts}]" if accepts else ""
    return (
        f"{name}: NPU function error: call {entry.by} failed, error code is 161002\n"
        f"{where} ERR00100 PTA call acl api failed.\n"
        f"[PID: {process}] {now} AclNN_Parameter_Error(EZ1001): Tensor {entry.parameter or 'self'} not implemented for "
        f"{_CANN_NAMES[dtype]}{listed}."
    )


def _now() -> str:
    return time.strftime("%Y-%m-%d-%H:%M:%S")


def _warning_text(entry: RefusedDtypes, dtype: str) -> str:
    chip = _chip().name
    if entry.certainty == "unlisted":
        return (
            f"npuport: {entry.operator} may not take {dtype} on {chip}: "
            + (f"CANN's document on {entry.by} does not list it" if entry.by else f"the chip has no {dtype}")
            + ". It was computed here all the same."
        )
    reason = f"torch_npu says: {entry.error}" if entry.error else f"CANN refuses it ({entry.by})"
    listed = f" and takes {', '.join(entry.accepts)}" if entry.accepts else ""
    return (
        f"npuport: {entry.operator} does not take {dtype} on {chip}: {reason}{listed}. It was computed here all the "
        "same; --strict raises the device's error."
    )


@functools.cache
def _chip() -> Chip:
    from npuport.facts.chips import DEFAULT_CHIP, chip

    found = chip(os.environ.get("NPUPORT_SIM_CHIP") or DEFAULT_CHIP)
    assert found is not None
    return found


@functools.cache
def _entries() -> dict[str, list[RefusedDtypes]]:
    from npuport.facts.operator_dtypes import refused_dtypes

    found: dict[str, list[RefusedDtypes]] = {}
    for entry in refused_dtypes(_chip().family):
        found.setdefault(entry.operator, []).append(entry)
    return found


def _entry(operator: str, dtype: str) -> RefusedDtypes | None:
    known = next((entry for entry in _entries().get(operator, ()) if dtype in entry.dtypes), None)
    if known is None and dtype == "bfloat16" and not _chip().bf16 and operator.startswith("npu::"):
        return _own_operator_without_bfloat16(operator)
    return known


def _own_operator_without_bfloat16(operator: str) -> RefusedDtypes:
    """torch_npu's own operators on a chip without bfloat16. Its cast was seen to fail (LLaMA-Factory issue 4165)."""
    from npuport.facts.operator_dtypes import RefusedDtypes

    certainty: Literal["stated", "unlisted"] = "stated" if operator in _CASTS else "unlisted"
    compiled = _chip().jit_compile_by_default and _chip().family == "910"  # measured: see operator_dtypes.json
    by = ("Cast" if compiled else "aclnnCast") if operator in _CASTS else ""
    accepts = tuple(name for name in _CANN_NAMES if name not in ("bfloat16", "complex32"))
    return RefusedDtypes(operator, ("bfloat16",), (), certainty, by, "self", accepts, "", _chip().basis)


@functools.cache
def _names() -> dict[int, str]:
    return {number: name for name, number in _scalar_types().items()}


@functools.cache
def _scalar_types() -> dict[str, int]:
    """dtype -> number of c10::ScalarType, which an operator's schema takes for a dtype."""
    import torch

    numbers: dict[str, int] = {}
    for name in _CANN_NAMES:
        if name == "complex32":
            continue  # no fact is about it, and making a tensor of it warns
        dtype: torch.dtype = getattr(torch, name)
        numbers[name] = int(torch.ops.npuport_sim.scalar_type(torch.empty(0, dtype=dtype)))
    return numbers
