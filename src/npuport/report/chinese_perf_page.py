"""Chinese sentences of the page of `npuport perf analyze`."""

from __future__ import annotations

PERFORMANCE_PAGE_SENTENCES = {
    "Performance": "性能",
    "Where the time of a step goes": "单步时间的去向",
    "Not everything could be read; what follows is of the rest:": "有内容无法读取；以下只涉及其余部分：",
    "Profiles: average step of each": "各 profile 的平均单步",
    "A click shows one below.": "点击后在下方显示。",
    "Steps, timelines and tables of the first {number} are on this page.": "前 {number} 个附有各步、时间线与表格。",
    "There are more steps; all of them are in the averages, and in what --json prints.": (
        "还有更多步；平均值包含全部步，--json 会输出全部步。"
    ),
    "This rank's details are not on the page: analyse its path alone.": (
        "本页没有该 rank 的详细内容：请单独分析它的路径。"
    ),
    "average step": "平均单步",
    "computing": "计算",
    "behind computing": "被计算掩盖",
    "all findings together": "全部发现合计",
    "at most {share} of the step": "最多为单步的 {share}",
    "Steps and their parts": "各步及其组成",
    (
        "The parts add up to the step. Computing and copying have the colour of the phase that launched them; the rest "
        "is communication that no computing hides, and idleness by its reason."
    ): "各部分之和等于单步时间。计算与拷贝的颜色表示下发它们的阶段；其余是未被计算掩盖的通信，以及按原因划分的空闲。",
    "step": "步",
    "all": "全部",
    "One step over time": "一步的时间线",
    "nearer": "放大",
    "farther": "缩小",
    "whole step": "整步",
    "drag over a span to see it larger; Ctrl and the wheel, or + − ← → once it was clicked": (
        "拖动选择一段即可放大；也可用 Ctrl 加滚轮，或点击后用 + − ← →"
    ),
    "drawn in bins of {time}: each shows what fills most of it": "按 {time} 的间隔绘制：每格显示其中占比最大的部分",
    "Findings, by what a step could gain at most": "发现，按单步最多可节省的时间排列",
    "Nothing that is worth a look was found.": "没有发现值得关注的问题。",
    "not shown, below 1 % of the step: {number}": "低于单步 1 %、未显示：{number}",
    "finding": "发现",
    "costs {time} ms": "耗时 {time} ms",
    "confidence": "可信度",
    "explains the same time as {others}: do not add up their gains": "与 {others} 解释的是同一段时间：收益不能相加",
    "evidence": "依据",
    "To check": "验证",
    "show in the timeline": "在时间线中显示",
    "By code": "按代码",
    (
        "Width is time of an average step, the code that runs inside of other code stands below it: modules or Python "
        "frames, their operators, their kernels. What runs backward stands in the frames of its forward. A click "
        "enlarges."
    ): (
        "宽度是平均单步的时间，被调用的代码在下方：模块或 Python 帧、其中的算子、算子的 kernel。"
        "反向位于其前向所在的帧中。点击可放大。"
    ),
    "time of kernels": "kernel 时间",
    "time of the host": "主机时间",
    "mark names": "标记名称",
    "everything": "全部代码",
    "training loop": "训练循环",
    "other threads": "其他线程",
    "launch not recorded": "未记录下发",
    "times in a step": "次/步",
    "host": "主机",
    "device": "设备",
    "longest": "最长",
    "Kernels and operators": "Kernel 与算子",
    "kernels": "kernel",
    "kernel": "kernel",
    "search names": "搜索名称",
    "of an average step, in ms; an operator without those inside of it": "平均单步，单位 ms；算子不含其内部的算子",
    "core": "核",
    "count": "次数",
    "time": "时间",
    "share": "占比",
    "Communication": "通信",
    "group": "通信组",
    "Milliseconds of an average step. Where nothing stands, the profile does not tell moving from waiting.": (
        "平均单步的毫秒数。空白表示 profile 没有区分传输与等待。"
    ),
    "Held at the peak, of what was allocated while profiling:": "峰值时占用的内存（仅采集期间分配的）：",
    "memory": "内存",
    "pieces": "块数",
    "peak": "峰值",
    "allocated": "已分配",
    "reserved": "已预留",
    "PyTorch's allocator": "PyTorch 分配器",
    "the whole process": "整个进程",
    "the numbers of this page as JSON": "本页数据（JSON）",
}
