"""Chinese sentences of `npuport precision check-ops`, `overflow` and `bisect`."""

from __future__ import annotations

CHECKING_SENTENCES = {
    "a collective": "集合通信",
    "its result is no function of its inputs": "结果不由输入决定",
    "random": "随机算子",
    "cannot be executed: {reason}": "无法执行：{reason}",
    "an argument was not recorded ({what})": "有一个参数未被记录（{what}）",
}
