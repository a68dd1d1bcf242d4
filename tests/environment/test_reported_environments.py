"""Public bug reports whose cause is the machine: each, built as such a machine, ends in cause and fix."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from environment.machines import NNAL, SITE, TOOLKIT, TREE, Faked, trained_on
from environment.variants import GOOD, RUNNER, TWO_MACHINES, with_cann, with_chip, with_package
from npuport.environment.checks.registry import diagnose


@dataclass(frozen=True)
class Report:
    """Where it was reported, the machine, the check that must speak, and words of cause and fix."""

    url: str
    machine: Faked
    code: str
    cause: str
    fix: str

    def __str__(self) -> str:
        return self.url.removeprefix("https://github.com/")


def url(path: str) -> str:
    return f"https://github.com/{path}"


FIRST_910 = with_chip("910B", memory=32768)  # npu-smi of Atlas 800 (910A) servers prints 910B
OLD = with_package("torch_npu", "2.1.0.post4", machine=with_package("torch", "2.1.0", machine=with_cann("8.0.RC1")))

REPORTS = (
    Report(url("hiyouga/LlamaFactory/issues/4339"), with_chip("910A"), "ND112", "no bfloat16", "torch.float16"),
    Report(
        url("Ascend/pytorch/issues/9"),
        GOOD.having(
            {f"{TOOLKIT}/tools/ms_fmk_transplt/torch_npu_bridge/transfer_to_npu.py": ""},
            PYTHONPATH=f"{TOOLKIT}/tools/ms_fmk_transplt/torch_npu_bridge",
        ),
        "ND211",
        "has no attribute '_isinstance'",
        "from torch_npu.contrib import transfer_to_npu",
    ),
    Report(
        url("huggingface/transformers/issues/35785"),
        with_package("transformers", "4.48.0"),
        "ND315",
        "Trainer does not choose the NPU",
        "Install transformers 4.48.1",
    ),
    Report(
        url("hiyouga/LlamaFactory/issues/6694"),
        with_package("torch_npu", "2.5.1", machine=with_cann("8.0.RC3")),
        "ND304",
        "Conv3D with DT_BFLOAT16",
        "CANN 8.1.RC1",
    ),
    Report(
        url("open-mmlab/mmcv/issues/3216"),
        with_package("mmcv_lite", "2.1.0"),
        "ND313",
        "implementation for device npu:0 not found",
        "MMCV_WITH_OPS=1 FORCE_NPU=1",
    ),
    Report(
        url("Ascend/pytorch/issues/23"), OLD, "ND322", "no attribute npu_geglu", "upgrade CANN and torch_npu together"
    ),
    Report(
        url("Ascend/pytorch/issues/60"),
        with_package("torch_npu", "2.4.0.post2", machine=with_package("torch", "2.4.0", machine=with_cann("8.0.0"))),
        "ND322",
        "_npu_rotary_embedding",
        "upgrade CANN and torch_npu together",
    ),
    Report(
        url("hiyouga/LlamaFactory/issues/6072"),
        GOOD.having(None, HCCL_SOCKET_IFNAME="eth0"),
        "ND502",
        "one that does not exist ends with EI0001",
        "export HCCL_SOCKET_IFNAME=enp189s0f0",
    ),
    Report(
        url("deepspeedai/DeepSpeed/pull/4830"),
        with_package("deepspeed", "0.12.4").having(
            {RUNNER: "EXPORT_ENVS = ['MLFLOW', 'NCCL', 'PYTHON', 'MV2', 'UCX']\n"}
        ),
        "ND508",
        "HCCL_*, ASCEND_* and LD_LIBRARY_PATH stay behind",
        ".deepspeed_env",
    ),
    Report(
        url("Ascend/pytorch/issues/35"),
        with_package("torch_npu", "2.1.0.post3", machine=with_package("torch", "2.2.0")),
        "ND303",
        "undefined symbol",
        "pip install torch==2.1.0",
    ),
    Report(
        url("Ascend/pytorch/issues/99"),
        with_package("torch_npu", "2.7.1", machine=with_package("torch", "2.7.1", machine=with_cann("8.3.RC1"))).having(
            {f"{NNAL}/version.info": "    Ascend-cann-atb : 8.2.RC1\n"}
        ),
        "ND209",
        "libtbe_adapter.so end with an undefined symbol",
        "NNAL of one release",
    ),
    Report(
        url("vllm-project/vllm-ascend/issues/117"),
        GOOD.having(None, ATB_HOME_PATH="/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1"),
        "ND210",
        "atb::CreateOperation",
        "--cxx_abi=0",
    ),
    Report(
        url("sgl-project/sglang/issues/28628"),
        with_package("torch_npu", "2.8.0.post2", machine=with_package("torch", "2.12.0")),
        "ND303",
        "even import torch fails",
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0",
    ),
    Report(
        url("modelscope/FunASR/issues/3707"),
        with_package("torchaudio", "2.6.0", "torch==2.6.0", machine=with_package("torch", "2.6.0")),
        "ND323",
        "pip exchanged torch for another package's sake",
        "PIP_CONSTRAINT",
    ),
    Report(url("opendatalab/MinerU/issues/2258"), with_package("numpy", "2.2.6"), "ND308", "error 500001", "numpy<2"),
    Report(
        url("opendatalab/MinerU/issues/2258"), GOOD.without(f"{SITE}/sympy"), "ND309", "500001", "pip install sympy"
    ),
    Report(
        url("open-mmlab/mmcv/issues/3299"),
        with_package("mmcv_full", "1.7.0"),
        "ND315",
        "NpuRunMode::cur_mode",
        "Build MMCV 2.2 or later",
    ),
    Report(url("Ascend/pytorch/issues/37"), OLD, "ND315", "no attribute 'get_npu_backend'", "2.1.0.post5"),
    Report(
        url("Ascend/pytorch/issues/57"), with_chip("310B4"), "ND113", "Unsupported SOC version", "Install a torch_npu"
    ),
    Report(
        url("hiyouga/LlamaFactory/issues/5425"), with_chip("310P3"), "ND110", "aclnnCast", "Train on Atlas A2 or A3"
    ),
    Report(
        url("vllm-project/vllm-ascend/issues/9294"),
        FIRST_910.having(None, ACCELERATE_MIXED_PRECISION="bf16"),
        "ND111",
        "has no bfloat16",
        "Use float16",
    ),
    # From the reports of torch_npu's users, those about the machine.
    Report(
        url("LinZhekai/X-Oscar/issues/4"),
        GOOD.having(None, ASCEND_HOME_PATH=None, ASCEND_TOOLKIT_HOME=None),
        "ND202",
        "libhccl.so",
        "set_env.sh",
    ),
    Report(
        url("Ascend/pytorch/issues/7"),
        GOOD.without(f"{SITE}/decorator", f"{SITE}/cffi"),
        "ND309",
        "EH9999",
        "pip install decorator cffi",
    ),
    Report(
        url("Ascend/pytorch/issues/24"),
        GOOD.having({"/src/torch_npu/__init__.py": "", "/src/torch_npu/csrc": TREE}).running(folder="/src"),
        "ND319",
        "No module named torch_npu._C",
        "another directory",
    ),
    Report(
        url("triton-lang/triton-ascend/issues/328"),
        with_package("torch_npu", "2.7.1", machine=with_package("torch", "2.7.1", machine=with_cann("9.0.0"))),
        "ND304",
        "MsprofSysCycleTime",
        "torch-npu==2.7.1.post4",
    ),
    Report(
        url("vllm-project/vllm-ascend/issues/2210"),
        with_package("numpy", "2.0.2"),
        "ND308",
        "SetPrecisionMode",
        "numpy<2",
    ),
    Report(
        url("hiyouga/LlamaFactory/issues/7986"),
        with_package("torch_npu", "2.5.1", machine=with_cann("8.0.RC3")),
        "ND304",
        "torch_npu 2.5.1 is paired with CANN 8.1.RC1",
        "Install CANN 8.1.RC1",
    ),
    Report(
        url("huggingface/transformers/issues/38468"),
        with_package(
            "transformers", "4.52.3", machine=with_package("torch_npu", "2.4.0", machine=with_package("torch", "2.4.0"))
        ),
        "ND315",
        "Torch not compiled with CUDA enabled",
        "torch 2.5.1 or later",
    ),
    Report(
        url("Ascend/pytorch/issues/54"),
        GOOD.having(None, HCCL_EXEC_TIMEOUT="0"),
        "ND405",
        "HCCL_EVENT_TIMEOUT is 1868 s",
        "HCCL_EVENT_TIMEOUT=0",
    ),
    Report(
        url("Ascend/pytorch/issues/48"),
        GOOD.having(None, HCCL_EXEC_TIMEOUT="17340"),
        "ND405",
        "HCCL_EVENT_TIMEOUT is 1868 s, HCCL_EXEC_TIMEOUT 17340 s",
        "HCCL_EVENT_TIMEOUT=17372",
    ),
    Report(url("hiyouga/LlamaFactory/issues/8514"), with_chip("910A"), "ND112", "overflow saturates", "torch.float16"),
    Report(
        url("vllm-project/vllm-ascend/pull/5855"),
        GOOD.having(None, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True,garbage_collection_threshold:0.8"),
        "ND404",
        "garbage_collection_threshold cannot be combined",
        "expandable_segments:True",
    ),
    Report(
        url("vllm-project/vllm-ascend/issues/486"),
        GOOD.having(None, HCCL_CONNECT_TIMEOUT="60", **TWO_MACHINES),
        "ND403",
        "120 – 7200",
        "unset HCCL_CONNECT_TIMEOUT",
    ),
)


@pytest.mark.parametrize("report", REPORTS, ids=str)
def test_a_report_ends_in_cause_and_fix(report: Report, tmp_path: Path) -> None:
    found = [one for one in diagnose(report.machine.environment(tmp_path)) if one.code == report.code]
    causes = [f"{one.seen} {one.why}" for one in found]
    assert any(report.cause in cause for cause in causes), causes
    fixes = [" ".join([str(one.fix), *one.commands]) for one in found]
    assert any(report.fix in fix for fix in fixes), fixes


def test_a_good_machine_has_none_of_them(tmp_path: Path) -> None:
    assert diagnose(trained_on().environment(tmp_path)) == []


def test_no_report_about_the_machine_is_left_out() -> None:
    """NPUPORT_BUG_REPORTS: a table of public reports with the columns url and env_doctor."""
    table = os.environ.get("NPUPORT_BUG_REPORTS")
    if table is None:
        pytest.skip("set NPUPORT_BUG_REPORTS to a table of reports")
    with Path(table).open(encoding="utf-8", newline="") as lines:
        wanted = {row["url"] for row in csv.DictReader(lines) if row["env_doctor"] == "y"}
    in_extensions = {url("DeepLink-org/dlinfer/issues/183")}  # test_extensions.py: its machine needs a compiler
    assert wanted <= {report.url for report in REPORTS} | in_extensions
