"""Inputs for a call of which statistics were recorded only: random values in the recorded range."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from npuport.findings import say
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.execution import NotExecutableError
from npuport.precision.operators.statistics import Statistics


def generated(call: Call, step: Step) -> Step:
    """A step in which the inputs of a call have values: uniform between the recorded least and largest, whole numbers
    too; the same ones every time.

    Raises:
        NotExecutableError: statistics of an input are missing.
    """
    storages: dict[int, torch.Tensor] = {}
    random = torch.Generator().manual_seed(call.index)
    for ref in call.inputs:
        statistics = step.statistics_of(ref)
        if statistics is None:
            raise NotExecutableError(say("the values of a tensor were not recorded"))
        values = _values(ref, statistics, random)
        known = storages.get(ref.storage)
        if known is None or known.numel() < values.numel():
            storages[ref.storage] = values
    return replace(step, storages=storages, statistics={})


def _values(ref: TensorRef, statistics: Statistics, random: torch.Generator) -> torch.Tensor:
    """The bytes of a storage that is large enough for a tensor."""
    dtype = getattr(torch, ref.dtype)
    length = 1 + ref.offset + sum((size - 1) * stride for size, stride in zip(ref.shape, ref.stride, strict=True))
    low, high = (0.0 if math.isnan(one) else one for one in (statistics.min, statistics.max))
    unit = torch.rand(max(length, 0), generator=random, dtype=torch.float64)
    spread = high - low if dtype.is_floating_point or dtype.is_complex else high - low + 1
    values = low + unit * spread
    if not (dtype.is_floating_point or dtype.is_complex):
        values = values.floor().clamp(max=high)
    return values.to(dtype).view(torch.uint8)
