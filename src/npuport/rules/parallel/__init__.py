"""From one process that drives several devices to one process for each: DataParallel to DistributedDataParallel."""

from __future__ import annotations

from npuport.rules.base import Rule
from npuport.rules.parallel.rule import DataParallelModule

RULES: tuple[type[Rule], ...] = (DataParallelModule,)
