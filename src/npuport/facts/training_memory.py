"""Bytes that a training framework keeps of each parameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class ParameterBytes:
    """Mixed-precision training with Adam; ``optimizer`` counts the fp32 copy (where there is one) and both moments."""

    parameter: int
    gradient: int
    optimizer: int
    basis: Basis


@cache
def parameter_bytes(framework: str) -> ParameterBytes:
    """Of "megatron", "deepspeed" or "fsdp".

    Raises:
        KeyError: there is no such framework.
    """
    found = {row["name"]: row for row in rows("training_memory")}[framework]
    return ParameterBytes(int(found["parameter"]), int(found["gradient"]), int(found["optimizer"]), basis(found))
