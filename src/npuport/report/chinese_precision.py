"""Chinese sentences of `npuport precision`."""

from __future__ import annotations

PRECISION_SENTENCES = {
    "The ranks together compute what the single device computes.": "各 rank 合起来的计算与单设备一致。",
    "The runs have different ranks ({reference} and {candidate}): compare each with a run on one device.": (
        "两次运行的 rank 不同（{reference} 与 {candidate}）：请分别与单设备运行比较。"
    ),
    "one device against {ranks}": "单设备与 {ranks} 对比",
    "the ranks together ({layout}) are {apart} apart from the single device; {floor} is usual here": (
        "各 rank 合起来（{layout}）与单设备相差 {apart}；此处通常为 {floor}"
    ),
    "usually {floor} apart": "通常相差 {floor}",
    ", the first is {name}": "，首先是 {name}",
    "An error is a share of the result, measured by replaying the call alone in float64 with its own inputs.": (
        "误差为占结果的比例，用该调用自身的输入单独以 float64 重算得到。"
    ),
    "Calls": "调用",
    "Confidence: {confidence}.": "置信度：{confidence}。",
    "Modules in the order in which they run. The colour is the largest error of a call inside, over what calls of this "
    "pair usually show; a click on a name shows its calls below.": (
        "模块按执行顺序排列。颜色为其中调用的最大误差与这两次运行通常误差之比；点击名称可在下方查看其调用。"
    ),
    "Next:": "下一步：",
    "Nothing before it is suspected; what uses its result inherits the error.": (
        "在它之前没有可疑之处；使用其结果的都继承了该误差。"
    ),
    "Precision": "精度",
    "Suspects by rank and step": "各 rank 与步的可疑之处",
    "Suspects, surest first": "可疑之处，按把握排序",
    "The model, by how far errors are above the noise floor": "模型，按误差高出噪声底的程度着色",
    "What follows is rank {rank}, step {step}.": "以下为 rank {rank} 第 {step} 步。",
    "call": "调用",
    "calls": "调用数",
    "candidate": "被测运行",
    "candidate minus reference": "被测运行减参考运行",
    "computes what the ranks did together again": "重算各 rank 的集合通信",
    "forward": "前向",
    "backward": "反向",
    "optimizer": "优化器",
    "high": "高",
    "medium": "中",
    "low": "低",
    "module": "模块",
    "no module": "模块之外",
    "of the reference": "参考运行",
    "operator": "算子",
    "own error": "自身误差",
    "phase": "阶段",
    "rank": "rank",
    "reference": "参考运行",
    "replays these calls alone": "单独重算这些调用",
    "results apart": "结果相差",
    "search modules, operators and lines": "搜索模块、算子和代码行",
    "show among the calls": "在调用中查看",
    "times the floor": "噪声底倍数",
    "{candidate} against {reference}": "{candidate} 与 {reference} 对比",
    "{name}, which no recorded operator made, differs by {apart} ({dtype} {shape})": (
        "{name} 并非由已记录算子产生，相差 {apart}（{dtype} {shape}）"
    ),
    "{number} calls before it are suspected too, with less reason.": "在它之前还有 {number} 次调用可疑，但理由较弱。",
    "Modules matched by what they do: {number}; {candidate} is {reference} of the reference.": (
        "{number} 个模块按其计算内容匹配：{candidate} 即参考运行的 {reference}。"
    ),
    "{number} more step": "另外 {number} 个步",
    "{number} more steps": "另外 {number} 个步",
    "{number} of {all} recorded steps have suspects": "{all} 个已记录的步中有 {number} 个存在可疑之处",
    "{number} suspect": "{number} 个可疑之处",
    "{number} suspects": "{number} 个可疑之处",
    "{number} values are not finite": "{number} 个值不是有限值",
    "{place} computes in another dtype.": "{place} 以另一数据类型计算。",
    "{place} does not compute what the reference computes there.": "{place} 计算的内容与参考运行此处不同。",
    "{place} has an error of its own, {times} x the noise floor; its inputs agree to {apart}.": (
        "{place} 自身有误差，为噪声底的 {times} 倍；其输入相差仅 {apart}。"
    ),
    "{place} has an error of its own.": "{place} 自身有误差。",
    "{place} is called with another argument.": "{place} 的调用参数不同。",
    "{place} is given another tensor, which no recorded operator made: look at weights, batch and buffers.": (
        "{place} 得到的张量不同，且并非由已记录算子产生：请检查权重、批数据和缓冲区。"
    ),
    "{place} is the first to make other bits of the same inputs.": "{place} 首先由同样的输入得到不同的比特。",
    "{place} makes values that are not finite from inputs that give finite ones.": (
        "{place} 由本应得到有限值的输入产生了非有限值。"
    ),
    "{candidate} in float64 is {off} off from what the reference's {reference} gave for the same inputs": (
        "以同样的输入用 float64 计算，{candidate} 与参考运行的 {reference} 的结果相差 {off}"
    ),
    "{candidate} is {off} off from what the reference's {reference} give in float64 for the same inputs": (
        "{candidate} 与参考运行的 {reference} 以同样的输入用 float64 计算的结果相差 {off}"
    ),
    (
        "Calls that compute in {dtype} where the reference computes in {other}: {number} ({operators}); each is "
        "judged by the roundings of its own dtype."
    ): "{number} 次调用以 {dtype} 计算，参考运行为 {other}（{operators}）；各按自身数据类型的舍入误差判断。",
    "The collectives are right, and parameters are the same on all ranks that share them.": (
        "集合通信结果正确，各 rank 共有的参数保持一致。"
    ),
    "its gradients are the same on all ranks, but not what the optimizer made of them": (
        "各 rank 的梯度相同，但优化器得到的结果不同"
    ),
    (
        "{path} holds one rank only, and ranks are checked against one another: record a job that has "
        "several, without --dump-ranks."
    ): "{path} 只有一个 rank，而检查需要各 rank 相互对照：请记录有多个 rank 的作业，且不加 --dump-ranks。",
    "its gradients differ between the ranks: they were not reduced, or not to the same": (
        "各 rank 的梯度不同：没有做规约，或规约结果不一致"
    ),
    "on rank {ranks}": "位于 rank {ranks}",
    "the contribution of rank {rank} is missing": "缺少 rank {rank} 的贡献",
    "the optimizer made different values of it": "优化器得到了不同的值",
    "the ranks begin the step with different values ({apart} apart)": "各 rank 在本步开始时的值就不同（相差 {apart}）",
    "the ranks call different collectives: {names}": "各 rank 调用了不同的集合通信：{names}",
    "the result is off by {apart} from the {reduction} of the inputs": "结果与输入的 {reduction} 相差 {apart}",
    "the result is off by {apart}: it looks as if it was reduced in 16 bits": (
        "结果相差 {apart}：看起来是用 16 位做的规约"
    ),
    "the result is the rank's own input: nothing was reduced, or it was read too early": (
        "结果就是该 rank 自己的输入：没有规约，或读取过早"
    ),
    "the result is the {other} of the inputs, not the {reduction}": "结果是输入的 {other}，而不是 {reduction}",
    "what arrived differs from what was sent by {apart}": "收到的与发出的相差 {apart}",
    "{checked} of {seen} collectives computed again": "{seen} 次集合通信中重算了 {checked} 次",
    "{number} more finding": "另外 {number} 个发现",
    "{number} more findings": "另外 {number} 个发现",
    "{number} rank": "{number} 个 rank",
    "{number} ranks": "{number} 个 rank",
    "{path} holds recorded steps already: choose another folder, or remove them.": (
        "{path} 中已有记录的步：请换一个目录，或先删除它们。"
    ),
    (
        "From {operator} on ({line}) the random numbers of the two differ: values behind it are not compared. "
        "Record both with dropout off."
    ): "从 {operator}（{line}）起两次运行的随机数不同：其后的数值不比较。请在关闭 dropout 后重新记录。",
    "--rename takes REFERENCE=CANDIDATE, such as attn=self_attn, not {text}": (
        "--rename 接受 REFERENCE=CANDIDATE，例如 attn=self_attn，不是 {text}"
    ),
    "Nothing is suspected.": "没有可疑之处。",
    "an input that no recorded operator made differs by {apart} ({dtype} {shape})": (
        "一个并非由已记录算子产生的输入不同，相差 {apart}（{dtype} {shape}）"
    ),
    "argument {name} is {value}, of the reference {other}": "参数 {name} 为 {value}，参考运行为 {other}",
    "computed in {dtype}, of the reference in {other}": "以 {dtype} 计算，参考运行为 {other}",
    "errors {noise} x those of the reference": "误差为参考运行的 {noise} 倍",
    "its own error is {error}, of the reference {other}": "自身误差为 {error}，参考运行为 {other}",
    "its own error is {error}; {usual} is usual": "自身误差为 {error}，通常为 {usual}",
    "its own result is {share} off as a whole; inputs are its own": "以自身输入重算，结果整体偏差 {share}",
    "other operators: {candidate} where the reference has {reference}": (
        "算子不同：此处为 {candidate}，参考运行为 {reference}"
    ),
    "single values of its own result are far off: {peak} x the usual error": (
        "结果中个别值偏差很大：为通常误差的 {peak} 倍"
    ),
    "{number} more suspect": "另外 {number} 个可疑之处",
    "{number} more suspects": "另外 {number} 个可疑之处",
    "{number} operator call": "{number} 次算子调用",
    "{number} operator calls": "{number} 次算子调用",
    "{number} replayed": "重算 {number} 次",
    "{number} values are not finite (or finite where they should not be), given these inputs": (
        "{number} 个值不是有限值（或本不应有限），输入如记录"
    ),
    "{path} holds no recorded steps (step0/rank0.pt, …).": "{path} 中没有记录的步（step0/rank0.pt 等）。",
    "{path} is no recorded step: it is damaged, or holds something else.": (
        "{path} 不是记录的步：文件已损坏，或内容是别的东西。"
    ),
    "{path} is not whole: the run, or a copy, was stopped while it was written. Record it again, copy it again, or "
    "take another step.": "{path} 不完整：写入时运行或复制被中断。请重新记录、重新复制，或取另一步。",
    "{path} is a file; give the folder of a run, or two files.": (
        "{path} 是一个文件；请给出运行的目录，或给出两个文件。"
    ),
    "{dump} is a dump of msprobe and {step} is a step that npuport recorded: their calls have other names. Record both "
    "runs with one tool.": (
        "{dump} 是 msprobe 的 dump，{step} 是 npuport 记录的步：两者的调用名称不同。请用同一工具记录两次运行。"
    ),
    "{name} is in {path} only: not compared": "{name} 只在 {path} 中：未比对",
    "{path}: {number} tensors that it names are not there; their statistics are compared": (
        "{path}：其中提到的 {number} 个张量文件不存在；改为比对其统计量"
    ),
    "{reference} and {candidate} have no recorded step in common.": "{reference} 与 {candidate} 没有共同记录的步。",
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
    "{path} has format {format} of recorded steps; this npuport reads format {known}. Record it again.": (
        "{path} 的记录格式为 {format}；此 npuport 读取格式 {known}。请重新记录。"
    ),
    "{path} holds no curve: no line with a loss or a gradient norm, no JSON or CSV of them.": (
        "{path} 中没有曲线：没有含 loss 或梯度范数的行，也没有它们的 JSON 或 CSV。"
    ),
    "{path} is TensorBoard's; reading it takes the package tensorboard:\n  pip install tensorboard": (
        "{path} 属于 TensorBoard；读取它需要 tensorboard 包：\n  pip install tensorboard"
    ),
    "{steps} steps: the criteria are meant for {enough} or more": "{steps} 步：这些标准适用于 {enough} 步以上",
}
