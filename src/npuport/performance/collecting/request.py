"""What is to be profiled: the words of the command line, and the variable that hands them to each process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "NPUPORT_PROFILE"
DETAILS = ("stacks", "shapes", "memory")


@dataclass(frozen=True)
class Request:
    """The optimizer steps ``first`` to ``last`` (counted from 0), into ``folder``.

    ``level`` is that of torch_npu's profiler: 0 the kernels' times, 1 with types, shapes, AI Core units and
    collectives, 2 with AI CPU and cache too; PyTorch's own has none. ``ranks`` are all where empty.
    """

    folder: Path
    first: int = 10
    last: int = 11
    level: int = 1
    details: tuple[str, ...] = ("stacks", "shapes")
    ranks: tuple[int, ...] = ()

    @property
    def warm_up(self) -> int:
        """The step in which the profiler starts: starting takes time that no step is to have."""
        return max(self.first - 1, 0)

    def variables(self) -> dict[str, str]:
        """What tells the Python processes of a run."""
        return {VARIABLE: json.dumps({**asdict(self), "folder": str(self.folder.resolve())})}


def requested(environment: Mapping[str, str] = os.environ) -> Request:
    """What ``variables`` told."""
    given = json.loads(environment[VARIABLE])
    lists = {name: tuple(given[name]) for name in ("details", "ranks")}
    return Request(**{**given, **lists, "folder": Path(given["folder"])})
