"""Chinese sentences of `npuport doctor`: what was seen, and what to do."""

from __future__ import annotations

DOCTOR_SENTENCES = {
    "/dev/shm has {size} MiB.": "/dev/shm 只有 {size} MiB。",
    "/etc/hccn.conf has no address for device {devices}.": "/etc/hccn.conf 中没有设备 {devices} 的地址。",
    "A process may have {limit} files open.": "一个进程最多可打开 {limit} 个文件。",
    "A program listens on MASTER_PORT {port}.": "有程序正在监听 MASTER_PORT {port}。",
    "A program listens on {ports}.": "有程序正在监听 {ports}。",
    "ASCEND_RT_VISIBLE_DEVICES is {value}: {wrong}.": "ASCEND_RT_VISIBLE_DEVICES 为 {value}：{wrong}。",
    "ATB_HOME_PATH is {home}; this torch is built with {wanted}.": (
        "ATB_HOME_PATH 为 {home}；而该 torch 以 {wanted} 构建。"
    ),
    "Accelerate is configured for bf16, and {chip} has no bfloat16.": (
        "Accelerate 配置为 bf16，而 {chip} 不支持 bfloat16。"
    ),
    "Add the user to the group and log in again, or install the driver with --install-for-all.": (
        "将该用户加入用户组并重新登录，或在安装驱动时使用 --install-for-all。"
    ),
    "Ask again with more time; if it never answers, the driver hangs: reset the device or reboot.": (
        "延长时间再试；若始终无响应，说明驱动挂起：请复位设备或重启。"
    ),
    "Before building Apex for Ascend, write lib64 for lib in its setup.py where torch's folder is composed.": (
        "构建昇腾 Apex 之前，请在其 setup.py 拼接 torch 目录处将 lib 改为 lib64。"
    ),
    "Both PYTORCH_NPU_ALLOC_CONF and PYTORCH_ALLOC_CONF are set.": (
        "同时设置了 PYTORCH_NPU_ALLOC_CONF 和 PYTORCH_ALLOC_CONF。"
    ),
    (
        "Bring back the torch that torch_npu wants, or install the torch_npu of this torch. To import "
        "torch alone meanwhile, set TORCH_DEVICE_BACKEND_AUTOLOAD=0."
    ): (
        "装回 torch_npu 所需的 torch，或安装与该 torch 配套的 torch_npu。若暂时只需导入 torch，可设置 "
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0。"
    ),
    "Build MMCV from source after torch_npu is installed.": "请在安装 torch_npu 之后从源码构建 MMCV。",
    "Build or install {package} for this torch_npu, or install the torch_npu it was built with.": (
        "请针对当前 torch_npu 构建或安装 {package}，或安装构建它时所用的 torch_npu。"
    ),
    "CANN": "CANN",
    "CANN at {path} is for {arch}; this machine is {here}.": "{path} 的 CANN 面向 {arch}；本机是 {here}。",
    "CANN {version} has operators for {there}, not for {chip} ({kernels}).": (
        "CANN {version} 包含 {there} 的算子，但没有 {chip}（{kernels}）的算子。"
    ),
    "CANN {version} is at {path}, but ASCEND_HOME_PATH is not set.": (
        "CANN {version} 位于 {path}，但未设置 ASCEND_HOME_PATH。"
    ),
    "CMake {version} is on PATH; torch_npu's documents install 3.18.": (
        "PATH 中的 CMake 为 {version}；torch_npu 文档安装的是 3.18。"
    ),
    "Choose a torch that has one; `npuport doctor --plan` names them.": (
        "请选择有配套 torch_npu 的 torch；`npuport doctor --plan` 可列出。"
    ),
    "Correct the file; with torchrun none is needed: unset RANK_TABLE_FILE and the ranks negotiate.": (
        "请修正该文件；使用 torchrun 时不需要它：取消设置 RANK_TABLE_FILE，各 rank 会自行协商。"
    ),
    "DeepSpeed {version} does not hand HCCL_* and ASCEND_* variables on to other machines.": (
        "DeepSpeed {version} 不会把 HCCL_* 和 ASCEND_* 变量传递到其他机器。"
    ),
    "Driver {driver} is older than {wanted}, which documents pair with CANN {cann}.": (
        "驱动 {driver} 早于文档中与 CANN {cann} 配套的 {wanted}。"
    ),
    "End the old training, or choose another port.": "请结束旧训练，或换用其他端口。",
    "Exempt the machines of the job.": "请为任务中的机器设置例外。",
    "Find it: if it is an old training, end it; if not, move HCCL's ports.": (
        "请找出该程序：若是残留的旧训练则结束它；否则更换 HCCL 的端口。"
    ),
    "Firmware {firmware} is installed; driver {driver} works with {wanted}.": (
        "已安装固件 {firmware}；驱动 {driver} 支持的固件为 {wanted}。"
    ),
    "GCC {version} is on PATH.": "PATH 中的 GCC 为 {version}。",
    "Give each device an address in the network of the NPUs; into a container, mount /etc/hccn.conf.": (
        "请为每个设备配置 NPU 网络中的地址；容器中需挂载 /etc/hccn.conf。"
    ),
    "Give more than 20.": "请设置为大于 20 的值。",
    "HCCL_CONNECT_TIMEOUT is {connect} s, HCCL_EXEC_TIMEOUT {execute} s.": (
        "HCCL_CONNECT_TIMEOUT 为 {connect} 秒，HCCL_EXEC_TIMEOUT 为 {execute} 秒。"
    ),
    "HCCL_DETERMINISTIC is strict, and overflow saturates here.": (
        "HCCL_DETERMINISTIC 为 strict，而此处溢出按饱和处理。"
    ),
    "HCCL_EVENT_TIMEOUT is {event} s, HCCL_EXEC_TIMEOUT {execute} s (0: for ever).": (
        "HCCL_EVENT_TIMEOUT 为 {event} 秒，HCCL_EXEC_TIMEOUT 为 {execute} 秒（0 表示永不超时）。"
    ),
    "HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 1.": (
        "HCCL_INTRA_PCIE_ENABLE 与 HCCL_INTRA_ROCE_ENABLE 均为 1。"
    ),
    "HCCL_WHITELIST_DISABLE is 0, and HCCL_WHITELIST_FILE names no file.": (
        "HCCL_WHITELIST_DISABLE 为 0，而 HCCL_WHITELIST_FILE 未指向任何文件。"
    ),
    "INF_NAN_MODE_ENABLE is 0 on {chip}.": "{chip} 上 INF_NAN_MODE_ENABLE 为 0。",
    "If an import ends with cannot allocate memory in static TLS block, import torch first or preload it.": (
        "若导入时报 cannot allocate memory in static TLS block，请先导入 torch 或预加载该库。"
    ),
    "If imports end with undefined symbols, install a published one: {near}.": (
        "若导入时报 undefined symbol，请安装已发布的版本：{near}。"
    ),
    "If imports end with undefined symbols, install a published one; `npuport doctor --plan` names them.": (
        "若导入时报 undefined symbol，请安装已发布的版本；`npuport doctor --plan` 可列出。"
    ),
    "If no program builds the extension now, remove it.": "若当前没有程序在构建该扩展，请删除它。",
    "If one is a training that was meant to have ended, end it and wait ten seconds before the next.": (
        "若其中有本应结束的训练，请结束它，并等待十秒再启动下一个。"
    ),
    "Install CANN {wanted}, or one of torch {torches}, which CANN {cann} serves.": (
        "请安装 CANN {wanted}，或改用 CANN {cann} 配套的 torch {torches} 之一。"
    ),
    "Install CANN {wanted}.": "请安装 CANN {wanted}。",
    "Install GCC 11 or later where extensions are to be built, or use a container image.": (
        "请在需要构建扩展的机器上安装 GCC 11 或更高版本，或使用容器镜像。"
    ),
    "Install NumPy 1.26 and hold it there.": "请安装 NumPy 1.26 并固定版本。",
    "Install a newer DeepSpeed, or write the variables into ~/.deepspeed_env, one NAME=value a line.": (
        "请安装更新的 DeepSpeed，或把变量写入 ~/.deepspeed_env，每行一个 NAME=value。"
    ),
    "Install a newer one in the environment.": "请在该环境中安装更新的版本。",
    "Install a newer one.": "请安装更新的版本。",
    "Install a torch_npu whose release notes name this chip; `npuport doctor --plan` names the newest.": (
        "请安装发布说明中包含该芯片的 torch_npu；`npuport doctor --plan` 可给出最新版本。"
    ),
    "Install a {package} that fits; leave torch as it is.": "请安装合适版本的 {package}，不要改动 torch。",
    "Install it again on this machine.": "请在本机重新安装。",
    "Install it again with the pip of this Python.": "请用该 Python 的 pip 重新安装。",
    "Install the CPU build of the same version.": "请安装相同版本的 CPU 版。",
    "Install the CPU build of torch, then its torch_npu; check which Python runs the training.": (
        "请先安装 CPU 版 torch，再安装配套的 torch_npu；并确认训练使用的是哪个 Python。"
    ),
    "Install the NNAL of the CANN release that torch_npu is paired with.": (
        "请安装与 torch_npu 配套的 CANN 版本所对应的 NNAL。"
    ),
    "Install the NNAL package of the same release as CANN.": "请安装与 CANN 同版本的 NNAL 包。",
    "Install the driver, then the firmware, for this NPU and processor, and reboot.": (
        "请安装与该 NPU 和处理器架构对应的驱动，再安装固件，然后重启。"
    ),
    "Install the firmware of the driver's own release, and reboot.": "请安装与驱动同一版本的固件并重启。",
    "Install the operator package of CANN {version}.": "请安装 CANN {version} 的算子包。",
    "Install the packages whose names end with {arch}.": "请安装文件名以 {arch} 结尾的软件包。",
    "Install the toolkit and the operator package of your chip; `npuport doctor --plan` names the versions.": (
        "请安装 CANN toolkit 和对应芯片的算子包；`npuport doctor --plan` 可给出版本。"
    ),
    "Install the torch_npu of this torch for this CANN, or CANN {wanted}.": (
        "请为当前 CANN 安装该 torch 的 torch_npu，或安装 CANN {wanted}。"
    ),
    "Install the torch_npu of this torch.": "请安装与该 torch 配套的 torch_npu。",
    "Install them in the Python that trains.": "请在用于训练的 Python 中安装它们。",
    "Install them where extensions are to be built.": "请在需要构建扩展的机器上安装它们。",
    "Install toolkit, operator package and NNAL of one release, the one that torch_npu is paired with.": (
        "请安装同一版本的 toolkit、算子包和 NNAL，且与 torch_npu 配套。"
    ),
    (
        "Install torch again, then {package} without its dependencies; a constraints file keeps torch from "
        "being replaced."
    ): ("请重新安装 torch，再以不带依赖的方式安装 {package}；使用约束文件可防止 torch 被替换。"),
    "Install {package} of CANN {version}.": "请安装 CANN {version} 的 {package}。",
    "Keep expandable_segments:True, which fights fragmentation best.": (
        "保留 expandable_segments:True，它对缓解碎片最有效。"
    ),
    "Keep one of them.": "只保留其中一个。",
    "LD_LIBRARY_PATH has no folder of the driver, {path}.": "LD_LIBRARY_PATH 中没有驱动目录 {path}。",
    "LD_LIBRARY_PATH has no folder of {home}.": "LD_LIBRARY_PATH 中没有 {home} 的目录。",
    "Let HCCL_EXEC_TIMEOUT be the larger one.": "请使 HCCL_EXEC_TIMEOUT 更大。",
    "Let the other machines of the job through.": "请放行任务中的其他机器。",
    "Load models with torch_dtype=torch.float16 whatever config.json says, and let npuport look for it.": (
        "无论 config.json 如何设置，都用 torch_dtype=torch.float16 加载模型，并可用 npuport 查找相关代码。"
    ),
    "Load the driver again, or reboot.": "请重新加载驱动，或重启。",
    "Make an environment with one of them.": "请用其中一个版本创建环境。",
    "Missing in {python}: {names}.": "{python} 中缺少：{names}。",
    "Missing: {nodes}.": "缺少：{nodes}。",
    "NNAL (ATB) is not installed.": "未安装 NNAL（ATB）。",
    "NNAL is {nnal}, CANN is {cann}.": "NNAL 为 {nnal}，CANN 为 {cann}。",
    "NNAL {version} is installed, but ATB_HOME_PATH is not set.": "已安装 NNAL {version}，但未设置 ATB_HOME_PATH。",
    "NPU": "NPU",
    "NPU {number} has health {health}.": "NPU {number} 的健康状态为 {health}。",
    "Name the interface that reaches the other machines.": "请填写能连通其他机器的网卡。",
    "No CANN toolkit was found in /usr/local/Ascend, ~/Ascend or where ASCEND_HOME_PATH points.": (
        "在 /usr/local/Ascend、~/Ascend 以及 ASCEND_HOME_PATH 所指目录均未找到 CANN toolkit。"
    ),
    "Not on PATH: {names}.": "PATH 中没有：{names}。",
    "Nothing takes its place; see `npuport explain {package}`.": "没有替代品；参见 `npuport explain {package}`。",
    "NumPy {numpy} is installed beside CANN {cann}.": "NumPy {numpy} 与 CANN {cann} 一起安装。",
    "On the training machine, run `npuport doctor` again; here, train on the simulated NPU.": (
        "请在训练机器上再次运行 `npuport doctor`；在本机可用模拟 NPU 训练。"
    ),
    "Open a new shell and source one set_env.sh; look for the others in ~/.bashrc and /etc/profile.d.": (
        "请打开新的 shell 并只 source 一个 set_env.sh；在 ~/.bashrc 和 /etc/profile.d 中查找其余的。"
    ),
    "Open a new shell and source the set_env.sh of the CANN that is installed.": (
        "请打开新的 shell，并 source 已安装 CANN 的 set_env.sh。"
    ),
    "PYTHONPATH has {path}, which holds a transfer_to_npu of CANN's old migration tool.": (
        "PYTHONPATH 中有 {path}，其中是 CANN 旧迁移工具的 transfer_to_npu。"
    ),
    "Packages of this Python lie in lib64 ({os}).": "该 Python 的软件包位于 lib64（{os}）。",
    "Ports {ports} are not reserved, and in the kernel's range for any program ({low} – {high}).": (
        "端口 {ports} 未保留，且位于内核可分配给任意程序的范围（{low} – {high}）内。"
    ),
    "Programs on the NPUs: {programs}.": "NPU 上的程序：{programs}。",
    "Put it on PATH; into a container, mount it.": "请将其加入 PATH；容器中需挂载。",
    "Put the driver's folders on it.": "请将驱动目录加入该变量。",
    "Python": "Python",
    "RANK_TABLE_FILE {path} cannot be read.": "无法读取 RANK_TABLE_FILE {path}。",
    "RANK_TABLE_FILE {path} is a symbolic link, which torch_npu refuses.": (
        "RANK_TABLE_FILE {path} 是符号链接，torch_npu 会拒绝。"
    ),
    "RANK_TABLE_FILE {path} is not JSON (comments are not allowed): {problem}": (
        "RANK_TABLE_FILE {path} 不是 JSON（不允许注释）：{problem}"
    ),
    "Raise HCCL_EVENT_TIMEOUT above it; 0 there waits for ever too.": (
        "请把 HCCL_EVENT_TIMEOUT 调大到超过它；设为 0 同样表示永不超时。"
    ),
    "Raise the limit in the shell that trains.": "请在用于训练的 shell 中提高上限。",
    "Read its error codes, then train on the others or have it repaired.": (
        "请查看其错误码，然后改用其他设备训练或送修。"
    ),
    "Reserve them.": "请保留这些端口。",
    "See the driver's messages; after an installation of the driver, reboot.": "请查看驱动日志；安装驱动后需要重启。",
    "Set a value that it takes, or unset it (the default is {default}).": (
        "请设置为允许的值，或取消设置（默认值为 {default}）。"
    ),
    "Set one switch on all devices of all machines, then begin again.": (
        "请在所有机器的所有设备上设置同一开关，然后重新开始。"
    ),
    "Set the name that is read.": "请设置会被读取的名称。",
    "Set {counterpart}, with a value that it takes.": "请设置 {counterpart}，并使用其允许的值。",
    "Source NNAL's set_env.sh with the ABI of torch.": "请按 torch 的 ABI source NNAL 的 set_env.sh。",
    "Source its set_env.sh after that of CANN.": "请在 CANN 之后 source 它的 set_env.sh。",
    "Source its set_env.sh in every shell that trains, for example in ~/.bashrc.": (
        "在每个用于训练的 shell 中 source 其 set_env.sh，例如写入 ~/.bashrc。"
    ),
    "Source set_env.sh again; a script, sudo or `env -i` may have dropped the variable.": (
        "请重新 source set_env.sh；脚本、sudo 或 `env -i` 可能丢掉了该变量。"
    ),
    "Start Python in another directory.": "请在其他目录启动 Python。",
    "Start the container with more shared memory.": "启动容器时请分配更多共享内存。",
    "Start the container with the host's driver mounted.": "启动容器时挂载宿主机的驱动目录。",
    "Start the container with these devices.": "启动容器时请加上这些设备。",
    "TASK_QUEUE_ENABLE is {queue} beside ASCEND_LAUNCH_BLOCKING=1.": (
        "TASK_QUEUE_ENABLE 为 {queue}，同时 ASCEND_LAUNCH_BLOCKING=1。"
    ),
    "TLS is on for device {on} and off for the others.": "设备 {on} 已开启 TLS，其他设备未开启。",
    "TORCH_DEVICE_BACKEND_AUTOLOAD is 0.": "TORCH_DEVICE_BACKEND_AUTOLOAD 为 0。",
    "Take it off PYTHONPATH, and write: from torch_npu.contrib import transfer_to_npu": (
        "请将其移出 PYTHONPATH，并改写为：from torch_npu.contrib import transfer_to_npu"
    ),
    "The container has NPU device nodes, but no driver at /usr/local/Ascend/driver.": (
        "容器中有 NPU 设备节点，但 /usr/local/Ascend/driver 中没有驱动。"
    ),
    "The machine has an NPU, but there is no driver at /usr/local/Ascend/driver.": (
        "本机有 NPU，但 /usr/local/Ascend/driver 中没有驱动。"
    ),
    "The paths name more than one CANN: {versions}.": "各路径指向了多个 CANN：{versions}。",
    "The toolkit is {toolkit}, its operator package {kernels}.": "toolkit 为 {toolkit}，其算子包为 {kernels}。",
    "This machine shows no NPU: no PCI device, no /dev/davinci0, no driver.": (
        "本机没有 NPU：没有 PCI 设备，没有 /dev/davinci0，也没有驱动。"
    ),
    "Train on Atlas A2 or A3 and use this machine for inference.": "请在 Atlas A2 或 A3 上训练，本机用于推理。",
    "Turn the list off, or write it.": "请关闭白名单，或写好白名单文件。",
    "Uninstall it until pip finds none, then install the one you want; unset PYTHONPATH if it adds one.": (
        "反复卸载直到 pip 找不到它，再安装所需版本；若由 PYTHONPATH 引入，请取消设置。"
    ),
    "Uninstall it, build Apex for Ascend, or use torch.amp.": "请卸载它，然后构建昇腾 Apex，或使用 torch.amp。",
    "Uninstall torch until pip finds none, then install the one you want.": (
        "反复卸载 torch 直到 pip 找不到它，再安装所需版本。"
    ),
    "Unset ASCEND_LAUNCH_BLOCKING.": "请取消设置 ASCEND_LAUNCH_BLOCKING。",
    "Unset it for training in earnest.": "正式训练时请取消设置。",
    "Unset it, or import torch_npu in each program.": "请取消设置，或在每个程序中导入 torch_npu。",
    "Unset it, so that overflow gives Inf as on a GPU; or set INF_NAN_MODE_FORCE_DISABLE=1 too.": (
        "请取消设置，使溢出像 GPU 一样产生 Inf；或同时设置 INF_NAN_MODE_FORCE_DISABLE=1。"
    ),
    "Unset one of them.": "请取消设置其中一个。",
    "Upgrade driver and firmware, or install a CANN that this driver serves.": (
        "请升级驱动和固件，或安装该驱动支持的 CANN。"
    ),
    "Use HCCL_DETERMINISTIC=true.": "请使用 HCCL_DETERMINISTIC=true。",
    "Use a newer system, such as a container image, or an older release.": (
        "请使用更新的系统（例如容器镜像）或更早的版本。"
    ),
    "Use float16: in accelerate's configuration, in TrainingArguments, and as torch_dtype of the model.": (
        "请在 accelerate 配置、TrainingArguments 以及模型的 torch_dtype 中改用 float16。"
    ),
    "Use {replacement} instead.": "请改用 {replacement}。",
    "User {user} is not in the group {group}.": "用户 {user} 不在用户组 {group} 中。",
    "User {user} may not open {node}.": "用户 {user} 无权打开 {node}。",
    "Where code wants a newer operator, upgrade CANN and torch_npu together, or write it with plain ones.": (
        "若代码需要更新的算子，请一并升级 CANN 和 torch_npu，或改用普通算子实现。"
    ),
    "Write device numbers from 0 on, rising, with commas.": "请填写从 0 开始、递增、以逗号分隔的设备号。",
    "Write the address at which the other machines reach it.": "请填写其他机器可以访问到的地址。",
    "a number beyond the {count} devices here": "含有超出本机 {count} 个设备的编号",
    "apex {version} is not Apex for Ascend.": "apex {version} 不是昇腾 Apex。",
    "can be better": "可改进",
    "conda's libstdc++.so.6.0.{conda} is older than the system's 6.0.{system}.": (
        "conda 的 libstdc++.so.6.0.{conda} 早于系统的 6.0.{system}。"
    ),
    "device {number} has {address} there and {other} in /etc/hccn.conf": (
        "设备 {number} 在其中为 {address}，而在 /etc/hccn.conf 中为 {other}"
    ),
    "device_ip {address} of rank {rank} is no IP address": "rank {rank} 的 device_ip {address} 不是 IP 地址",
    "driver": "驱动",
    "each server needs a server_id of its own, of at most 64 characters": (
        "每台服务器都需要唯一且不超过 64 个字符的 server_id"
    ),
    "firewalld is running.": "firewalld 正在运行。",
    "fix": "处理",
    "libatb.so lacks what torch_npu calls: {names}.": "libatb.so 缺少 torch_npu 调用的函数：{names}。",
    "may differ or fail": "可能异常或失败",
    "mmcv-lite is installed, which has no operators.": "安装的是 mmcv-lite，它不含算子。",
    "not a list of numbers": "不是数字列表",
    "not rising, or with a number twice": "不是递增的，或有重复",
    "nothing is wrong, as far as can be seen without running anything": "未发现问题（仅限不运行程序所能看到的范围）",
    "npu-smi info did not answer in time.": "npu-smi info 未及时响应。",
    "npu-smi info failed: {message}": "npu-smi info 失败：{message}",
    "npu-smi is not on PATH.": "npu-smi 不在 PATH 中。",
    "pip's record says torch {record}, the files are torch {files}.": (
        "pip 记录为 torch {record}，实际文件为 torch {files}。"
    ),
    "rank {rank} has no device_ip, which several servers need": "rank {rank} 没有 device_ip，多机时必须提供",
    "rank_id must run from 0 to {last}, each once; found {ranks}": (
        "rank_id 必须从 0 到 {last} 各出现一次；实际为 {ranks}"
    ),
    "server_count is {count}, server_list has {number}": "server_count 为 {count}，而 server_list 有 {number} 项",
    "server_list is missing or empty": "server_list 缺失或为空",
    "status is {status}, not completed or initializing": "status 为 {status}，应为 completed 或 initializing",
    "system": "系统",
    "torch": "torch",
    "torch is not installed in {python}.": "{python} 中未安装 torch。",
    "torch {torch} is installed without torch_npu, and no torch_npu for it is published.": (
        "已安装 torch {torch} 但没有 torch_npu，且没有为它发布的 torch_npu。"
    ),
    "torch {torch} is installed without torch_npu.": "已安装 torch {torch} 但没有 torch_npu。",
    "torch {torch} is installed, but torch_npu {npu} is built for torch {wanted}.": (
        "已安装 torch {torch}，但 torch_npu {npu} 是为 torch {wanted} 构建的。"
    ),
    "torch {version} is built for CUDA {cuda}.": "torch {version} 是为 CUDA {cuda} 构建的。",
    "torch_npu {npu} is built for Python {pythons}; this is Python {version}.": (
        "torch_npu {npu} 面向 Python {pythons} 构建；当前为 Python {version}。"
    ),
    "torch_npu {npu} is installed; {newest}, for CANN {cann}, is the newest for torch {torch}.": (
        "已安装 torch_npu {npu}；torch {torch} 的最新版本为 {newest}（配套 CANN {cann}）。"
    ),
    "torch_npu {npu} is paired with CANN {wanted}; CANN {cann} is in use.": (
        "torch_npu {npu} 与 CANN {wanted} 配套；当前使用 CANN {cann}。"
    ),
    "torch_npu {version} does not know {chip}.": "torch_npu {version} 不认识 {chip}。",
    "torch_npu {version} has no _C for Python {python}.": "torch_npu {version} 没有面向 Python {python} 的 _C。",
    "torch_npu {version} is not among the published releases.": "torch_npu {version} 不在已发布的版本之列。",
    "version is {version}, not 1.0 or 1.2": "version 为 {version}，应为 1.0 或 1.2",
    "{chip} has no bfloat16.": "{chip} 不支持 bfloat16。",
    "{chip} is a chip for inference.": "{chip} 是推理芯片。",
    "{folder} is a folder of sources without compiled parts.": "{folder} 是不含编译部分的源码目录。",
    "{name} combines expandable_segments:True with {clash}.": (
        "{name} 同时设置了 expandable_segments:True 和 {clash}。"
    ),
    "{name} has max_split_size_mb:{split}.": "{name} 中 max_split_size_mb 为 {split}。",
    "{name} is installed more than once: {places}.": "{name} 安装了多份：{places}。",
    "{name} is set; did you mean {near}?": "设置了 {name}；是否应为 {near}？",
    "{name} is set; on an NPU {counterpart} is read. {note}": "设置了 {name}；NPU 上读取的是 {counterpart}。{note}",
    "{name} is {value}, and the training has more ranks than this machine.": (
        "{name} 为 {value}，而训练的 rank 多于本机设备。"
    ),
    "{name} is {value}, which does not exist.": "{name} 为 {value}，该路径不存在。",
    "{name} is {value}.": "{name} 为 {value}。",
    "{name} is {value}; it takes {values}.": "{name} 为 {value}；允许的值为 {values}。",
    "{name} is {value}; this machine has {interfaces}.": "{name} 为 {value}；本机的网卡有 {interfaces}。",
    "{number} packages bring a libgomp: {paths}.": "{number} 个软件包自带 libgomp：{paths}。",
    "{package} {version} is built for glibc {wanted}; this system has {glibc}.": (
        "{package} {version} 要求 glibc {wanted}；本系统为 {glibc}。"
    ),
    "{package} {version} is built for {wanted}; this machine is {arch}.": (
        "{package} {version} 面向 {wanted} 构建；本机为 {arch}。"
    ),
    "{package} {version} is installed.": "已安装 {package} {version}。",
    "{package} {version} wants torch{specifier}, which torch_npu {npu} does not serve.": (
        "{package} {version} 要求 torch{specifier}，而 torch_npu {npu} 不支持它。"
    ),
    "{package} {version} wants {needed}; {installed} is installed.": (
        "{package} {version} 要求 {needed}；已安装的是 {installed}。"
    ),
    "{package} {version}: {cause} ({source})": "{package} {version}：{cause}（{source}）",
    "{package}: {path} wants {names}, which torch_npu here does not define.": (
        "{package}：{path} 需要 {names}，而此处的 torch_npu 没有定义。"
    ),
    "{path} is not linked with torch_npu.": "{path} 没有与 torch_npu 链接。",
    "{path} is there.": "存在 {path}。",
    "{path}: {problem}": "{path}：{problem}",
    "{proxy} is set, and MASTER_ADDR {master} is not in no_proxy.": (
        "设置了 {proxy}，而 MASTER_ADDR {master} 不在 no_proxy 中。"
    ),
}
