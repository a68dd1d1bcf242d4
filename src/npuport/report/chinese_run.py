"""Chinese sentences of the report of a simulated run."""

from __future__ import annotations

from npuport.report.chinese_migration import MIGRATION_SENTENCES

RUN_SENTENCES = {
    "(simulated)": "（模拟）",
    (
        "At these lines Python needs a value or a shape from the device, so the device runs dry. Fewer "
        "is faster: log every hundredth step, keep sums on the device, avoid boolean masks."
    ): (
        "在这些行，Python 需要设备上的数值或形状，设备因此空转。次数越少越快：每一百步记录一次日志，在设"
        "备上累加，避免布尔掩码索引。"
    ),
    "CPU fallback": "回退到 CPU",
    "Collectives": "集合通信",
    "Copies between host and device": "主机与设备间的拷贝",
    "Device {device}": "设备 {device}",
    "Falls back to the CPU": "回退到 CPU 的算子",
    (
        "Lines and sizes of tensors alive near the peak, those below 16 KiB (later 1 MiB) not counted. "
        "CANN's workspaces and HCCL's buffers come on top on a real device."
    ): (
        "峰值附近存活张量的创建行与大小，小于 16 KiB（之后为 1 MiB）的不计入。在真实设备上还要加上 CANN "
        "的 workspace 和 HCCL 的缓冲区。"
    ),
    "Memory": "内存",
    "Memory of a device": "单设备内存",
    "More than {number} optimizer steps are needed to see it.": "需要多于 {number} 个优化器步才能判断。",
    "None: the last new shape came in step {step} of {steps}.": (
        "没有：最后一个新形状出现在第 {step} 步（共 {steps} 步）。"
    ),
    "Nothing in this run.": "本次运行中没有。",
    "Operators": "算子",
    (
        "Operators, shapes, lines and memory are those of this run through the real torch_npu. Whether "
        "an operator runs on the chip comes from npuport's facts: point at a status to see source and "
        "certainty. A step ends when the optimizer that steps most often has stepped. Times of an NPU, "
        "its rounding and its workspaces are not simulated."
    ): (
        "算子、形状、代码行和内存来自本次运行，经过真实的 torch_npu。算子能否在芯片上运行来自 npuport 的"
        "事实表：将鼠标停在状态上可看到来源与可信度。调用 step() 最多的优化器完成一次 step() 即为一步。NP"
        "U 的耗时、舍入和 workspace 不在模拟范围内。"
    ),
    "Processes": "进程",
    "Runs on the chip?": "能否在芯片上运行",
    "Shapes over the steps": "各步的形状",
    "Shapes that keep changing": "持续变化的形状",
    "The host waits for the device": "主机等待设备",
    "The run stopped.": "运行中止。",
    (
        "These have no NPU kernel: on a real NPU their tensors are copied to the CPU, computed there and "
        "copied back, and the device waits."
    ): ("这些算子没有 NPU 实现：在真实 NPU 上，张量会拷贝到 CPU 计算再拷回，设备在此期间等待。"),
    (
        "These meet new shapes in step after step. An NPU may compile an operator anew for each of them "
        "(jit_compile, on by default on Ascend910A and Ascend310P). Padding to a few lengths avoids it."
    ): (
        "这些行在一步又一步中遇到新的形状。NPU 可能为每个新形状重新编译算子（jit_compile，在 Ascend910A "
        "和 Ascend310P 上默认开启）。填充到少数几种长度即可避免。"
    ),
    "What the chip does not take": "芯片不接受的类型",
    ("Computed here all the same. Refused: the device raises an error. Untested: no document lists the dtype."): (
        "此处照常计算。被拒绝：设备会报错。未经测试：没有文档列出该数据类型。"
    ),
    "What follows was recorded until then.": "以下是中止之前的记录。",
    "a process did not end by itself": "有进程未自行结束",
    "a shape depends on values": "形状取决于数值",
    "a step": "每步",
    "and {number} more": "另有 {number} 个",
    "bytes": "字节",
    "bytes each": "每次字节",
    "bytes of arguments": "参数字节",
    "calls": "调用次数",
    "change at {lines}": "在 {lines}变化",
    "chip": "芯片",
    "collective": "集合通信",
    "copies to the host": "拷贝到主机",
    "device to device": "设备到设备",
    "device to host": "设备到主机",
    "direction": "方向",
    "dtype": "数据类型",
    "dtypes": "数据类型",
    "end": "结束",
    "ended by itself": "自行结束",
    "filter: name, dtype, line": "筛选：名称、数据类型、代码行",
    "fits": "放得下",
    "host memory": "主机内存",
    "host to device": "主机到设备",
    "last in step": "最后出现于第几步",
    "line": "代码行",
    "line that made it": "创建它的代码行",
    "made of others": "由其他算子组成",
    "memory": "内存",
    "most at {line}": "最多在 {line}",
    "most frequent": "最常见",
    "native": "原生",
    "never": "从不",
    "new shapes after warm-up": "预热后的新形状",
    "no bfloat16": "不支持 bfloat16",
    "no host-device synchronisation": "没有主机与设备的同步",
    ("no host-device synchronisation in a step after the first, {number} outside, {here} of them from {line}"): (
        "首步之后各步内没有主机与设备的同步，步外 {number} 次，其中 {here} 次来自 {line}"
    ),
    "no line of Python": "没有对应的 Python 行",
    "no new shapes after step {step}": "第 {step} 步之后没有新形状",
    "no optimizer step": "没有优化器步",
    "non_blocking": "non_blocking",
    "not in a step": "步内没有",
    "not pinned": "非锁页",
    "nothing": "没有",
    "nothing against it": "未发现障碍",
    "nothing ran on the NPU": "没有任何内容在 NPU 上运行",
    "on the chip": "在芯片上",
    "one process": "1 个进程",
    "operator": "算子",
    "operator calls": "算子调用次数",
    "operators": "算子",
    "optimizer steps": "优化器步数",
    "partly CPU": "部分在 CPU",
    "peak memory {peak} of {limit}": "峰值内存 {peak}，共 {limit}",
    "pinned": "锁页",
    "process": "进程",
    "rank": "rank",
    "rank {rank}": "rank {rank}",
    "rank {rank}: ": "rank {rank}：",
    "ranks": "rank",
    "ranks in the group": "组内 rank 数",
    "reads a value": "读取数值",
    "refused": "被拒绝",
    "report: {files}": "报告：{files}",
    "settle": "趋于稳定",
    "shapes": "形状数",
    "shapes keep changing at {lines}, most at {line}": "形状在 {lines}持续变化，最多在 {line}",
    "stopped": "中止",
    "stopped: {reason}. Recorded until then:": "运行中止：{reason}。此前的记录：",
    "tensors": "张量数",
    "the host waits": "主机等待",
    "the peak came in step {step} at {line}": "峰值出现在第 {step} 步的 {line}",
    "the run ended with exit code {code}": "运行以退出码 {code} 结束",
    "the same as JSON": "同样内容的 JSON",
    "this run takes": "本次运行占用",
    "times": "次数",
    "too few steps": "步数太少",
    "too few steps to see whether shapes settle": "步数太少，无法判断形状是否稳定",
    "too large": "放不下",
    "unknown": "未知",
    "untested dtype": "数据类型未经测试",
    "waits explicitly": "显式等待",
    "was stopped": "被终止",
    "what varies": "变化之处",
    "why": "原因",
    "{allocated} in tensors at the peak, {reserved} taken from the device, of {limit}": (
        "峰值时张量占 {allocated}，从设备申请 {reserved}，共 {limit}"
    ),
    "{input}, dimension {dimension}: {smallest} to {largest}, {distinct} sizes": (
        "{input} 第 {dimension} 维：{smallest} 到 {largest}，{distinct} 种大小"
    ),
    "{native} of {all} operators have an NPU kernel": "{all} 个算子中 {native} 个有 NPU 实现",
    "{number} host-device synchronisations a step, {here} of them from {line}": (
        "每步 {number} 次主机与设备同步，其中 {here} 次来自 {line}"
    ),
    "{number} host-device synchronisations, {here} of them from {line}": (
        "{number} 次主机与设备同步，其中 {here} 次来自 {line}"
    ),
    "{number} line": "{number} 行",
    "{number} lines": "{number} 行",
    "{number} native": "{number} 个原生",
    "{number} on the CPU on a real NPU ({names})": "{number} 个在真实 NPU 上回退到 CPU（{names}）",
    "{number} operator": "{number} 个算子",
    "{number} operators": "{number} 个算子",
    "{number} optimizer step": "{number} 个优化器步",
    "{number} optimizer steps": "{number} 个优化器步",
    "{number} partly on the CPU ({names})": "{number} 个部分在 CPU 上（{names}）",
    "{number} processes": "{number} 个进程",
    "{number} refused": "{number} 个被拒绝",
    "{number} refused ({names})": "{number} 个被拒绝（{names}）",
    "{number} step": "{number} 步",
    "{number} steps": "{number} 步",
    "{number} unknown ({names})": "{number} 个未知（{names}）",
    "{number} unsure": "{number} 个不确定",
    "{number} untested for a dtype ({names})": "{number} 个的数据类型未经测试（{names}）",
    "{number} ×": "{number} 次",
    "{number} × a step": "每步 {number} 次",
    "{path} was not written: {reason}": "未能写入 {path}：{reason}",
    "{percent} % of {limit}": "{limit} 的 {percent} %",
    "{script} on a simulated {chip}": "{script}，在模拟的 {chip} 上",
    "{seconds} s here, which says nothing about an NPU": "此处用时 {seconds} 秒，与 NPU 的耗时无关",
    "{tensor} on the host": "{tensor}（主机）",
    "… and {number} more": "… 另有 {number} 种",
    (
        "torch.compile: inductor has no kernels for the simulated NPU, so captured graphs run operator by operator; a "
        "real NPU needs triton-ascend for them"
    ): ("torch.compile：inductor 没有面向模拟 NPU 的 kernel，因此捕获的图逐算子执行；真实 NPU 上需要 triton-ascend"),
} | MIGRATION_SENTENCES
