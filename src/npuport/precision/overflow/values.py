"""How many values of a recorded tensor are NaN or infinite, from the tensor or from its statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

from npuport.precision.operators.calls import Step, TensorRef

# Largest finite numbers; those of other dtypes are out of reach for a training.
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}


@dataclass(frozen=True)
class Content:
    """What a tensor holds. ``positive``: some of the infinite values are +inf (of statistics it is not known: False).
    ``low`` and ``high`` are of the finite values; NaN where there is none."""

    nans: int
    infs: int
    positive: bool
    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        return not self.nans and not self.infs

    @property
    def largest(self) -> float:
        """The largest finite magnitude; 0 where there is none."""
        return max((abs(one) for one in (self.low, self.high) if not math.isnan(one)), default=0.0)


CLEAN = Content(0, 0, False, 0.0, 0.0)


class Values:
    """The contents of the tensors of one step, each looked at once."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._known: dict[TensorRef, Content] = {}

    def of(self, ref: TensorRef) -> Content:
        """What a tensor holds; one of whole numbers, or one that was not recorded, counts as finite."""
        if not ref.dtype.startswith(("float", "bfloat", "complex")):
            return CLEAN
        found = self._known.get(ref)
        if found is None:
            found = self._known[ref] = self._look(ref)
        return found

    def is_positive(self, ref: TensorRef) -> bool:
        return self.of(ref).positive

    def _look(self, ref: TensorRef) -> Content:
        if self._step.has_tensors:
            return self._from_tensor(ref) if ref.storage in self._step.storages else CLEAN
        statistics = self._step.statistics_of(ref)
        if statistics is None:
            return CLEAN
        return Content(statistics.nans, statistics.infs, False, statistics.min, statistics.max)

    def _from_tensor(self, ref: TensorRef) -> Content:
        import torch

        tensor = self._step.tensor(ref)
        if not tensor.numel():
            return CLEAN
        values = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        if values.element_size() == 1:
            values = values.float()  # there is no kernel for 8 bits
        finite = torch.isfinite(values)
        if bool(finite.all()):
            low, high = values.aminmax()
            return Content(0, 0, False, float(low), float(high))
        nans = int(torch.isnan(values).sum())
        infs = values.numel() - int(finite.sum()) - nans
        kept = values[finite]
        low, high = (float(kept.min()), float(kept.max())) if kept.numel() else (float("nan"), float("nan"))
        return Content(nans, infs, bool(torch.isposinf(values).any()), low, high)
