"""Chinese sentences of comparing by statistics, and of msprobe's dumps."""

from __future__ import annotations

STATISTICS_SENTENCES = {
    "comparing": "比对中",
    "reading {name}": "正在读取 {name}",
    "Compared by statistics alone, which see large errors only; recorded tensors tell more.": (
        "仅按统计量比对，只能发现较大的误差；录制张量可发现更多。"
    ),
    "its result is {after} apart, its inputs {before}": "其结果相差 {after}，其输入相差 {before}",
    "the first call that makes other bits of the same inputs": "输入相同而结果的比特不同的第一个调用",
    "values are not finite where those of the reference are; its inputs are finite alike": (
        "参考运行为有限值处出现非有限值，而两者的输入同样有限"
    ),
    "{path} holds several dumps of step {step}: {one} and {other}. Name the folder of one of them.": (
        "{path} 中第 {step} 步有多份 dump：{one} 和 {other}。请指定其中一份的目录。"
    ),
    "{path} holds no dump of msprobe (step0/rank0/dump.json, …).": (
        "{path} 中没有 msprobe 的 dump（step0/rank0/dump.json 等）。"
    ),
    "{path} is no dump of msprobe: {reason}": ("{path} 不是 msprobe 的 dump：{reason}"),
    "{path} is a dump of {framework}; npuport reads those of PyTorch.": (
        "{path} 是 {framework} 的 dump；npuport 读取 PyTorch 的 dump。"
    ),
    "{path} is not whole JSON ({reason}): the run was stopped while msprobe wrote it. Record it again, or take "
    "a step before it.": (
        "{path} 不是完整的 JSON（{reason}）：msprobe 写入时运行被中断。请重新录制，或使用之前的一步。"
    ),
    "{path} holds no call: msprobe recorded the structure only.": ("{path} 中没有调用：msprobe 只录制了结构。"),
    "{path} is no tensor of msprobe: it is damaged, or holds something else.": (
        "{path} 不是 msprobe 的张量文件：文件已损坏，或内容是别的东西。"
    ),
    "{reference} and {candidate} have nothing in common that can be compared: their calls are of other levels or "
    "models, or one has checksums and the other statistics.": (
        "{reference} 与 {candidate} 没有可以比对的共同内容："
        "两者的调用属于不同级别或不同模型，或一个只有校验和而另一个只有统计量。"
    ),
    "{path} holds {count} values, and dump.json says {shape}: they are not of one run.": (
        "{path} 有 {count} 个值，而 dump.json 中形状为 {shape}：两者不属于同一次运行。"
    ),
    "{path} holds files already: choose another folder, or remove them.": (
        "{path} 中已有文件：请选择其他目录，或先删除这些文件。"
    ),
}
