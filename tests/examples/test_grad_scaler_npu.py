"""A script with CUDA's gradient scaler and a fused optimizer, converted, trains in float16 on the simulated NPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_examples_npu import largest_difference, npuport

pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="torch_npu is not installed"),
]
FLOAT16 = 2e-3  # losses in float16 against those in float32, relative

IMPORTED = ("from torch.cuda.amp import GradScaler, autocast", "GradScaler", "autocast")
WRITTEN_OUT = ("import torch.cuda.amp", "torch.cuda.amp.GradScaler", "torch.cuda.amp.autocast")

TRAIN = """
import json
import torch
{imports}

device = "cuda" if torch.cuda.is_available() else "cpu"
mixed = device == "cuda"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
scaler = {scaler}(1024.0, growth_interval=2, enabled=mixed)
x, y = torch.randn(64, 8).to(device), torch.randn(64, 1).to(device)
losses = []
for step in range(5):
    if step == 3:
        state = dict(scaler.state_dict())
        state.pop("dynamic", None)  # as a GPU saves it
        scaler = {scaler}(enabled=mixed)
        scaler.load_state_dict(state)
    with {autocast}(enabled=mixed):
        loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
print(json.dumps({{"device": device, "losses": losses, "scale": scaler.get_scale()}}))
"""


def said(output: str) -> dict[str, Any]:
    """The line of JSON in what a script printed."""
    found: dict[str, Any] = json.loads(next(line for line in output.splitlines() if line.startswith('{"device"')))
    return found


@pytest.mark.parametrize("spelling", [IMPORTED, WRITTEN_OUT], ids=["imported", "written out"])
@pytest.mark.parametrize("target", ["npu", "import"])
def test_fused_optimizer_trains_with_the_converted_scaler(
    spelling: tuple[str, str, str], target: str, tmp_path: Path
) -> None:
    imports, scaler, autocast = spelling
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "train.py").write_text(TRAIN.format(imports=imports, scaler=scaler, autocast=autocast))
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, str(tmp_path / "cuda" / "train.py")]
    on_cpu = said(subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=True).stdout)

    port = tmp_path / "port"
    npuport("convert", str(tmp_path / "cuda"), "-o", str(port), "--target", target)
    on_npu = said(npuport("run", "--sim", "--", sys.executable, "train.py", folder=port))
    assert (on_cpu["device"], on_npu["device"]) == ("cpu", "npu")
    assert largest_difference(on_npu["losses"], on_cpu["losses"]) <= FLOAT16
    assert on_npu["losses"] != on_cpu["losses"], "this was not trained in float16"
    assert on_npu["scale"] == 4096.0, "five good steps double the scale twice, across a saved state"


@pytest.mark.parametrize(
    ("chip", "module"), [("Ascend910A", "torch_npu.npu.amp.grad_scaler"), ("Ascend910B3", "torch.amp.grad_scaler")]
)
def test_conversion_in_memory_knows_the_chip(chip: str, module: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\nprint('class of', type(torch.cuda.amp.GradScaler()).__module__)\n")
    assert f"class of {module}\n" in npuport("run", "--sim", "--chip", chip, "--", sys.executable, str(script))
