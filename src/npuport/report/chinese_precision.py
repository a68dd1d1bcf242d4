"""Chinese sentences of `npuport precision`."""

from __future__ import annotations

PRECISION_SENTENCES = {
    "Criteria": "标准",
    "Curves": "曲线",
    "FAILS": "不满足",
    "The curves agree": "曲线一致",
    "The curves do not agree": "曲线不一致",
    "a spike at step {step} that the reference does not have": "第 {step} 步出现尖峰，参考运行没有",
    "absolute": "绝对",
    "criterion": "标准",
    "higher": "偏高",
    "holds": "满足",
    "limits": "限值",
    "lower": "偏低",
    "moved by {steps} logged steps the curves agree: one of them counts differently": (
        "移动 {steps} 个记录步后曲线一致：其中一方计数方式不同"
    ),
    "reference against itself": "参考运行自身的波动",
    "relative": "相对",
    "relative difference": "相对差异",
    "source": "来源",
    "the candidate ends at step {step}, the reference at {of_reference}": (
        "被测运行止于第 {step} 步，参考运行止于第 {of_reference} 步"
    ),
    "the candidate is nearly always {which}: {bias} on average": "被测运行几乎总是{which}：平均 {bias}",
    "the curves part at step {step}": "曲线从第 {step} 步开始分开",
    "the difference grows: {early} in the first quarter, {late} in the last": (
        "差异在增大：前四分之一 {early}，后四分之一 {late}"
    ),
    "the runs log different steps: the candidate is interpolated at those of the reference": (
        "两次运行记录的步数不同：被测运行已按参考运行的步插值"
    ),
    "the two logs have no curve in common steps": "两份日志没有共同步上的曲线",
    "within the reference's own fluctuation": "在参考运行自身波动之内",
    "{metric} is not finite from step {step} on": "{metric} 从第 {step} 步起不是有限值",
    "{path} holds no curve: no line with a loss or a gradient norm, no JSON or CSV of them.": (
        "{path} 中没有曲线：没有含 loss 或梯度范数的行，也没有它们的 JSON 或 CSV。"
    ),
    "{path} is TensorBoard's; reading it takes the package tensorboard:\n  pip install tensorboard": (
        "{path} 属于 TensorBoard；读取它需要 tensorboard 包：\n  pip install tensorboard"
    ),
    "{steps} steps: the criteria are meant for {enough} or more": "{steps} 步：这些标准适用于 {enough} 步以上",
}
