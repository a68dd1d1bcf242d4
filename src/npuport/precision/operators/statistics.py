"""Statistics of a recorded tensor: what tells two runs apart when the tensors themselves were not kept."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)  # not frozen, for a step makes a thousand, and that takes three times as long
class Statistics:
    """Statistics of a tensor's values; of a complex tensor its real and imaginary parts are the values, and a bool is
    0 or 1.

    - ``max``, ``min``, ``mean``: of the finite values; NaN where there is none.
    - ``norm``: the root of the sum of the squares of the finite values; 0 where there is none.
    - ``nans``, ``infs``: how many values are NaN, and how many infinite (of either sign).
    - ``checksum``: of the bits in the order in which they lie in memory (``checksums.py``); None where it was not asked
      for.

    Sums are made in float32 (float64 for float64), so that ``mean`` and ``norm`` have its rounding and, on a device,
    its range.
    """

    max: float
    min: float
    mean: float
    norm: float
    nans: int
    infs: int
    checksum: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is more than a checksum."""
        return not math.isnan(self.max) or self.nans + self.infs > 0

    def values(self) -> tuple[float | int | None, ...]:
        """Its fields in order, as a file has them."""
        return (self.max, self.min, self.mean, self.norm, self.nans, self.infs, self.checksum)
