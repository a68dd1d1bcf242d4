"""Target "agnostic": its output means the same on CUDA, runs on the CPU, and settles."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import read

from npuport.conversion.rounds import convert_files
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile

HERE = Path(__file__).parent
DOCUMENTS = sorted(HERE.glob("NP*.md"))
TORCHES = ("2.4.0", "2.5.1", "2.6.0", "2.13.0")


def converted(text: str, torch: str = "2.13.0", unsafe: bool = False) -> str:
    source = SourceFile("case.py", FileKind.PYTHON, text)
    done = convert_files([source], Settings(target="agnostic", torch_version=torch), unsafe=unsafe, jobs=1)
    assert not done.failures and not done.unexplained
    return done.files[0].text


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("torch", TORCHES)
def test_every_case_of_every_rule_settles_and_names_no_npu_alone(path: Path, torch: str) -> None:
    for case in read(path).cases:
        if case.kind != "before" or re.search("npu|hccl", "".join(case.files.values())):
            continue
        for text in (text for file, text in case.files.items() if file.endswith(".py")):
            once = converted(text, torch)
            ast.parse(once)
            assert converted(once, torch) == once
            once = re.sub(r'\{"cuda.*?\}', "", once)  # a table with an entry for each
            alone = re.sub(r'[("\']cuda[^)\n]*?[,|] *f?r?["\']npu|import torch_npu.*|_TYPE = .*', "", once)
            alone = re.sub(r"(?i)nccl.{0,4}[,:].*hccl|npu:.*npu:|choices=.*", "", alone)
            assert not re.search(r"(?i)torch\.npu|torch_npu|[\"']npu|hccl", alone), once


RUNS = '''
import contextlib, json, sys, types
import torch
from torch.overrides import TorchFunctionMode

called = []

def record(name, answer=None):
    def call(*args, **kwargs):
        called.append([name, [str(a) for a in args], sorted((k, str(v)) for k, v in kwargs.items())])
        return answer
    return call

# A machine with two CUDA devices, as far as the program can ask.
ANSWERS = {"is_available": True, "device_count": 2, "memory_allocated": 7, "max_memory_allocated": 9}
NAMES = {"current_device": "current_device_index", "set_device": "set_device_index"}
torch.cuda._is_in_bad_fork = lambda: False
for name in ("is_available", "device_count", "memory_allocated", "max_memory_allocated", "synchronize", "empty_cache",
             "reset_peak_memory_stats", "set_device", "current_device"):
    answer = ANSWERS.get(name, 0)
    setattr(torch.cuda, name, record(name, answer))
    setattr(torch.accelerator, NAMES.get(name, name), record(name, answer))
for name in ("manual_seed_all", "get_device_name"):
    setattr(torch.cuda, name, record(name, "GPU"))
torch.accelerator.current_accelerator = lambda *_: torch.device("cuda")
torch.cuda.amp.GradScaler = lambda **k: called.append(["scaler", "cuda", sorted(k)])
torch.amp.GradScaler = lambda d, **k: called.append(["scaler", d, sorted(k)])
torch.distributed.init_process_group = record("init_process_group")

class OnCuda(TorchFunctionMode):
    """Computes on the CPU, and remembers for each tensor the device that the program asked for."""

    def __init__(self):
        super().__init__()
        self.places = {}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function is torch.Tensor.device.__get__:
            return self.place(args[0])
        if function is torch.Tensor.is_cuda.__get__:
            return self.place(args[0]).type == "cuda"
        if function in (torch.Tensor.cuda, torch.Tensor.to):
            device = kwargs.pop("device", args[1] if len(args) > 1 else "cuda")
            return self.at(args[0].clone(), torch.device("cuda", device) if isinstance(device, int) else device)
        device = kwargs.pop("device", None)
        inputs = [a for a in args if isinstance(a, torch.Tensor)]
        result = function(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            self.at(result, device or (self.place(inputs[0]) if inputs else "cpu"))
        return result

    def at(self, tensor, device):
        self.places[id(tensor)] = tensor, torch.device(device)
        return tensor

    def place(self, tensor):
        return self.places[id(tensor)][1]

with OnCuda():
    namespace = {"__name__": "case"}
    exec(compile(sys.stdin.read(), "case", "exec"), namespace)
shown = [[n, str(v)] for n, v in sorted(namespace.items()) if n.startswith("shown")]
quiet = ("is_available",)  # how often a program asks is its own matter
print(json.dumps([[c for c in called if c[0] not in quiet], shown]))
'''

PROGRAM = """
import torch
import torch.distributed as dist

torch.cuda.manual_seed_all(3)
dist.init_process_group("nccl", rank=0, world_size=1)
torch.cuda.set_device(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
shown_device = device
shown_indexed = torch.device("cuda:1"), torch.device(f"cuda:{1}"), torch.device("cuda:%d" % 1), "cuda:{}".format(0)
x = torch.zeros(4, device=device)
y = torch.ones(2).cuda()
z = torch.ones(2).cuda(1, non_blocking=True)
shown_tensors = x.device, y.device, z.device, x.is_cuda, not y.is_cuda
shown_branches = [device.type == "cuda", device.type != "cuda", "cuda" in str(device), str(device).startswith("cuda")]
scaler = torch.cuda.amp.GradScaler(enabled=True)
with torch.cuda.amp.autocast(dtype=torch.float16):
    shown_product = (torch.ones(2, 2, device=device) @ torch.ones(2, 2, device=device)).dtype
torch.cuda.synchronize()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
shown_memory = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
shown_count = torch.cuda.device_count(), torch.cuda.get_device_name(0)
"""


def _run(program: str) -> list[object]:
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", RUNS]
    done = subprocess.run(command, input=program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    result: list[object] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_on_cuda_nothing_changes() -> None:
    after = converted(PROGRAM)
    assert "DEVICE_TYPE" in after and "torch.cuda" not in after
    assert _run(after) == _run(PROGRAM)
