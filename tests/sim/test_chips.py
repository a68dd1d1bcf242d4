"""What a chip refuses: the errors a user meets."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from npuport.sim import SimOptions

Simulated = Callable[..., subprocess.CompletedProcess[str]]

SHARING = """
import signal, subprocess, sys, time
import torch

def take(gib, device="npu"):
    return torch.empty(gib << 30, dtype=torch.uint8, device=device)

if sys.argv[1] == "hold":
    held = take(20)
    print("held", flush=True)
    sys.stdin.read()

command = [sys.executable, __file__, "hold"]
other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert other.stdout.readline() == "held\\n"
free, total = torch.npu.mem_get_info()
print(total - free >= 20 << 30)
try:
    take(15)
except torch.OutOfMemoryError as error:
    print(str(error).partition(".If")[0])
take(25, "npu:1")
other.send_signal(signal.SIGKILL)
for attempt in range(100):  # the kernel takes a moment to end it
    if torch.npu.mem_get_info()[0] > 30 << 30:
        break
    time.sleep(0.05)
print(take(30).numel() >> 30)
"""


def test_processes_on_one_device_share_its_memory(simulated: Simulated, tmp_path: Path) -> None:
    script = tmp_path / "share.py"
    script.write_text(SHARING)
    options = SimOptions(chip="Ascend910B4", devices=2)
    done = simulated([script, "run"], options, NPUPORT_SIM_RUN=str(tmp_path))
    lines = done.stdout.splitlines()
    assert lines[0] == "True" and lines[2] == "30", done.stderr[-2000:]
    assert lines[1].startswith("NPU out of memory. Tried to allocate 15.00 GiB (NPU 0; 32.00 GiB total capacity;")
    assert "12.00 GiB free" in lines[1]


def test_renumbered_devices_keep_their_memory(simulated: Simulated, tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, torch\n"
        "held = torch.empty(20 << 30, dtype=torch.uint8, device='npu:1')\n"
        "ask = 'import torch; print(torch.npu.mem_get_info()[0] >> 30)'\n"
        "for visible in '01':\n"
        "    env = {**os.environ, 'ASCEND_RT_VISIBLE_DEVICES': visible}\n"
        "    subprocess.run([sys.executable, '-c', ask], env=env, check=True)\n"
    )
    options = SimOptions(chip="Ascend910B4", devices=2)
    done = simulated(["-c", code], options, NPUPORT_SIM_RUN=str(tmp_path))
    assert done.stdout.split() == ["32", "11"], done.stderr[-2000:]
