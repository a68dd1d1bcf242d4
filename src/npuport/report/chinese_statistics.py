"""Chinese sentences of comparing by statistics, and of msprobe's dumps."""

from __future__ import annotations

STATISTICS_SENTENCES = {
    "Compared by statistics alone, which see large errors only; recorded tensors tell more.": (
        "仅按统计量比对，只能发现较大的误差；录制张量可发现更多。"
    ),
    "its result is {after} apart, its inputs {before}": "其结果相差 {after}，其输入相差 {before}",
    "values are not finite where those of the reference are; its inputs are finite alike": (
        "参考运行为有限值处出现非有限值，而两者的输入同样有限"
    ),
}
