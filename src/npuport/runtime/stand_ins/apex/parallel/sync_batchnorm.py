"""Batch norm with the statistics of all processes."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class SyncBatchNorm(nn.SyncBatchNorm):
    """torch's, for input [batch, …, channels] too (``channel_last``), and with a ReLU after it (``fuse_relu``)."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        channel_last: bool = False,
        fuse_relu: bool = False,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, process_group)
        self.channel_last = channel_last
        self.fuse_relu = fuse_relu

    def forward(self, input: Tensor, z: Tensor | None = None) -> Tensor:
        """Normalised ``input``, plus ``z`` where it is given."""
        last = self.channel_last and input.dim() > 2
        result: Tensor = super().forward(input.movedim(-1, 1) if last else input)
        result = result.movedim(1, -1) if last else result
        result = result if z is None else result + z
        return result.relu() if self.fuse_relu else result
