"""Chinese sentences of recording with `npuport run --dump`."""

from __future__ import annotations

RECORDING_SENTENCES = {
    (
        "what the recorded steps compute is copied to host memory and to {path}: several times the memory of a "
        "step, which takes a few times as long; the size of the first one is said when it is written."
    ): (
        "所记录的步的计算结果会复制到主机内存和 {path}：需要数倍于一步的内存，该步耗时也会增至数倍；"
        "第一步写完后会给出其大小。"
    ),
    "the {what} of step {step} are {size} MB in {path}, written in {seconds} s beside the training": (
        "第 {step} 步的 {what} 为 {size} MB，位于 {path}，在训练之余用 {seconds} 秒写完"
    ),
    "step {step} is recorded: {reason}": "已记录第 {step} 步：{reason}",
    "the loss is {loss}": "loss 为 {loss}",
    "the loss is {loss}, of the steps before {usual}": "loss 为 {loss}，此前各步为 {usual}",
    "{what} is not finite": "{what} 不是有限值",
    "{path} is there already, of another process; this one records nothing more.": (
        "{path} 已由另一进程写入；本进程不再记录。"
    ),
    "step {step} has {size} MB, and {path} has room for {free}: nothing more is recorded.": (
        "第 {step} 步有 {size} MB，而 {path} 只剩 {free} MB：不再记录。"
    ),
    "{path} cannot be written ({reason}): nothing more is recorded.": "无法写入 {path}（{reason}）：不再记录。",
    "{name} takes numbers such as 0, 3,10-12 or 5- (all from 5 on), not {text}": (
        "{name} 接受编号，例如 0、3,10-12 或 5-（从 5 起全部），而不是 {text}"
    ),
    "{name} is one of {allowed}, not {value}": "{name} 应为 {allowed} 之一，而不是 {value}",
    (
        "the first call that makes other bits of the same inputs is {operator} ({place}): no error, unless both should "
        "be the same"
    ): "最先以相同输入得到不同比特的调用是 {operator}（{place}）：除非两者本应相同，否则不算错误",
}
