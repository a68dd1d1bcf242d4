"""For each check of packages, variables and communication, machines that have what it looks for."""

from __future__ import annotations

from environment.machines import SITE, TREE, Link, distribution
from environment.variants import (
    GOOD,
    ONE_SERVER,
    RUNNER,
    TWO_MACHINES,
    Case,
    rank_table,
    with_cann,
    with_chip,
    with_package,
    with_rank_table,
)

LISTENING = "  sl  local_address rem_address   st\n   0: 0100007F:7148 00000000:0000 0A 0\n"

PACKAGES = (
    Case("ND301", GOOD.without(f"{SITE}/torch-"), "torch is not installed", "pip install torch==2.5.1"),
    Case("ND302", GOOD.without(f"{SITE}/torch_npu-"), "without torch_npu", "pip install torch-npu==2.5.1.post1"),
    Case(
        "ND302",
        with_package("torch", "2.5.0", machine=GOOD.without(f"{SITE}/torch_npu-")),
        "no torch_npu for it",
        "Choose a torch",
    ),
    Case(
        "ND303",
        with_package("torch", "2.12.0"),
        "torch 2.12.0 is installed, but torch_npu 2.5.1.post1 is built for torch 2.5.1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0",
    ),
    Case(
        "ND304",
        with_cann("8.1.RC1"),
        "torch_npu 2.5.1.post1 is paired with CANN 8.2.RC1; CANN 8.1.RC1 is in use",
        "pip install torch-npu==2.5.1",
    ),
    Case("ND304", with_cann("9.1.0"), "CANN 9.1.0 is in use", "which CANN 9.1.0 serves"),
    Case(
        "ND305", with_package("torch_npu", "2.5.1.dev20250320"), "2.5.1.dev20250320 is not among", "2.5.1.post1, 2.5.1"
    ),
    Case(
        "ND306",
        GOOD.having({f"{SITE}/torch/version.py": "__version__ = '2.5.1+cu124'\ncuda: Optional[str] = '12.4'\n"}),
        "built for CUDA 12.4",
        "whl/cpu",
    ),
    Case(
        "ND307", GOOD.running(python="3.12.3"), "built for Python 3.9, 3.10, 3.11; this is Python 3.12", "python=3.11"
    ),
    Case("ND308", with_package("numpy", "2.0.2"), "NumPy 2.0.2 is installed beside CANN 8.2.RC1", "numpy<2"),
    Case(
        "ND309", GOOD.without(f"{SITE}/decorator", f"{SITE}/sympy"), "decorator, sympy", "pip install decorator sympy"
    ),
    Case(
        "ND310",
        with_package("torchvision", "0.19.0", "numpy", "torch==2.4.0"),
        "torchvision 0.19.0 wants torch==2.4.0",
        "torchvision==0.20.1",
    ),
    Case(
        "ND311",
        GOOD.having(distribution("torch", "2.1.0", site="/usr/lib/python3.10")),
        "torch is installed more than once",
        "pip uninstall -y torch",
    ),
    Case(
        "ND311",
        GOOD.having({f"{SITE}/torch/version.py": "__version__ = '2.4.0'\n"}),
        "pip's record says torch 2.5.1, the files are torch 2.4.0",
        "pip uninstall",
    ),
    Case("ND313", with_package("mmcv_lite", "2.1.0"), "mmcv-lite", "FORCE_NPU=1"),
    Case("ND314", with_package("flash_attn", "2.7.4"), "flash-attn 2.7.4", "npu_fusion_attention"),
    Case("ND315", with_package("transformers", "4.48.0"), "Trainer does not choose the NPU", "4.48.1"),
    Case(
        "ND315",
        with_package("transformers", "4.51.0", machine=with_package("torch", "2.1.0")),
        "Torch not compiled with CUDA enabled",
        "torch 2.5.1",
    ),
    Case(
        "ND316",
        with_package("torch_npu", "2.5.1.post1", tag="cp310-cp310-manylinux_2_28_aarch64").running(glibc="2.17"),
        "built for glibc 2.28; this system has 2.17",
        "newer system",
    ),
    Case(
        "ND316",
        with_package("torch_npu", "2.5.1.post1", tag="cp310-cp310-manylinux_2_28_x86_64"),
        "is built for x86_64; this machine is aarch64",
        "--force-reinstall",
    ),
    Case(
        "ND317",
        GOOD.having({f"{SITE}/{name}.libs/libgomp-804f19d4.so.1.0.0": "" for name in ("torch", "scikit_learn")}),
        "2 packages bring a libgomp",
        f"export LD_PRELOAD={SITE}/torch.libs/libgomp",
    ),
    Case(
        "ND318",
        GOOD.having(
            {
                "/home/ada/venv/conda-meta/history": "",
                "/home/ada/venv/lib/libstdc++.so.6.0.26": "",
                "/usr/lib/aarch64-linux-gnu/libstdc++.so.6.0.30": "",
            }
        ),
        "conda's libstdc++.so.6.0.26 is older",
        "libstdcxx-ng",
    ),
    Case(
        "ND319",
        GOOD.having({"/src/pytorch/torch_npu/__init__.py": "", "/src/pytorch/torch_npu/csrc": TREE}).running(
            folder="/src/pytorch"
        ),
        "/src/pytorch/torch_npu is a folder of sources",
        "another directory",
    ),
    Case("ND320", GOOD.running(python="3.11.9"), "no _C for Python 3.11.9", "--force-reinstall"),
    Case("ND321", GOOD.having(None, TORCH_DEVICE_BACKEND_AUTOLOAD="0"), "AUTOLOAD is 0", "import torch_npu"),
    Case(
        "ND326",
        GOOD.having(None, VIRTUAL_ENV="/home/ada/other"),
        "The active environment is /home/ada/other; this looked at /home/ada/venv",
        "--python /home/ada/other/bin/python",
    ),
    Case(
        "ND322",
        with_package("torch_npu", "2.5.1", machine=with_cann("8.1.RC1")),
        "2.5.1.post1, for CANN 8.2.RC1",
        "upgrade CANN and torch_npu together",
    ),
    Case(
        "ND323",
        with_package("vllm", "0.8.5", "torch==2.6.0", machine=with_package("torch", "2.6.0")),
        "vllm 0.8.5 wants torch==2.6.0, which torch_npu 2.5.1.post1 does not serve",
        "--no-deps vllm",
    ),
    Case("ND324", with_package("apex", "0.1"), "apex 0.1 is not Apex for Ascend", "torch.amp"),
)

VARIABLES = (
    Case(
        "ND401",
        GOOD.having(None, NCCL_SOCKET_IFNAME="eth0"),
        "on an NPU HCCL_SOCKET_IFNAME is read",
        "HCCL_SOCKET_IFNAME",
    ),
    Case(
        "ND401",
        GOOD.having(None, CUDA_VISIBLE_DEVICES="0,1"),
        "CUDA_VISIBLE_DEVICES is set",
        "ASCEND_RT_VISIBLE_DEVICES=0,1",
    ),
    Case(
        "ND402",
        GOOD.having(None, HCCL_CONECT_TIMEOUT="600"),
        "did you mean HCCL_CONNECT_TIMEOUT",
        "HCCL_CONNECT_TIMEOUT=600",
    ),
    Case(
        "ND403",
        GOOD.having(None, HCCL_CONNECT_TIMEOUT="60"),
        "HCCL_CONNECT_TIMEOUT is 60; it takes 120 – 7200",
        "unset",
    ),
    Case("ND403", GOOD.having(None, TASK_QUEUE_ENABLE="3"), "it takes 0, 1, 2", "the default is 1"),
    Case(
        "ND404",
        GOOD.having(None, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True,max_split_size_mb:128"),
        "combines expandable_segments:True with max_split_size_mb",
        "=expandable_segments:True",
    ),
    Case(
        "ND404",
        GOOD.having(None, PYTORCH_NPU_ALLOC_CONF="max_split_size_mb:20"),
        "max_split_size_mb:20",
        "more than 20",
    ),
    Case(
        "ND404",
        GOOD.having(None, PYTORCH_NPU_ALLOC_CONF="expandable_segments:True", PYTORCH_ALLOC_CONF="x:1"),
        "Both",
        "Unset",
    ),
    Case(
        "ND405",
        GOOD.having(None, HCCL_CONNECT_TIMEOUT="3600", HCCL_EXEC_TIMEOUT="1800"),
        "3600 s",
        "HCCL_EXEC_TIMEOUT=5400",
    ),
    Case(
        "ND405", GOOD.having(None, HCCL_EVENT_TIMEOUT="1868", HCCL_EXEC_TIMEOUT="0"), "for ever", "HCCL_EVENT_TIMEOUT=0"
    ),
    Case("ND406", GOOD.having(None, HCCL_INTRA_PCIE_ENABLE="1", HCCL_INTRA_ROCE_ENABLE="1"), "are both 1", "Keep one"),
    Case(
        "ND407",
        GOOD.having(None, INF_NAN_MODE_ENABLE="0"),
        "INF_NAN_MODE_ENABLE is 0 on Ascend910B3",
        "FORCE_DISABLE=1",
    ),
    Case("ND408", GOOD.having(None, ASCEND_RT_VISIBLE_DEVICES="1,0"), "1,0: not rising", "rising, with commas"),
    Case("ND408", GOOD.having(None, ASCEND_RT_VISIBLE_DEVICES="0,8"), "beyond the 8 devices", "0,1,2,3,4,5,6,7"),
    Case("ND408", GOOD.having(None, ASCEND_RT_VISIBLE_DEVICES="GPU-1"), "not a list of numbers", "device numbers"),
    Case("ND409", GOOD.having(None, ASCEND_LAUNCH_BLOCKING="1"), "ASCEND_LAUNCH_BLOCKING is 1", "unset"),
    Case(
        "ND410",
        GOOD.having(None, http_proxy="http://ada:secret@proxy:3128", **TWO_MACHINES),
        "not in no_proxy",
        "no_proxy=",
    ),
    Case(
        "ND411",
        GOOD.having(None, TASK_QUEUE_ENABLE="2", ASCEND_LAUNCH_BLOCKING="1"),
        "beside",
        "unset ASCEND_LAUNCH_BLOCKING",
    ),
    Case(
        "ND412",
        with_chip("910A").having(None, HCCL_DETERMINISTIC="strict"),
        "overflow saturates",
        "HCCL_DETERMINISTIC=true",
    ),
)

COMMUNICATION = (
    Case(
        "ND504",
        GOOD.having({"/proc/net/tcp": LISTENING}, MASTER_PORT="29000"),
        "MASTER_PORT 29000",
        "MASTER_PORT=29571",
    ),
    Case("ND501", GOOD.having(None, RANK_TABLE_FILE="/none.json"), "cannot be read", "unset RANK_TABLE_FILE"),
    Case("ND501", with_rank_table("{ // one\n}"), "is not JSON", "torchrun"),
    Case(
        "ND501", with_rank_table("{}").having({"/home/ada/ranks.json": Link("other.json")}), "symbolic link", "Correct"
    ),
    Case("ND501", with_rank_table(rank_table(version="2.0")), "version is 2.0", "Correct"),
    Case("ND501", with_rank_table(rank_table(server_count="3")), "server_count is 3, server_list has 2", "Correct"),
    Case(
        "ND501",
        with_rank_table(rank_table(server_list=ONE_SERVER, server_count="1")),
        "rank_id must run from 0 to 0; found 7".replace("0; found", "0, each once; found"),
        "Correct",
    ),
    Case(
        "ND501",
        with_rank_table(rank_table(server_list=ONE_SERVER, server_count="1")),
        "device 1 has 192.168.100.100 there and 192.168.100.101",
        "Correct",
    ),
    Case(
        "ND502",
        GOOD.having(None, HCCL_SOCKET_IFNAME="eth"),
        "HCCL_SOCKET_IFNAME is eth; this machine has enp189s0f0",
        "export HCCL_SOCKET_IFNAME=enp189s0f0",
    ),
    Case(
        "ND503",
        GOOD.having({"/proc/sys/net/ipv4/ip_local_reserved_ports": "\n"}),
        "Ports 60000-60031",
        "reserved_ports=60000-60031",
    ),
    Case(
        "ND504",
        GOOD.having(
            {"/proc/net/tcp": "  sl  local_address rem_address   st\n   0: 00000000:EA61 00000000:0000 0A 0\n"}
        ),
        "listens on 60001",
        "HCCL_IF_BASE_PORT",
    ),
    Case(
        "ND505",
        GOOD.having({"/etc/hccn.conf": "address_0=192.168.100.100\n"}, **TWO_MACHINES),
        "device 1, 2",
        "hccn_tool",
    ),
    Case(
        "ND506",
        GOOD.answering(
            "/usr/local/Ascend/driver/tools/hccn_tool -i 0 -tls -g", "dev_id:0, tls switch[1](0:disable, 1:enable)"
        ).answering(
            "/usr/local/Ascend/driver/tools/hccn_tool -i 1 -tls -g", "dev_id:1, tls switch[0](0:disable, 1:enable)"
        ),
        "TLS is on for device 0",
        "-tls -s enable 0",
    ),
    Case(
        "ND507",
        GOOD.answering("firewall-cmd --state", "running\n").having(None, **TWO_MACHINES),
        "firewalld",
        "--add-source",
    ),
    Case(
        "ND508",
        with_package("deepspeed", "0.12.4").having({RUNNER: "EXPORT_ENVS = ['MLFLOW', 'NCCL', 'PYTHON']\n"}),
        "does not hand HCCL_*",
        ".deepspeed_env",
    ),
    Case(
        "ND509",
        GOOD.having(None, **{**TWO_MACHINES, "MASTER_ADDR": "127.0.0.1"}),
        "MASTER_ADDR is 127.0.0.1",
        "other machines",
    ),
    Case("ND510", GOOD.having(None, HCCL_WHITELIST_DISABLE="0"), "names no file", "HCCL_WHITELIST_DISABLE=1"),
)
