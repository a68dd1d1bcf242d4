"""Chinese sentences of `npuport doctor`."""

from __future__ import annotations

DOCTOR_SENTENCES = {
    # the page
    "CANN": "CANN",
    "NPU": "NPU",
    "Python": "Python",
    "can be better": "可改进",
    "driver": "驱动",
    "fix": "处理",
    "may differ or fail": "可能异常或失败",
    "nothing is wrong, as far as can be seen without running anything": "未发现问题（仅限不运行程序所能看到的范围）",
    "system": "系统",
    "torch": "torch",
    # what was seen, and what to do
    "Bring back the torch that torch_npu wants, and pin it, so that no other package replaces it.": (
        "装回 torch_npu 所需的 torch，并固定版本，避免被其他软件包替换。"
    ),
    "CANN {version} is at {path}, but ASCEND_HOME_PATH is not set.": (
        "CANN {version} 位于 {path}，但未设置 ASCEND_HOME_PATH。"
    ),
    "Install a pair of torch and torch_npu that exists; `npuport doctor --plan` names it.": (
        "请安装确实存在的 torch 与 torch_npu 配套版本；`npuport doctor --plan` 可给出版本。"
    ),
    "Install the driver, then the firmware, for this NPU and processor, and reboot.": (
        "请安装与该 NPU 和处理器架构对应的驱动，再安装固件，然后重启。"
    ),
    "Install the toolkit and the operator package of your chip; `npuport doctor --plan` names the versions.": (
        "请安装 CANN toolkit 和对应芯片的算子包；`npuport doctor --plan` 可给出版本。"
    ),
    "No CANN toolkit was found in /usr/local/Ascend, ~/Ascend or where ASCEND_HOME_PATH points.": (
        "在 /usr/local/Ascend、~/Ascend 以及 ASCEND_HOME_PATH 所指目录均未找到 CANN toolkit。"
    ),
    "On the training machine, run `npuport doctor` again; here, train on the simulated NPU.": (
        "请在训练机器上再次运行 `npuport doctor`；在本机可用模拟 NPU 训练。"
    ),
    "Source its set_env.sh in every shell that trains, for example in ~/.bashrc.": (
        "在每个用于训练的 shell 中 source 其 set_env.sh，例如写入 ~/.bashrc。"
    ),
    "Start the container with the host's driver mounted.": "启动容器时挂载宿主机的驱动目录。",
    "The PCI bus has an NPU, but there is no driver at /usr/local/Ascend/driver.": (
        "PCI 总线上有 NPU，但 /usr/local/Ascend/driver 中没有驱动。"
    ),
    "The container has NPU device nodes, but no driver at /usr/local/Ascend/driver.": (
        "容器中有 NPU 设备节点，但 /usr/local/Ascend/driver 中没有驱动。"
    ),
    "This machine shows no NPU: no PCI device, no /dev/davinci0, no driver.": (
        "本机没有 NPU：没有 PCI 设备，没有 /dev/davinci0，也没有驱动。"
    ),
    "torch {torch} is installed, but torch_npu {npu} is built for torch {wanted}.": (
        "已安装 torch {torch}，但 torch_npu {npu} 是为 torch {wanted} 构建的。"
    ),
    # why it matters
    "CANN reaches the device through the driver's libraries; without them every call to the device fails.": (
        "CANN 通过驱动的库访问设备；缺少这些库时，对设备的每次调用都会失败。"
    ),
    (
        "Without an NPU nothing can be said about driver, firmware and devices; Python packages and variables are "
        "checked all the same, and npuport run --sim runs the training on a simulated NPU."
    ): (
        "没有 NPU 就无法检查驱动、固件和设备；Python 软件包与环境变量仍会检查，并可用 npuport run --sim 在模拟 NPU "
        "上运行训练。"
    ),
    (
        "set_env.sh puts CANN's libraries and operators on the paths; without it importing torch_npu ends with "
        "libhccl.so or libascendcl.so: cannot open shared object file."
    ): (
        "set_env.sh 会把 CANN 的库和算子加入路径；否则导入 torch_npu 时会报 libhccl.so 或 libascendcl.so: cannot "
        "open shared object file。"
    ),
    (
        "torch_npu is built against one torch; beside another, importing it ends with an undefined symbol or it "
        "registers the wrong device hooks, and since torch 2.5 even import torch fails because torch loads it."
    ): (
        "torch_npu 针对特定版本的 torch 构建；与其他版本混用时，导入会报 undefined symbol 或注册错误的设备钩子；自 "
        "torch 2.5 起 torch 会自动加载它，连 import torch 也会失败。"
    ),
    "torch_npu is built on CANN's libraries (libascendcl.so, libhccl.so); without them it cannot be imported.": (
        "torch_npu 依赖 CANN 的库（libascendcl.so、libhccl.so）；没有它们就无法导入。"
    ),
}
