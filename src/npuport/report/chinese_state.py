"""Chinese sentences of `npuport precision state`."""

from __future__ import annotations

STATE_SENTENCES = {
    "--html shows one run: leave out {candidate}.": "--html 只显示一次运行：请去掉 {candidate}。",
    "steps {first} to {last}": "第 {first} 至 {last} 步",
    "not finite": "非有限值",
    "no value": "无数值",
    "before clipping": "裁剪前",
    "of the step": "更新时",
    "loss scale": "损失缩放",
    "Training": "训练",
    "Layers over time": "各层随时间的变化",
    "search layers": "搜索层",
    "layer": "层",
    "logarithmic": "对数刻度",
    "Batches that were kept": "保留的批次",
    "optimizer {number}": "优化器 {number}",
    "{number} alert": "{number} 条告警",
    "{number} alerts": "{number} 条告警",
    "weights compared between them at {number} steps": "在 {number} 个步上比较了各 rank 的权重",
    (
        "Each row is a layer in the order of the model, from the first step to the last. Direction is the "
        "cosine between the gradient of a step and that of the step before, right to about a quarter."
    ): "每一行是一层（按模型顺序），从第一步到最后一步。方向是某一步的梯度与前一步梯度的余弦，误差约四分之一。",
    (
        "First and last: the median of five steps each. Gradients are those right before the step: clipped, "
        "where the script clips."
    ): "首末值各取五步的中位数。梯度取自更新之前：脚本做裁剪时为裁剪后的值。",
    "--tokenizer takes the package transformers:\n  pip install transformers": (
        "--tokenizer 需要 transformers 包：\n  pip install transformers"
    ),
    "Nothing is wrong with it.": "没有异常。",
    "constant: every value is the same": "常量：所有值都相同",
    "cosine": "余弦",
    "difference": "差异",
    "each step changes the weights by {share} of their size": "每一步改变权重的幅度达其大小的 {share}",
    "every label is ignored: no loss comes of it": "所有标签都被忽略：不产生 loss",
    "garbled: {share} of its characters belong to no writing": "乱码：{share} 的字符不属于任何文字",
    "gradient norm": "梯度范数",
    "has gradients, but its weights stay: a step changes less than {share} of them": (
        "有梯度，但权重不变：一步的改变小于其 {share}"
    ),
    "in the first step all layers differ by about as much, {error} at most ({layer}), as noise does": (
        "第一步各层的差异大致相同，最多 {error}（{layer}），如同噪声"
    ),
    (
        "in the first step the difference grows smoothly on its way back, by {growth} for each layer, up "
        "to {error} in {layer}: that is how noise is amplified through depth, no sign of a wrong layer"
    ): (
        "第一步的差异在反向传播中平滑增大，每层 {growth} 倍，在 {layer}"
        " 达到 {error}：这是噪声随深度放大的表现，并不说明某层有错"
    ),
    (
        "in the first step the difference jumps at {layer}, and all layers before it have it: look at what "
        "{layer} computes in its backward pass, and at what is between it and the layer behind"
    ): ("第一步的差异在 {layer} 处突增，其前的各层都有：请查看 {layer} 在反向中计算的内容，以及它与后一层之间的部分"),
    (
        "in the first step the gradients differ from the last layer on, by {error}: the forward pass, the "
        "loss or the batch differs already"
    ): ("第一步的梯度从最后一层起就不同，相差 {error}：前向、loss 或批数据已经不同"),
    "in the first step {layer} alone differs, by {error}: look at its own gradient": (
        "第一步只有 {layer} 不同，相差 {error}：请查看它自身的梯度"
    ),
    "loss scale {scale}, {steps} steps left out in a row": "loss scale 为 {scale}，连续跳过 {steps} 步",
    "loss {first} … {last}": "loss {first} … {last}",
    "nearly all of it is padding (token {token})": "几乎全是填充（token {token}）",
    "no gradient arrives any more": "不再有梯度到达",
    "norm ratio": "范数比",
    "nothing is out of the ordinary in it": "其中没有异常",
    "repeats itself ({count} times {piece})": "内容重复（{piece} 出现 {count} 次）",
    "repeats itself every {period} tokens": "每 {period} 个 token 重复一次",
    "step {step}": "第 {step} 步",
    "step {step}, in the order of the backward pass": "第 {step} 步，按反向传播的顺序",
    "the batch of step {step}, rank {rank}: {shapes}": "第 {step} 步、rank {rank} 的批：{shapes}",
    "the gradient is exactly zero for {steps} steps and more": "梯度至少连续 {steps} 步恰为零",
    "the gradient norm is {factor} times the largest of the {steps} steps before": (
        "梯度范数是此前 {steps} 步最大值的 {factor} 倍"
    ),
    "the gradient norm is {factor} times what it was in the first steps, and stays so": (
        "梯度范数是最初几步的 {factor} 倍，并一直如此"
    ),
    "the gradient of {layer} is not finite in one run": "{layer} 的梯度在一次运行中不是有限值",
    "the gradient of {number} layers is less than {share} of the largest, up to this one in the backward pass": (
        "{number} 层的梯度不到最大者的 {share}，在反向传播中从此层开始"
    ),
    "the gradients of the first step agree: the largest difference is {error}": (
        "第一步的梯度一致：最大差异为 {error}"
    ),
    "the loss grows: {last} in the end, {first} in the beginning": "loss 增大：最后为 {last}，最初为 {first}",
    "the loss is not finite": "loss 不是有限值",
    "the loss is {loss}, before it was about {usual}": "loss 为 {loss}，此前约为 {usual}",
    "the losses differ by more than 1 % from step {step} on": "从第 {step} 步起 loss 相差超过 1 %",
    "the tokenizer {name} cannot be loaded: {reason}": "无法加载分词器 {name}：{reason}",
    "the weights are {factor} times as large as in the beginning": "权重是最初的 {factor} 倍",
    "token {token} is {share} of it": "token {token} 占 {share}",
    "update ratio": "更新比例",
    "values {factor} times as large as in the other samples": "数值是其他样本的 {factor} 倍",
    "weight norm": "权重范数",
    "{name} in TF32 or HF32: {reference} and {candidate}": ("{name} 使用 TF32 或 HF32：{reference} 与 {candidate}"),
    "{number} labels out of range: {low} to {high}, where the last layer has {classes} outputs": (
        "{number} 个标签超出范围：{low} 到 {high}，而最后一层有 {classes} 个输出"
    ),
    "{number} left out": "跳过 {number} 步",
    "{number} more layer": "另外 {number} 层",
    "{number} more layers": "另外 {number} 层",
    "{number} more of this kind": "同类还有 {number} 条",
    "{number} samples are copies of others in the batch": "{number} 个样本与批中其他样本相同",
    "{number} values are not finite": "{number} 个值不是有限值",
    "{number} values of the gradient are not finite": "梯度中有 {number} 个值不是有限值",
    "{number} weights differ between ranks ({ranks} beside the others), seen at step {step}: {names}": (
        "{number} 个权重在各 rank 间不同（{ranks} 与其他不同），在第 {step} 步发现：{names}"
    ),
    (
        "{path} holds no state of a training (state.rank0.jsonl). It is written by npuport run --monitor "
        "{path} -- COMMAND"
    ): ("{path} 中没有训练状态（state.rank0.jsonl）。请用 npuport run --monitor {path} -- COMMAND 记录"),
    "{path} holds no state of a training, or not of this version of npuport.": (
        "{path} 不是训练状态，或不属于此版本的 npuport。"
    ),
    "{path} holds no step: the run ended before its first optimizer step.": (
        "{path} 中没有任何步：运行在第一次优化器更新之前就结束了。"
    ),
    "{path} holds several runs ({runs}): export one run into each file.": (
        "{path} 中有多个运行（{runs}）：请将每个运行分别导出到一个文件。"
    ),
    "{path} holds the state of a training already: choose another folder, or remove it.": (
        "{path} 中已有训练状态：请换一个目录，或先删除它。"
    ),
    "{path} is no kept batch: {reason}": "{path} 不是保留的批：{reason}",
    "{reference} and {candidate} have no step and layer in common.": ("{reference} 与 {candidate} 没有共同的步和层。"),
    "{share} of it is encoded data or byte code (base64, hexadecimal, long runs)": (
        "其中 {share} 是编码数据或字节码（base64、十六进制、长串）"
    ),
    "{share} of its characters are digits": "其中 {share} 的字符是数字",
}
