"""Stage 1: what a source tree needs before it trains on an NPU."""

from __future__ import annotations

from npuport.analysis.effort import Effort, effort, effort_by_file
from npuport.analysis.fold import fold
from npuport.analysis.run import Analysis, analyze, select

__all__ = ["Analysis", "Effort", "analyze", "effort", "effort_by_file", "fold", "select"]
