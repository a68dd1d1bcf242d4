"""For each check of `npuport doctor`, machines that have what it looks for, and words of what it must say."""

from __future__ import annotations

from dataclasses import dataclass

from environment.machines import (
    NNAL,
    SITE,
    TOOLKIT,
    TREE,
    Faked,
    Link,
    distribution,
    toolkit,
    without_npu,
)
from environment.variants import (
    DRIVER,
    GOOD,
    IN_CONTAINER,
    ONE_SERVER,
    RUNNER,
    TWO_MACHINES,
    rank_table,
    with_cann,
    with_chip,
    with_package,
    with_rank_table,
)


@dataclass(frozen=True)
class Case:
    """A machine, the code it must get, and words of what is said: of what was seen and of the fix."""

    code: str
    machine: Faked
    sees: str
    fixes: str

    def __str__(self) -> str:
        return f"{self.code} {self.sees}"


HARDWARE = (
    Case("ND100", without_npu(), "no NPU", "npuport run --sim"),
    Case("ND101", GOOD.without("/usr/local/Ascend/driver"), "no driver", "Install the driver"),
    Case(
        "ND101",
        IN_CONTAINER.without("/usr/local/Ascend/driver"),
        "container has NPU",
        "docker run -v /usr/local/Ascend",
    ),
    Case("ND102", GOOD.answering("npu-smi info", None), "npu-smi is not on PATH", "/usr/local/sbin"),
    Case(
        "ND102",
        GOOD.answering("npu-smi info", "dcmi model initialized failed, because the device is used.", 255),
        "dcmi model initialized failed",
        "dmesg",
    ),
    Case("ND102", GOOD.answering("npu-smi info", None, timed_out=True), "did not answer", "--timeout 30"),
    Case("ND103", with_chip("910B3", health="Alarm"), "NPU 0 has health Alarm", "npu-smi info -t health -i 0"),
    Case(
        "ND104",
        GOOD.having({"/usr/local/Ascend/firmware/version.info": "Version=1.84.15.1.220\n"}),
        "Firmware 1.84.15.1.220 is installed; driver 25.2.0 works with",
        "Install the firmware",
    ),
    Case(
        "ND105",
        with_package("torch_npu", "2.5.1", machine=with_cann("8.1.RC1").having({DRIVER: "Version=24.1.rc2\n"})),
        "Driver 24.1.rc2 is older than 25.0.RC1",
        "Upgrade driver",
    ),
    Case("ND107", IN_CONTAINER.without("/dev/hisi_hdc"), "/dev/hisi_hdc", "--device /dev/hisi_hdc"),
    Case("ND107", IN_CONTAINER.without("/dev/davinci"), "/dev/davinci0", "--device /dev/davinci0"),
    Case("ND108", IN_CONTAINER.running(shared_memory=64 << 20), "/dev/shm has 64 MiB", "--shm-size"),
    Case("ND109", GOOD.running(open_files=1024), "1024 files", "ulimit -n"),
    Case("ND110", with_chip("310P3"), "Ascend310P3 is a chip for inference", "Train on Atlas A2"),
    Case(
        "ND111", with_chip("910A").having(None, ACCELERATE_MIXED_PRECISION="bf16"), "Ascend910A has no bfloat16", "fp16"
    ),
    Case(
        "ND111",
        with_chip("910A").having(
            {"/home/ada/.cache/huggingface/accelerate/default_config.yaml": "mixed_precision: bf16\n"}
        ),
        "Accelerate is configured for bf16",
        "Use float16",
    ),
    Case("ND112", with_chip("910A"), "Ascend910A has no bfloat16", "torch.float16"),
    Case("ND113", with_chip("310B4"), "torch_npu 2.5.1.post1 does not know Ascend310B4", "Install a torch_npu"),
    Case("ND114", GOOD.running(arch="x86_64"), "is for aarch64; this machine is x86_64", "linux-x86_64.run"),
)

CANN = (
    Case("ND201", GOOD.without("/usr/local/Ascend/ascend-toolkit"), "No CANN", "Install the toolkit"),
    Case(
        "ND202",
        GOOD.having(None, ASCEND_HOME_PATH=None, ASCEND_TOOLKIT_HOME=None),
        "ASCEND_HOME_PATH is not set",
        f"source {TOOLKIT}/set_env.sh",
    ),
    Case("ND203", GOOD.having(None, ASCEND_OPP_PATH="/opt/gone/opp"), "ASCEND_OPP_PATH is /opt/gone/opp", "set_env.sh"),
    Case(
        "ND204",
        GOOD.having(
            toolkit("8.0.RC3", "/usr/local/Ascend/ascend-toolkit/8.0.RC3"),
            LD_LIBRARY_PATH=f"/usr/local/Ascend/ascend-toolkit/8.0.RC3/lib64:{TOOLKIT}/lib64:/usr/local/Ascend/driver/lib64",
        ),
        "more than one CANN: 8.0.RC3",
        "~/.bashrc",
    ),
    Case(
        "ND205",
        GOOD.having(None, LD_LIBRARY_PATH="/usr/local/Ascend/driver/lib64"),
        "no folder of /usr/local/Ascend/ascend",
        "Source set_env.sh again",
    ),
    Case(
        "ND205", GOOD.having(None, LD_LIBRARY_PATH=f"{TOOLKIT}/lib64"), "no folder of the driver", "driver/lib64/common"
    ),
    Case(
        "ND206",
        GOOD.without(f"{TOOLKIT}/opp/built-in/op_impl", f"{TOOLKIT}/opp_kernel"),
        "operators for no chip, not for Ascend910B3",
        "Ascend-cann-kernels-910b of CANN 8.2.RC1",
    ),
    Case(
        "ND206",
        with_chip("310P3"),
        "operators for ascend910b, not for Ascend310P3 (ascend310p)",
        "Ascend-cann-kernels-310p of CANN 8.2.RC1",
    ),
    Case(
        "ND207", with_cann("8.2.RC1", kernels="8.1.RC1"), "toolkit is 8.2.RC1, its operator package 8.1.RC1", "8.2.RC1"
    ),
    Case("ND208", GOOD.without("/usr/local/Ascend/nnal"), "NNAL (ATB) is not installed", "Install the NNAL"),
    Case(
        "ND208",
        GOOD.having(None, ATB_HOME_PATH=None),
        "ATB_HOME_PATH is not set",
        "source /usr/local/Ascend/nnal/atb/set_env.sh",
    ),
    Case(
        "ND209",
        GOOD.having({f"{NNAL}/version.info": "    Ascend-cann-atb : 8.0.RC2\n"}),
        "NNAL is 8.0.RC2, CANN is 8.2.RC1",
        "of one release",
    ),
    Case(
        "ND210",
        GOOD.having(None, ATB_HOME_PATH="/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1"),
        "this torch is built with cxx_abi_0",
        "--cxx_abi=0",
    ),
    Case(
        "ND211",
        GOOD.having(
            {f"{TOOLKIT}/tools/ms_fmk_transplt/torch_npu_bridge/transfer_to_npu.py": ""},
            PYTHONPATH=f"{TOOLKIT}/tools/ms_fmk_transplt/torch_npu_bridge",
        ),
        "torch_npu_bridge",
        "from torch_npu.contrib import transfer_to_npu",
    ),
)

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

BUILDING = (
    Case("ND601", GOOD.answering("cmake --version", None), "Not on PATH: cmake", "apt-get install"),
    Case("ND602", GOOD.answering("gcc --version", "gcc (GCC) 7.3.0\n"), "GCC 7.3.0", "GCC 11"),
    Case("ND602", GOOD.answering("cmake --version", "cmake version 3.12.1\n"), "CMake 3.12.1", "cmake>=3.18"),
    Case(
        "ND603",
        GOOD.having({"/etc/os-release": 'ID="openEuler"\nVERSION_ID="22.03"\n'}).running(platlibdir="lib64"),
        "lib64 (openEuler)",
        "setup.py",
    ),
)

CASES = (*HARDWARE, *CANN, *PACKAGES, *VARIABLES, *COMMUNICATION, *BUILDING)
