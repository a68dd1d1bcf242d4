"""Chinese sentences of the report of a migration at import time."""

from __future__ import annotations

MIGRATION_SENTENCES = {
    "CUDA code on an NPU": "在 NPU 上运行的 CUDA 代码",
    "CUDA code: {lines} in {files}: {kinds}": "CUDA 代码：{files}中的 {lines}：{kinds}",
    (
        "Each line once for each effect. At run time: npuport looks at the value when the line runs, and what does "
        "not name CUDA passes through. Refused: expected to fail."
    ): (
        "每行的每种效果只列一次。运行时决定：执行到该行时 npuport 查看其值，不涉及 CUDA 的值原样通过。"
        "被拒绝：预计会失败。"
    ),
    "Files that could not be converted": "无法转换的文件",
    "Libraries that npuport stands in for": "由 npuport 代替的库",
    "Lines of libraries that asked for CUDA and got the NPU": "第三方库中请求 CUDA 而得到 NPU 的代码行",
    "Modules and processes": "模块与进程",
    "NPUPORT_DEVICE asks for another device, there is CUDA on this machine, or torch_npu is not installed.": (
        "NPUPORT_DEVICE 指定了其他设备，或本机有 CUDA，或未安装 torch_npu。"
    ),
    "Variables of CUDA and NCCL": "CUDA 与 NCCL 的环境变量",
    "What became of CUDA code": "CUDA 代码的去向",
    (
        "Your files are as they were: code is converted in memory as Python loads it. This page does not say how "
        "fast or how exact the run was."
    ): "您的文件没有改动：代码在 Python 加载时于内存中转换。本页不说明运行的速度与精度。",
    "call": "调用",
    "command": "命令",
    "decided at run time": "运行时决定",
    "emulated": "模拟",
    "filter: file, code": "筛选：文件、代码",
    "libraries: {lines} asked for CUDA and got the NPU": "第三方库：{lines}请求 CUDA 而得到 NPU",
    "lines": "行数",
    "modules": "模块数",
    "no CUDA code in {modules}": "{modules}中没有 CUDA 代码",
    "no Python script of your own ran": "没有运行您自己的 Python 脚本",
    "nothing was converted: no NPU was wanted for this run": "没有转换任何代码：本次运行不需要 NPU",
    "on the NPU": "在 NPU 上",
    "processes": "进程数",
    "stand-ins: {names}": "替代库：{names}",
    "the same": "相同",
    "what stands for it": "替换为",
    "without effect": "无效果",
    "your code": "您的代码",
    "{number} module": "{number} 个模块",
    "{number} modules": "{number} 个模块",
    "{seconds} s": "{seconds} 秒",
}
