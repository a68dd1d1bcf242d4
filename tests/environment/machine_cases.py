"""For each check of driver, devices, CANN and builds, machines that have what it looks for."""

from __future__ import annotations

from environment.machines import NNAL, TOOLKIT, npu_smi_info, toolkit, without_npu
from environment.variants import DRIVER, GOOD, IN_CONTAINER, Case, with_cann, with_chip, with_package

BUSY = npu_smi_info().replace(
    "| No running processes found in NPU 0                                                            |",
    "| 3       0                 | 12345         | python                   | 30211                   |",
)
LOCK = "/home/ada/.cache/torch_extensions/py310_cpu/fused_adam/lock"

HARDWARE = (
    Case("ND115", GOOD.answering("npu-smi info", BUSY), "python 12345 (NPU 3, 30211 MiB)", "wait ten seconds"),
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

BUILDING = (
    Case("ND604", GOOD.having({LOCK: ""}), f"{LOCK} is there", f"rm '{LOCK}'"),
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
