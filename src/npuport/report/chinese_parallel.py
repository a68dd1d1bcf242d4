"""Chinese sentences of `npuport plan`."""

from __future__ import annotations

PARALLEL_SENTENCES = {
    "{parameters} parameters, {devices} devices of {memory} GiB, {reserve} left free: {fit} of {tried} layouts fit": (
        "{parameters} 个参数，{devices} 个设备，每个 {memory} GiB，预留 {reserve}：{tried} 种切分中有 {fit} 种放得下"
    ),
    "batch": "批次",
    "recompute": "重计算",
    "batch: sequences at once x times a step; +: time lost to bubble, recomputation; GB: sent by a device in a step": (
        "批次：每次的序列数 x 每步的次数；+：流水线空泡与重计算多花的时间；GB：每个设备每步发送的数据"
    ),
    "The first one, because:": "推荐第 1 种，理由：",
    "Its fullest device (stage {stage}, at: {moment}):": "其占用最多的设备（流水线阶段 {stage}，时刻：{moment}）：",
    "backward of a layer": "某层反向",
    "end of the backward pass": "反向结束",
    "optimizer step": "优化器更新",
    "loss": "计算损失",
    "parameters": "参数",
    "gradients": "梯度",
    "activations": "激活",
    "working memory": "临时内存",
    "communication buffers": "通信缓冲",
    "HCCL buffers": "HCCL 缓冲",
    "No layout divides devices, heads, layers and batch evenly: choose a global batch that the devices divide.": (
        "没有一种切分能整除设备数、注意力头数、层数和批次：请选择能被设备数整除的全局批次。"
    ),
    "The nearest needs {need} GiB, {missing} GiB more than there is: {layout}": (
        "最接近的切分需要 {need} GiB，还差 {missing} GiB：{layout}"
    ),
    "More devices, a shorter sequence or a smaller micro-batch would help.": "可以增加设备、缩短序列或减小微批次。",
    "TP {size} stays within a node of {devices} devices": "TP {size} 不超出一个节点的 {devices} 个设备",
    "PP {size}: fewer stages do not fit, lose more time, or need CP": (
        "PP {size}：更少的阶段放不下、损失更多时间或需要 CP"
    ),
    "the bubble is ({p} - 1) / {m} = {share}": "流水线空泡为 ({p} - 1) / {m} = {share}",
    "the model needs no split beside data parallelism": "除数据并行外，模型无需切分",
    "ZeRO {stage} over {ranks} ranks": "ZeRO {stage}，切分到 {ranks} 个 rank",
    "full recomputation costs a third more computing, but without it nothing fits that loses less": (
        "完全重计算多花三分之一的计算，但不用它就没有损失更小且放得下的切分"
    ),
    "activations fit without full recomputation": "无需完全重计算即可放下激活",
    "a device sends in a step, in GB: {sent}": "每个设备每步发送（GB）：{sent}",
    "Parameters of the device before ZeRO: {shared} and {experts} of experts": (
        "ZeRO 切分前该设备的参数：{shared}，另有专家参数 {experts}"
    ),
    "Tokens: {sequence} x {batch} / (TP {tp} x CP {cp}) = {tokens}": (
        "token 数：{sequence} x {batch} / (TP {tp} x CP {cp}) = {tokens}"
    ),
    "One layer keeps {size} bytes of a token:": "每层为每个 token 保留 {size} 字节：",
    "Activations of all layers:": "所有层的激活：",
    "From the last norm to the loss:": "从最后的归一化到损失：",
    "set gradient_checkpointing in the training's arguments: DeepSpeed's file cannot": (
        "请在训练参数中打开 gradient_checkpointing：DeepSpeed 的配置文件不能设置它"
    ),
    "layer input": "层的输入",
    "norms": "归一化",
    "input of query, key, value": "query、key、value 的输入",
    "query, key, value": "query、key、value",
    "attention statistics": "注意力的统计量",
    "attention output": "注意力的输出",
    "attention mask": "注意力掩码",
    "input of the MLP": "MLP 的输入",
    "MLP": "MLP",
    "last norm": "最后的归一化",
    "logits and loss": "logits 与损失",
    # errors
    "{path}: model_type {kind} is not known here ({known}): give the sizes as options instead.": (
        "{path}：不认识 model_type {kind}（支持 {known}）：请改用选项给出尺寸。"
    ),
    "{path} holds no JSON object: give the config.json of a Hugging Face model, or the sizes.": (
        "{path} 里没有 JSON 对象：请给出 Hugging Face 模型的 config.json，或给出尺寸。"
    ),
    "{path}: {name} is missing or no positive number.": ("{path}：缺少 {name}，或不是正整数。"),
    "{path}: layers that differ are not planned for here.": ("{path}：这里不支持各层不同的模型。"),
    "--framework takes megatron, deepspeed or fsdp, not {given}": (
        "--framework 只接受 megatron、deepspeed 或 fsdp，而不是 {given}"
    ),
    "{path} already gives the sizes: leave out --layers, --hidden and the others.": (
        "{path} 已给出尺寸：请去掉 --layers、--hidden 等选项。"
    ),
    "give a config.json, or also {missing}.": ("请给出 config.json，或补上 {missing}。"),
    "--heads must divide --hidden, and --kv-heads must divide --heads.": (
        "--hidden 必须能被 --heads 整除，--heads 必须能被 --kv-heads 整除。"
    ),
    "--top-k is more than --experts.": ("--top-k 大于 --experts。"),
    "the memory of {chip} is not known here: give it with --memory GIB.": (
        "不知道 {chip} 的内存：请用 --memory GIB 给出。"
    ),
}
