"""What ports changed for earlier releases and torch_npu takes as it is: the rows "(measured)" of edit_kinds.csv."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sim
if importlib.util.find_spec("torch_npu") is None:
    pytest.skip("needs torch_npu", allow_module_level=True)

_TABLE = Path(__file__).parents[1] / "rules" / "edit_kinds.csv"
# One expression or block for each; TORCH_NPU_FALLBACK_CPU_DISABLE makes an operator without a kernel raise.
_MEASURED = """
import json, socket, torch, torch_npu
from torch.nn import functional as F
import torch.distributed as dist

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]

def gradients(in_place):
    x = torch.linspace(-2, 2, 8, device="npu", requires_grad=True)
    torch.nn.SiLU(inplace=in_place)(x * 1).sum().backward()
    return x.grad.tolist()

found = {}
found["activation in place"] = gradients(True) == gradients(False)
x = torch.ones(2, 4, device="npu")
kept = F.dropout(torch.ones(4096, device="npu"), 0.5)
found["dropout"] = set(kept.unique().tolist()) == {0.0, 2.0}
found["products of matrices"] = torch.bmm(x[None], x.t()[None]).tolist() == [[[4.0, 4.0], [4.0, 4.0]]]
found["one-hot vectors"] = F.one_hot(torch.tensor([1, 0], device="npu"), 2).tolist() == [[0, 1], [1, 0]]
dist.init_process_group("hccl", init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
dist.all_reduce(x)
found["meeting of the processes"] = x.sum().item() == 8.0
parts = [torch.zeros_like(x)]
dist.gather(x, parts, dst=0)
found["gathering"] = parts[0].tolist() == x.tolist()
dist.destroy_process_group()
print(json.dumps(found))
"""


def test_edits_that_are_not_needed(on_cann: Any) -> None:
    with _TABLE.open(encoding="utf-8", newline="") as table:
        claimed = {row["kind"] for row in csv.DictReader(table) if row["shows"].endswith("(measured)")}
    found = on_cann(_MEASURED, kernels=True, TORCH_NPU_FALLBACK_CPU_DISABLE="1")
    assert found == dict.fromkeys(claimed, True)
