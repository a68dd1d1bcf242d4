"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

TRAIN = 'import torch\n\nmodel = torch.nn.Linear(2, 2).to("cuda")\n'
CONVERTED = 'import torch\n\nmodel = torch.nn.Linear(2, 2).to("npu")\n'


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Npuport = Callable[..., Result]
