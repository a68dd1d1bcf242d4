"""Chinese sentences on why a state of a machine matters: those of the tables of facts."""

from __future__ import annotations

REASONS = {
    "A build waits for ever while another one seems to run: training hangs before its first step.": (
        "当另一个构建似乎仍在进行时，构建会一直等待：训练在第一步之前挂起。"
    ),
    "A device whose health is not OK fails or hangs in the middle of training.": (
        "健康状态不是 OK 的设备会在训练途中失败或挂起。"
    ),
    (
        "A firewall that does not know the ports of the job lets connections between machines time out "
        "(EI0006, Socket Timeout)."
    ): ("防火墙若不放行任务端口，机器间的连接会超时（EI0006、Socket Timeout）。"),
    ("A process needs one node for each NPU and three for managing them: davinci_manager, devmm_svm and hisi_hdc."): (
        "进程需要每个 NPU 的设备节点，以及三个管理节点：davinci_manager、devmm_svm 和 hisi_hdc。"
    ),
    "ASCEND_LAUNCH_BLOCKING=1 turns the task queue off, whatever TASK_QUEUE_ENABLE says.": (
        "ASCEND_LAUNCH_BLOCKING=1 会关闭任务队列，无论 TASK_QUEUE_ENABLE 为何值。"
    ),
    (
        "ATB calls functions of the CANN release it was built with; beside another, libatb.so or "
        "libtbe_adapter.so end with an undefined symbol."
    ): (
        "ATB 调用其构建时所用 CANN 版本的函数；与其他版本混用时，libatb.so 或 libtbe_adapter.so 会报 undefined symbol。"
    ),
    "Between machines the NPUs talk over their own network interfaces, whose addresses are in /etc/hccn.conf.": (
        "机器之间 NPU 通过自带网口通信，其地址写在 /etc/hccn.conf 中。"
    ),
    "Build MMCV 2.2 or later from source, with MMCV_WITH_OPS=1 FORCE_NPU=1, after torch_npu is installed.": (
        "请在安装 torch_npu 之后，以 MMCV_WITH_OPS=1 FORCE_NPU=1 从源码构建 MMCV 2.2 或更高版本。"
    ),
    "CANN calls driver functions that an older driver lacks (EE1015).": "CANN 会调用旧驱动中没有的函数（EE1015）。",
    (
        "CANN looks for operators and configuration where these variables point (148049, E40002, EZ errors "
        "where nothing is there)."
    ): ("CANN 在这些变量所指位置查找算子和配置（若不存在则报 148049、E40002 或 EZ 类错误）。"),
    "CANN reaches the device through the driver's libraries; without them every call to the device fails.": (
        "CANN 通过驱动的库访问设备；缺少这些库时，对设备的每次调用都会失败。"
    ),
    (
        "CANN's operator compiler is Python and imports these packages; without them the first operator "
        "ends with EH9999, E40020 or 500001."
    ): ("CANN 的算子编译器由 Python 编写并会导入这些软件包；缺少时首个算子报 EH9999、E40020 或 500001。"),
    (
        "CANN's operator compiler up to 8.2 fails with NumPy 2: the first use of a device ends with "
        "SetPrecisionMode, AclSetCompileopt(ACL_PRECISION_MODE), error 500001."
    ): (
        "CANN 8.2 及更早版本的算子编译器不支持 NumPy 2：首次使用设备时报 SetPrecisionMode、"
        "AclSetCompileopt(ACL_PRECISION_MODE) 错误 500001。"
    ),
    "Daily and private builds are in no table of versions: what they fit cannot be said from outside.": (
        "每日构建和私有构建不在任何版本配套表中：从外部无法判断它们与什么配套。"
    ),
    (
        "Data loader workers and HCCL keep many files and sockets open; at the limit they fail with Too "
        "many open files."
    ): ("数据加载进程和 HCCL 会同时打开大量文件和套接字；达到上限时报 Too many open files。"),
    (
        "Data loader workers hand batches over through /dev/shm; in a full one they die with Bus error. "
        "Containers get 64 MiB unless told otherwise."
    ): ("数据加载进程通过 /dev/shm 传递批次；空间不足时会以 Bus error 退出。容器默认只有 64 MiB。"),
    ("Device numbers must exist, ascend and not repeat (EE1003, EE2002; in any other order the device count is 0)."): (
        "设备号必须存在、递增且不重复（EE1003、EE2002；顺序不对时设备数为 0）。"
    ),
    "Devices with TLS and without cannot connect to one another (EI0016, EI0006).": (
        "启用与未启用 TLS 的设备之间无法建链（EI0016、EI0006）。"
    ),
    "Good for finding an error, slow for training.": "适合排错，但会拖慢训练。",
    (
        "HCCL and gloo connect through the interface that is named; one that does not exist ends with "
        "EI0001 or a connection failure."
    ): ("HCCL 和 gloo 通过指定的网卡连接；网卡不存在时报 EI0001 或连接失败。"),
    (
        "HCCL listens on 32 host ports from 60000; a program that was given one of them by the kernel "
        "blocks the start (EI0019)."
    ): ("HCCL 在主机上监听自 60000 起的 32 个端口；若内核把其中之一分配给其他程序，启动会失败（EI0019）。"),
    "HCCL reads the ranks from this file (EI0004, EI0014 where it is wrong).": (
        "HCCL 从该文件读取 rank 信息（有误时报 EI0004、EI0014）。"
    ),
    "HCCL uses PCIe or RoCE within a node; HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE may not both be 1.": (
        "HCCL 在节点内使用 PCIe 或 RoCE；HCCL_INTRA_PCIE_ENABLE 与 HCCL_INTRA_ROCE_ENABLE 不能同时为 1。"
    ),
    "HCCL_DETERMINISTIC=strict works in INF_NAN mode only.": "HCCL_DETERMINISTIC=strict 仅在 INF_NAN 模式下可用。",
    (
        "Here packages lie in lib64; build scripts that write lib, such as that of Apex for Ascend, do not "
        "find torch (link torch failed)."
    ): ("此处软件包位于 lib64；昇腾 Apex 等写死 lib 的构建脚本会找不到 torch（link torch failed）。"),
    "Importing torch_npu ends with module 'torch_npu.dynamo.torchair' has no attribute 'get_npu_backend'.": (
        "导入 torch_npu 时报 module 'torch_npu.dynamo.torchair' has no attribute 'get_npu_backend'。"
    ),
    "Install a newer DeepSpeed, or, for Atlas 910, deepspeed 0.9.2 with deepspeed_npu.": (
        "请安装更新的 DeepSpeed；Atlas 910 可使用 deepspeed 0.9.2 加 deepspeed_npu。"
    ),
    "Install torch 2.5.1 or later with its torch_npu, or transformers 4.49.": (
        "请安装 torch 2.5.1 或更高版本及其配套的 torch_npu，或安装 transformers 4.49。"
    ),
    "Install torch_npu 2.1.0.post5 or later.": "请安装 torch_npu 2.1.0.post5 或更高版本。",
    "Install transformers 4.48.1 or later.": "请安装 transformers 4.48.1 或更高版本。",
    "Its NPU sources are written for torch_npu 1.11: undefined symbol c10_npu::NpuRunMode::cur_mode.": (
        "其 NPU 源码是为 torch_npu 1.11 编写的：undefined symbol c10_npu::NpuRunMode::cur_mode。"
    ),
    "Its operators are compiled without NPU kernels: calls end with implementation for device npu:0 not found.": (
        "其算子编译时没有包含 NPU 实现：调用时报 implementation for device npu:0 not found。"
    ),
    "Libraries of another processor architecture cannot be loaded.": "无法加载其他处理器架构的库。",
    (
        "Libraries of two CANN releases in one process call each other with the wrong interface: undefined "
        "symbols, or errors at the first operator."
    ): ("同一进程中混用两个 CANN 版本的库会以错误的接口互相调用：报 undefined symbol，或在首个算子处出错。"),
    (
        "Models published in bfloat16 need float16 (or float32) here, and float16 needs a loss scaler; "
        "overflow saturates instead of giving Inf."
    ): (
        "以 bfloat16 发布的模型在此需改用 float16（或 float32），float16 需要 loss scaler；此处溢出按饱和处"
        "理，不产生 Inf。"
    ),
    (
        "NVIDIA's Apex calls CUDA kernels (amp_C); Apex for Ascend is a patched build of it with +ascend "
        "in its version."
    ): ("NVIDIA 的 Apex 调用 CUDA kernel（amp_C）；昇腾 Apex 是其打补丁后的版本，版本号中带有 +ascend。"),
    "No part of torch_npu, HCCL or CANN reads this name, as far as is known.": (
        "据目前所知，torch_npu、HCCL 和 CANN 都不读取该名称。"
    ),
    (
        "No second program can listen on a port (EI0019, Address already in use); often it is a training "
        "that was not ended."
    ): ("其他程序无法再监听同一端口（EI0019、Address already in use）；常见原因是旧训练未结束。"),
    "Nothing on an NPU reads the CUDA spelling.": "NPU 上没有程序读取 CUDA 的写法。",
    "On A2 and A3 saturation needs INF_NAN_MODE_FORCE_DISABLE=1 too; INF_NAN_MODE_ENABLE=0 alone is refused.": (
        "A2 和 A3 上启用饱和模式还需 INF_NAN_MODE_FORCE_DISABLE=1；仅设 INF_NAN_MODE_ENABLE=0 会被拒绝。"
    ),
    "On aarch64 a libgomp that is loaded late finds no room left: cannot allocate memory in static TLS block.": (
        "在 aarch64 上较晚加载的 libgomp 没有空间可用：cannot allocate memory in static TLS block。"
    ),
    (
        "Operators are compiled for each chip and come in a package of their own; without it they end with "
        "Cannot find bin of op or EZ9999."
    ): ("算子按芯片编译，位于单独的软件包中；缺少时报 Cannot find bin of op 或 EZ9999。"),
    (
        "Operators come with releases: code written for a newer torch_npu ends with module 'torch_npu' has "
        "no attribute npu_geglu or _npu_rotary_embedding."
    ): (
        "算子随版本提供：为更新的 torch_npu 编写的代码会报 module 'torch_npu' has no attribute npu_geglu 或"
        " _npu_rotary_embedding。"
    ),
    "Other machines cannot reach this one at its loopback address.": "其他机器无法通过回环地址访问本机。",
    "Packages are those of the Python that is looked at; the training runs in the environment that is active.": (
        "软件包取自所检查的 Python；而训练在已激活的环境中运行。"
    ),
    "Programs that honour the proxy send requests for the other machines of the job to it, where they hang.": (
        "遵循代理设置的程序会把发往任务中其他机器的请求交给代理，从而挂起。"
    ),
    (
        "Python imports the first copy on its path while pip looks at another; a copy written over another "
        "leaves files of both."
    ): ("Python 导入路径上的第一份，而 pip 查看的是另一份；相互覆盖的安装会留下两者的文件。"),
    (
        "Python imports the folder of sources in the current directory before the installed package: No "
        "module named torch_npu._C."
    ): ("Python 会先导入当前目录中的源码目录而非已安装的软件包：No module named torch_npu._C。"),
    (
        "Python of conda loads conda's libstdc++ first; libraries built with the newer one of the system "
        "then end with version GLIBCXX_… not found."
    ): ("conda 的 Python 会先加载 conda 的 libstdc++；以系统较新版本构建的库会报 version GLIBCXX_… not found。"),
    (
        "Setting up links must give up before a collective does, and waiting for an event after it; "
        "otherwise the wrong timeout ends the training and hides the cause."
    ): ("建链应先于集合通信超时，等待 event 应晚于集合通信超时；否则由错误的超时结束训练并掩盖原因。"),
    (
        "Since torch 2.5 torch loads torch_npu by itself; with TORCH_DEVICE_BACKEND_AUTOLOAD=0 each "
        "program must import torch_npu."
    ): (
        "自 torch 2.5 起 torch 会自动加载 torch_npu；设置 TORCH_DEVICE_BACKEND_AUTOLOAD=0 后，每个程序都必"
        "须自行导入 torch_npu。"
    ),
    (
        "The driver names the firmware versions that it works with; beside others device start fails, for "
        "example with 507033."
    ): ("驱动列出了它支持的固件版本；与其他版本搭配时设备启动失败，例如 507033。"),
    "The driver was not installed for all users: only root and members of its group may open the devices.": (
        "驱动安装时未面向所有用户：只有 root 和其用户组成员可以打开设备。"
    ),
    (
        "The extension was compiled against another torch_npu: its import ends with an undefined symbol, "
        "such as c10_npu::NpuRunMode::cur_mode or AclrtPeekAtLastError."
    ): (
        "该扩展针对另一个 torch_npu 编译：导入时报 undefined symbol，例如 c10_npu::NpuRunMode::cur_mode 或 "
        "AclrtPeekAtLastError。"
    ),
    "The loader finds libascendcl.so and libascend_hal.so only in folders on LD_LIBRARY_PATH.": (
        "加载器只在 LD_LIBRARY_PATH 的目录中查找 libascendcl.so 和 libascend_hal.so。"
    ),
    "The package is written for CUDA.": "该软件包是为 CUDA 编写的。",
    "The package names this requirement itself.": "该软件包自己声明了此依赖。",
    "The package's records are there, its compiled part for this Python is not: No module named torch_npu._C.": (
        "软件包记录存在，但缺少面向该 Python 的编译部分：No module named torch_npu._C。"
    ),
    "The plug-in patches DeepSpeed 0.6 and 0.9.2; later ones support the NPU themselves.": (
        "该插件针对 DeepSpeed 0.6 和 0.9.2；之后的版本自身支持 NPU。"
    ),
    "The value is refused (EI0001 for HCCL) or ignored.": "该值会被拒绝（HCCL 报 EI0001）或被忽略。",
    "The wheel was built on a newer system: its libraries end with version GLIBC_… not found.": (
        "该 wheel 在更新的系统上构建：加载其库时报 version GLIBC_… not found。"
    ),
    (
        "This DeepSpeed hands only NCCL's variables on to other machines: HCCL_*, ASCEND_* and "
        "LD_LIBRARY_PATH stay behind."
    ): ("该 DeepSpeed 只向其他机器传递 NCCL 的变量：HCCL_*、ASCEND_* 和 LD_LIBRARY_PATH 都不会传递。"),
    "This DeepSpeed has no accelerator named npu.": "该 DeepSpeed 没有名为 npu 的加速器。",
    "This chip has no bfloat16: a model or a Trainer that asks for it ends with an unsupported data type.": (
        "该芯片不支持 bfloat16：要求 bfloat16 的模型或 Trainer 会因数据类型不支持而失败。"
    ),
    (
        "This transfer_to_npu belongs to an old toolkit and uses names that newer torch_npu lack (module "
        "'torch_npu' has no attribute '_isinstance')."
    ): (
        "该 transfer_to_npu 属于旧版 toolkit，使用了新版 torch_npu 中没有的名称（module 'torch_npu' has no "
        "attribute '_isinstance'）。"
    ),
    "This version, or this pair of versions, has a fault on Ascend that was reported in public.": (
        "该版本或该版本组合在昇腾上有已公开报告的缺陷。"
    ),
    "Toolkit and operator package call each other and must be of one release.": (
        "toolkit 与算子包相互调用，必须为同一版本。"
    ),
    "Trainer does not choose the NPU, and the training runs on the CPU.": "Trainer 没有选择 NPU，训练在 CPU 上进行。",
    "Triton-Ascend, which torch.compile with inductor needs, is named for torch 2.7.1 and 2.9.0 only.": (
        "torch.compile 的 inductor 需要 Triton-Ascend，文档仅列出 torch 2.7.1 和 2.9.0。"
    ),
    "Uninstall deepspeed_npu and leave its import away.": "请卸载 deepspeed_npu 并去掉对它的导入。",
    "Use torch 2.7.1 or 2.9.0 with torch.compile, or train without it.": (
        "请在 torch 2.7.1 或 2.9.0 上使用 torch.compile，或不使用它训练。"
    ),
    (
        "What other programs hold is missing to the training (NPU out of memory), and a job that is still "
        "closing blocks the next one (EJ0001)."
    ): ("其他程序占用的显存会使训练不足（NPU out of memory）；尚在关闭的任务会阻塞下一个任务（EJ0001）。"),
    "With HCCL_WHITELIST_DISABLE=0 HCCL accepts only addresses from the file that HCCL_WHITELIST_FILE names.": (
        "HCCL_WHITELIST_DISABLE=0 时，HCCL 只接受 HCCL_WHITELIST_FILE 所指文件中的地址。"
    ),
    (
        "Without an NPU nothing can be said about driver, firmware and devices; Python packages and "
        "variables are checked all the same, and npuport run --sim runs the training on a simulated NPU."
    ): (
        "没有 NPU 就无法检查驱动、固件和设备；Python 软件包与环境变量仍会检查，并可用 npuport run --sim 在"
        "模拟 NPU 上运行训练。"
    ),
    (
        "from_pretrained moves tensors to a device given as a number, which this torch takes for CUDA: "
        "Torch not compiled with CUDA enabled."
    ): ("from_pretrained 把张量移到以数字表示的设备，而该 torch 将其当作 CUDA：Torch not compiled with CUDA enabled。"),
    (
        "max_split_size_mb and garbage_collection_threshold cannot be combined with "
        "expandable_segments:True, max_split_size_mb must be above 20, and only one of "
        "PYTORCH_NPU_ALLOC_CONF and PYTORCH_ALLOC_CONF may be set."
    ): (
        "max_split_size_mb 和 garbage_collection_threshold 不能与 expandable_segments:True 同时使用，"
        "max_split_size_mb 必须大于 20，且 PYTORCH_NPU_ALLOC_CONF 与 PYTORCH_ALLOC_CONF 只能设置一个。"
    ),
    "npu-smi asks the driver for every device; what it cannot see, torch_npu cannot use either.": (
        "npu-smi 向驱动查询每个设备；它看不到的设备，torch_npu 也无法使用。"
    ),
    "pip exchanged torch for another package's sake; torch_npu stayed behind.": (
        "pip 为了另一个软件包替换了 torch，而 torch_npu 没有随之更换。"
    ),
    "pip then takes the newest torch, and torch_npu goes with exactly one.": (
        "pip 会安装最新的 torch，而 torch_npu 只与一个版本配套。"
    ),
    (
        "set_env.sh puts CANN's libraries and operators on the paths; without it importing torch_npu ends "
        "with libhccl.so or libascendcl.so: cannot open shared object file."
    ): (
        "set_env.sh 会把 CANN 的库和算子加入路径；否则导入 torch_npu 时会报 libhccl.so 或 libascendcl.so: "
        "cannot open shared object file。"
    ),
    "torch alone does not know the device npu.": "仅有 torch 无法识别 npu 设备。",
    "torch and ATB must be built with one C++ ABI; otherwise names such as atb::CreateOperation are undefined.": (
        "torch 与 ATB 必须使用相同的 C++ ABI；否则 atb::CreateOperation 等名称未定义。"
    ),
    "torch extensions (Apex, MMCV with operators, DeepSpeed operators) are compiled on the machine.": (
        "torch 扩展（Apex、带算子的 MMCV、DeepSpeed 算子）在本机编译。"
    ),
    "torch_npu has compiled parts for certain Python versions only (No module named torch_npu._C on others).": (
        "torch_npu 只为特定 Python 版本提供编译部分（其他版本报 No module named torch_npu._C）。"
    ),
    "torch_npu is a plug-in of torch.": "torch_npu 是 torch 的插件。",
    (
        "torch_npu is built against one torch; beside another, importing it ends with an undefined symbol "
        "or it registers the wrong device hooks, and since torch 2.5 even import torch fails because torch "
        "loads it."
    ): (
        "torch_npu 针对特定版本的 torch 构建；与其他版本混用时，导入会报 undefined symbol 或注册错误的设备"
        "钩子；自 torch 2.5 起 torch 会自动加载它，连 import torch 也会失败。"
    ),
    "torch_npu is built on CANN's libraries (libascendcl.so, libhccl.so); without them it cannot be imported.": (
        "torch_npu 依赖 CANN 的库（libascendcl.so、libhccl.so）；没有它们就无法导入。"
    ),
    (
        "torch_npu is tested with one CANN release; with another, functions are missing (undefined symbol: "
        "MsprofSysCycleTime) or operators refuse a data type (Conv3D with DT_BFLOAT16)."
    ): (
        "torch_npu 针对一个 CANN 版本测试；与其他版本搭配时会缺少函数（undefined symbol: MsprofSysCycleTime"
        "），或算子不支持某些数据类型（Conv3D 的 DT_BFLOAT16）。"
    ),
    "torch_npu knows chips by name and ends with Unsupported SOC version for any other.": (
        "torch_npu 按名称识别芯片，遇到未知芯片时报 Unsupported SOC version。"
    ),
    (
        "torch_npu loads ATB for some fused operators, such as _npu_rotary_embedding, at their first call; "
        "training scripts for large models use them."
    ): ("torch_npu 的部分融合算子（如 _npu_rotary_embedding）在首次调用时加载 ATB；大模型训练脚本会用到它们。"),
    (
        "torch_npu wants the CPU build of torch: the CUDA build takes gigabytes, and torch.cuda answers "
        "where code should find the NPU."
    ): ("torch_npu 需要 CPU 版 torch：CUDA 版占用数 GB，且代码应当找到 NPU 时 torch.cuda 会给出答复。"),
    (
        "torch_npu's documents build with GCC 11.2; extensions against current torch need C++17, which "
        "older ones lack in part (filesystem not found)."
    ): ("torch_npu 文档使用 GCC 11.2 构建；当前 torch 的扩展需要 C++17，旧编译器支持不全（filesystem not found）。"),
    (
        "torch_npu's documents name 910, A2, A3 and 950 for training; on inference chips operators for "
        "training are missing or fail, for example aclnnCast in a backward pass."
    ): (
        "torch_npu 文档列出的训练芯片为 910、A2、A3 和 950；推理芯片上缺少训练算子或会失败，例如反向传播中"
        "的 aclnnCast。"
    ),
}
