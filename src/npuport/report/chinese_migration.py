"""Chinese sentences of the report of a migration at import time."""

from __future__ import annotations

MIGRATION_SENTENCES = {
    "CUDA code on an NPU": "在 NPU 上运行的 CUDA 代码",
    "CUDA code: {lines} in {files}: {kinds}": "CUDA 代码：{files}中的 {lines}：{kinds}",
    (
        "Each line once for each effect. At run time: npuport looks at the value when the line runs, and what does "
        "not name CUDA passes through. Left as written: read it. Refused: expected to fail."
    ): (
        "每行的每种效果只列一次。运行时决定：执行到该行时 npuport 查看其值，不涉及 CUDA 的值原样通过。"
        "保持原样：请阅读确认。被拒绝：预计会失败。"
    ),
    (
        "{program} starts programs without this run's variables, so their code is not converted: "
        "put npuport inside, {program} … npuport run …"
    ): "{program} 启动程序时不带本次运行的环境变量，其代码不会被转换：请把 npuport 放到里面，{program} … npuport run …",
    (
        "{tool} compiles the script by itself, so the script stays as it is, and what it imports is converted: "
        "call it inside the script (breakpoint(), cProfile.Profile()), or keep the CUDA code in a module"
    ): (
        "{tool} 自行编译脚本，因此脚本保持原样，只转换它导入的模块："
        "请在脚本内调用（breakpoint()、cProfile.Profile()），或把 CUDA 代码放在模块中"
    ),
    "{program} returns before its job starts: put npuport run into the job's script": (
        "{program} 在作业开始之前就已返回：请把 npuport run 写进作业脚本"
    ),
    (
        "Open MPI gives PYTHONPATH to other hosts only when told so: add -x PYTHONPATH, "
        "or their processes are not converted"
    ): "Open MPI 只在指定时才把 PYTHONPATH 传给其他主机：请加上 -x PYTHONPATH，否则那里的进程不会被转换",
    "srun --export without ALL takes this run's variables away: add ALL to it": (
        "srun --export 不含 ALL 时会去掉本次运行的环境变量：请加上 ALL"
    ),
    "python {flag} ignores PYTHONPATH, through which code is converted: leave {flag} out": (
        "python {flag} 会忽略 PYTHONPATH，而代码正是经由它转换的：请去掉 {flag}"
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
    "left as written": "保持原样",
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
