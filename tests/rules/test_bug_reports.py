"""Constructs behind public bug reports on Ascend: each gets a finding that says what the report's answer said.

The programs are written for this test, and each holds the construct only. Where a report's fix was disputed or the
cause is not in the source, it has no place here.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

import pytest

from npuport.findings import Finding
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.kinds import kind_by_name
from npuport.source.project import Project


@dataclass(frozen=True)
class Report:
    """A construct, the rule that must find it, and a word of the advice. ``url`` is where it was reported."""

    title: str
    url: str
    text: str
    code: str
    says: str
    file: str = "case.py"
    settings: Settings = field(default_factory=Settings)


REPORTS = (
    Report(
        "ray prepares a model with its own choice of backend",
        "https://github.com/ray-project/ray/issues/49024",
        """
        import ray.train.torch

        def train(model):
            return ray.train.torch.prepare_model(model)
        """,
        "NP713",
        "hccl",
    ),
    Report(
        "an option for the backend of DDP says nccl",
        "https://github.com/modelscope/ms-swift/issues/1020",
        """
        from transformers import TrainingArguments

        args = TrainingArguments(output_dir="out", ddp_backend="nccl")
        """,
        "NP301",
        "hccl",
    ),
    Report(
        "a scripted function of a model",
        "https://github.com/hiyouga/LlamaFactory/issues/3788",
        """
        import torch

        @torch.jit.script
        def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
            return x * angles.cos() + x * angles.sin()
        """,
        "NP463",
        "eager",
    ),
    Report(
        "bfloat16 on the first generation",
        "https://github.com/hiyouga/LlamaFactory/issues/4339",
        """
        import torch
        from transformers import AutoModel

        model = AutoModel.from_pretrained("some/model", torch_dtype=torch.bfloat16).to("cuda")
        """,
        "NP411",
        "float16",
        settings=Settings(chip="Ascend910A"),
    ),
    Report(
        "the copy of transfer_to_npu that came with an old toolkit",
        "https://github.com/Ascend/pytorch/issues/9",
        """
        import torch
        import torch_npu
        import transfer_to_npu
        """,
        "NP452",
        "torch_npu.contrib",
    ),
    Report(
        "a process group for a device given as a number",
        "https://github.com/vllm-project/speculators/pull/775",
        """
        import os
        import torch.distributed as dist

        local_rank = int(os.environ["LOCAL_RANK"])
        dist.init_process_group("nccl", device_id=local_rank)
        """,
        "NP313",
        "torch.device",
    ),
    Report(
        "flash-attn is imported without asking for the device",
        "https://github.com/InternLM/xtuner/pull/1099",
        """
        from flash_attn import flash_attn_func
        """,
        "NP701",
        "npu_fusion_attention",
    ),
    Report(
        "a backend for each device, of CUDA only",
        "https://github.com/InternLM/xtuner/pull/1099",
        """
        import torch.distributed as dist

        dist.init_process_group(backend="cpu:gloo,cuda:nccl")
        """,
        "NP301",
        "hccl",
    ),
    Report(
        "what is not the CPU is taken for CUDA",
        "https://github.com/Comfy-Org/ComfyUI/issues/6483",
        """
        import torch

        def total_memory(device):
            if device.type == "cpu":
                return 0
            elif device.type == "mps":
                return torch.mps.driver_allocated_memory()
            else:
                return torch.cuda.get_device_properties(device).total_memory
        """,
        "NP201",
        "npu",
    ),
    Report(
        "a launcher counts GPUs",
        "https://github.com/open-compass/opencompass/pull/1618",
        """
        import torch

        slots = torch.cuda.device_count()
        """,
        "NP201",
        "npu",
    ),
    Report(
        "a launcher chooses GPUs by variable",
        "https://github.com/open-compass/opencompass/pull/1618",
        """
        import os
        import subprocess

        def start(command, number):
            subprocess.run(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": str(number)}, check=True)
        """,
        "NP501",
        "ASCEND_RT_VISIBLE_DEVICES",
    ),
    Report(
        "a table of device types for autocast that ends in the CPU",
        "https://github.com/modelscope/FunASR/issues/3034",
        """
        import torch

        def run(model, x, device):
            kind = device if device in ("cuda", "xpu", "mps") else "cpu"
            with torch.autocast(device_type=kind, dtype=torch.bfloat16):
                return model(x)
        """,
        "NP102",
        "npu",
    ),
    Report(
        "rotary frequencies in float64",
        "https://github.com/huggingface/diffusers/issues/10428",
        """
        import torch

        def frequencies(positions: torch.Tensor, dim: int, theta: float = 10000.0):
            scale = torch.arange(0, dim, 2, dtype=torch.float64, device=positions.device) / dim
            return torch.outer(positions, 1.0 / theta**scale).cos().repeat_interleave(2, dim=1)
        """,
        "NP401",
        "float64",
    ),
    Report(
        "positions in float64 wherever it is not MPS",
        "https://github.com/meituan-longcat/LongCat-Image/issues/21",
        """
        import torch

        def frequencies(ids: torch.Tensor, dim: int):
            wide = torch.float32 if ids.device.type == "mps" else torch.float64
            return torch.arange(0, dim, 2, dtype=wide, device=ids.device) / dim
        """,
        "NP412",
        "float32",
    ),
    Report(
        "a patch embedding by Conv3d",
        "https://github.com/hiyouga/LlamaFactory/issues/6694",
        """
        from torch import nn

        class PatchEmbed(nn.Module):
            def __init__(self, channels: int, width: int) -> None:
                super().__init__()
                self.proj = nn.Conv3d(channels, width, kernel_size=(2, 14, 14), stride=(2, 14, 14), bias=False)
        """,
        "NP453",
        "bfloat16",
    ),
    Report(
        "a transposed convolution of volumes",
        "https://github.com/Ascend/pytorch/issues/52",
        """
        import torch

        up = torch.nn.ConvTranspose3d(16, 8, 2, stride=2).to("cuda")
        """,
        "NP453",
        "jit_compile",
    ),
    Report(
        "causal convolutions of a video model",
        "https://github.com/Comfy-Org/ComfyUI/issues/7499",
        """
        import torch.nn as nn
        import torch.nn.functional as F

        class CausalConv3d(nn.Conv3d):
            def forward(self, x):
                return super().forward(F.pad(x, (0, 0, 0, 0, 2, 0)))
        """,
        "NP453",
        "bfloat16",
    ),
    Report(
        "an encoder layer with a fast path",
        "https://github.com/Ascend/pytorch/issues/51",
        """
        from torch import nn

        layer = nn.TransformerEncoderLayer(d_model=64, nhead=4, batch_first=True)
        encoder = nn.TransformerEncoder(layer, num_layers=2)
        """,
        "NP454",
        "set_fastpath_enabled",
    ),
    Report(
        "operators of mmcv",
        "https://github.com/open-mmlab/mmcv/issues/2985",
        """
        from mmcv.ops import ball_query, DeformConv2dPack
        """,
        "NP702",
        "MMCV_WITH_OPS=1",
    ),
    Report(
        "a tensor without a device beside one on the device",
        "https://github.com/huggingface/diffusers/issues/13015",
        """
        import torch

        def length(mask: torch.Tensor, limit: int):
            positions = torch.arange(mask.shape[1], device=mask.device)
            active = torch.where(mask > 0, positions, torch.as_tensor(0))
            return torch.where(mask.any(1), active.amax(1) + 1, torch.as_tensor(limit))
        """,
        "NP457",
        "device=",
    ),
    Report(
        "halves of cos and sin for npu_rotary_mul",
        "https://github.com/huggingface/transformers/issues/38189",
        """
        import torch_npu

        def rotate(q, cos, sin):
            half = cos.chunk(2, dim=-1)[0]
            return torch_npu.npu_rotary_mul(q, half, sin.chunk(2, dim=-1)[0])
        """,
        "NP455",
        "4",
    ),
    Report(
        "a norm of the NPU whose weight may be None",
        "https://github.com/huggingface/diffusers/pull/14288",
        """
        import torch
        import torch_npu

        class Norm(torch.nn.Module):
            def __init__(self, size: int, affine: bool = True) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(size)) if affine else None

            def forward(self, x):
                return torch_npu.npu_rms_norm(x, self.weight, epsilon=1e-6)[0]
        """,
        "NP455",
        "None",
    ),
    Report(
        "a mask of one row for all queries",
        "https://github.com/huggingface/diffusers/pull/14288",
        """
        import torch_npu

        def attend(q, k, v, heads, padding):
            mask = padding[:, None, None, :]
            return torch_npu.npu_fusion_attention(q, k, v, heads, "BNSD", atten_mask=mask)[0]
        """,
        "NP455",
        "expand",
    ),
    Report(
        "a fused operator that an older torch_npu lacks",
        "https://github.com/Ascend/pytorch/issues/23",
        """
        import torch_npu

        def gate(x):
            return torch_npu.npu_geglu(x, dim=-1, approximate=1)[0]
        """,
        "NP456",
        "torch_npu",
        settings=Settings(torch_version="1.11.0"),
    ),
    Report(
        "an operator for others' use only",
        "https://github.com/Ascend/pytorch/issues/60",
        """
        import torch_npu

        def rotate(positions, q, k, size, table):
            torch_npu._npu_rotary_embedding(positions, q, k, size, table, True)
        """,
        "NP456",
        "version",
    ),
    Report(
        "the profiler of old",
        "https://github.com/Ascend/pytorch/issues/53",
        """
        import torch
        import torch_npu

        def measure(step):
            with torch.npu.profile("out"):
                step()
        """,
        "NP605",
        "torch_npu.profiler.profile",
    ),
    Report(
        "attention chosen by name",
        "https://github.com/hiyouga/LlamaFactory/issues/5674",
        """
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained("some/model", attn_implementation="flash_attention_2")
        """,
        "NP712",
        "sdpa",
    ),
    Report(
        "attention of xformers",
        "https://github.com/facebookresearch/xformers/issues/1237",
        """
        import xformers.ops as xops

        def attend(q, k, v):
            return xops.memory_efficient_attention(q, k, v)
        """,
        "NP701",
        "npu_fusion_attention",
    ),
    Report(
        "an accelerator of Lightning",
        "https://github.com/Ascend/pytorch/issues/151",
        """
        import lightning as L

        trainer = L.Trainer(accelerator="gpu", devices=8)
        """,
        "NP711",
        "accelerator",
    ),
    Report(
        "a question to the device before processes are forked",
        "https://github.com/hiyouga/LlamaFactory/issues/7447",
        """
        import torch
        from transformers import TrainingArguments

        half = torch.cuda.is_bf16_supported()

        def launch(count, worker):
            torch.multiprocessing.start_processes(worker, nprocs=count, start_method="fork")
        """,
        "NP312",
        "spawn",
    ),
)


REPORTED = 29  # reports whose cause is in the source

# Constructs of reports that have no finding yet, and why. The list may only become shorter.
NOT_FOUND = {
    "https://github.com/Ascend/pytorch/issues/40": "torch.isin: torch_npu 2.13.0 has an NPU kernel for it, so a finding"
    " would be wrong; which older releases fall back to the CPU is in no table",
    "https://github.com/modelscope/ms-swift/issues/1047": "torch.isin, as above",
}

# Programs without a device, and programs that name none: nothing is to be said of them.
SILENT = {
    "a regression in torch": """
        import torch
        from torch import nn

        torch.manual_seed(0)
        x = torch.linspace(-1, 1, 64).unsqueeze(1)
        y = 3 * x + 0.1 * torch.randn_like(x)
        model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(100):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        print(torch.where(y > 0, y, torch.tensor(0.0)).mean())
    """,
    "a regression by hand": """
        import numpy as np

        rng = np.random.default_rng(0)
        x = np.c_[np.ones(50), rng.normal(size=50)]
        y = x @ np.array([1.0, 2.0]) + rng.normal(size=50)
        weights = np.zeros(2)
        for _ in range(200):
            weights -= 0.01 * x.T @ (x @ weights - y)
        print(weights, np.where(y > 0, y, 0).sum())
    """,
    "a regression with a library": """
        from sklearn.linear_model import LinearRegression
        from sklearn.model_selection import train_test_split
        import pandas as pd

        table = pd.read_csv("prices.csv").dropna()
        train, test = train_test_split(table, test_size=0.2)
        model = LinearRegression().fit(train[["area"]], train["price"])
        print(model.score(test[["area"]], test["price"]))
    """,
    "a classifier on the accelerator": """
        import torch
        from torch import nn

        device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(32, 8, device=device), torch.randint(0, 2, (32,), device=device)
        for _ in range(10):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        torch.accelerator.synchronize()
    """,
    "processes on the accelerator": """
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        def main():
            index = int(os.environ["LOCAL_RANK"])
            torch.accelerator.set_device_index(index)
            device = torch.device(torch.accelerator.current_accelerator().type, index)
            dist.init_process_group(device_id=device)
            model = DistributedDataParallel(torch.nn.Linear(4, 4).to(device), device_ids=[index])
            scaler = torch.amp.GradScaler(device.type)
            model(torch.ones(2, 4, device=device)).sum().backward()
            dist.destroy_process_group()

        if __name__ == "__main__":
            main()
    """,
}


def findings(report: Report) -> list[Finding]:
    kind = kind_by_name(report.file) or FileKind.TEXT
    file = SourceFile(report.file, kind, textwrap.dedent(report.text).lstrip("\n"))
    return check_file(file, Project([file]), report.settings)


@pytest.mark.parametrize("report", REPORTS, ids=[report.title for report in REPORTS])
def test_the_construct_is_found_with_its_advice(report: Report) -> None:
    found = findings(report)
    said = [finding.message for finding in found if finding.code == report.code]
    assert said, f"no {report.code}, only {sorted({finding.code for finding in found})}"
    assert any(report.says in message for message in said), said


def test_no_more_reports_are_without_a_finding() -> None:
    assert len(NOT_FOUND) <= 2
    assert not NOT_FOUND.keys() & {report.url for report in REPORTS}
    assert len({report.url for report in REPORTS} | NOT_FOUND.keys()) == REPORTED


@pytest.mark.parametrize("title", SILENT)
@pytest.mark.parametrize("settings", [Settings(), Settings(target="agnostic")], ids=["npu", "agnostic"])
def test_nothing_is_said_of_programs_without_cuda(title: str, settings: Settings) -> None:
    assert findings(Report(title, "", SILENT[title], "", "", settings=settings)) == []


def test_one_word_on_the_convolutions_of_a_class_is_enough() -> None:
    text = """
        from torch import nn

        class First(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Conv3d(1, 1, 1)
                self.b = nn.Conv3d(1, 1, 1)

        class Second(nn.Conv3d):
            def twin(self):
                return nn.Conv3d(1, 1, 1)
    """
    found = [finding.location.line for finding in findings(Report("", "", text, "", "")) if finding.code == "NP453"]
    assert found == [6, 9]
