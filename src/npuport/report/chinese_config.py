"""Chinese sentences of `npuport check-config` and `npuport data check`."""

from __future__ import annotations

CONFIG_SENTENCES = {
    "--for takes pretraining, fine-tuning or lora, not {given}": (
        "--for 可取 pretraining、fine-tuning 或 lora，不能是 {given}"
    ),
    "--fp16 and --bf16": "同时给出了 --fp16 与 --bf16",
    "--lr-warmup-fraction and {other}": ("同时给出了 --lr-warmup-fraction 与 {other}"),
    "--min-lr {least} is above --lr {peak}": ("--min-lr {least} 大于 --lr {peak}"),
    "--num-layers-per-virtual-pipeline-stage with PP 1": ("PP 为 1 却给出了 --num-layers-per-virtual-pipeline-stage"),
    "--overlap-param-gather without {names}": ("给出了 --overlap-param-gather，缺少 {names}"),
    "--recompute-granularity selective and --recompute-method": (
        "同时给出了 --recompute-granularity selective 与 --recompute-method"
    ),
    "--sequence-parallel with TP 1": "TP 为 1 却给出了 --sequence-parallel",
    "--train-iters and --train-samples": ("同时给出了 --train-iters 与 --train-samples"),
    "Adam's beta2": "Adam 的 beta2",
    "Choose TP x CP that divides the heads of attention, or another algorithm of context parallelism.": (
        "请让 TP x CP 整除注意力头数，或换一种上下文并行算法。"
    ),
    "Choose TP, PP and CP whose product divides the number of devices.": ("请让 TP、PP、CP 的乘积整除设备数。"),
    (
        "Choose a PP that divides the layers, or say how they are spread "
        "(--decoder-first-pipeline-num-layers; MindSpeed: --noop-layers, --num-layer-list)."
    ): (
        "请选择能整除层数的 PP，或说明各阶段的层数（--decoder-first-pipeline-num-layers；M"
        "indSpeed：--noop-layers、--num-layer-list）。"
    ),
    "Choose a TP that divides the heads of attention.": "请选择能整除注意力头数的 TP。",
    "Choose a TP that divides the query groups, or is divided by them.": ("请让 TP 与 query 组数之一整除另一个。"),
    "Choose a global batch that micro-batch x DP divides.": ("请让 micro-batch x DP 整除全局批次。"),
    "Choose a number of layers of a virtual stage that divides those of a stage.": (
        "请让每个虚拟阶段的层数整除每个阶段的层数。"
    ),
    "Choose a sequence that 2 x CP divides: each rank takes two parts of it.": (
        "请让 2 x CP 整除序列长度：每个 rank 处理其中两段。"
    ),
    "Choose an EP that divides the experts.": "请选择能整除专家数的 EP。",
    "EP {over} without experts": "EP 为 {over}，但模型没有专家",
    "Enable fp16 or bf16, not both.": "fp16 与 bf16 只能启用一个。",
    "Give --bf16 or --fp16, not both.": "--bf16 与 --fp16 只能给出一个。",
    "Give --kv-channels, or a hidden size that the heads divide.": (
        "请给出 --kv-channels，或选择能被头数整除的隐藏层大小。"
    ),
    "Give --use-distributed-optimizer and --overlap-grad-reduce with it.": (
        "请同时给出 --use-distributed-optimizer 与 --overlap-grad-reduce。"
    ),
    "Give bf16 or fp16, not both.": "bf16 与 fp16 只能给出一个。",
    (
        "Give gradient_clipping: without it older releases clip nothing and newer ones at 1.0, and the "
        "norm of TrainingArguments does not reach DeepSpeed."
    ): (
        "请给出 gradient_clipping：没有它时旧版本不裁剪，新版本按 1.0 裁剪，而 TrainingArgum"
        "ents 中的值不会传给 DeepSpeed。"
    ),
    "Give the length in iterations, or in samples.": "训练长度请只用迭代数或样本数之一给出。",
    "Give the warm-up as a fraction, or as a number.": "预热请只用比例或步数之一给出。",
    "Interleaving needs several stages: leave it out, or raise PP.": ("交错流水线需要多个阶段：请去掉它，或增大 PP。"),
    "Leave --expert-model-parallel-size out, or give --num-experts.": (
        "请去掉 --expert-model-parallel-size，或给出 --num-experts。"
    ),
    'Make them equal, or write "auto" into the DeepSpeed file: the Trainer refuses to start.': (
        '请让两者相同，或在 DeepSpeed 文件中写 "auto"：否则 Trainer 拒绝启动。'
    ),
    "Make train_batch_size the product, or leave one of the three out.": (
        "请让 train_batch_size 等于三者的乘积，或去掉三项之一。"
    ),
    "Offloading parameters needs stage 3; offloading the optimizer stage 1 or more.": (
        "卸载参数需要 stage 3；卸载优化器需要 stage 1 及以上。"
    ),
    "Raise --max-position-embeddings to the sequence.": ("请把 --max-position-embeddings 提高到序列长度。"),
    "Selective recomputation takes no method: leave --recompute-method out.": (
        "选择性重计算不接受方法：请去掉 --recompute-method。"
    ),
    "TP x PP x CP is {split}, which does not divide {devices} devices": (
        "TP x PP x CP 为 {split}，不能整除 {devices} 个设备"
    ),
    "The least rate must not be above the peak.": "最小学习率不能大于峰值。",
    "With TP 1 it has no effect: Megatron switches it off.": ("TP 为 1 时它不起作用：Megatron 会将其关闭。"),
    "a dialogue without an answer: nothing is learned of it": ("对话中没有回答：学不到东西"),
    "a global batch of {batch} is not divisible by micro-batch {micro} x DP {data} ({devices} devices)": (
        "全局批次 {batch} 不能被 micro-batch {micro} x DP {data} 整除（{devices} 个设备）"
    ),
    "a hidden size of {hidden} is not divisible by {heads} heads": ("隐藏层大小 {hidden} 不能被 {heads} 个头整除"),
    "a label outside of the vocabulary": "标签超出词表",
    "a message, text or list of ids is missing, or of another type": ("缺少消息、文本或 id 列表，或类型不对"),
    "a model of unknown size": "大小未知的模型",
    "a role that no chat template knows": "对话模板不认识的角色",
    "a sequence of {sequence} over CP {context}": ("序列长度 {sequence}，CP 为 {context}"),
    "a sequence of {sequence}, but {positions} positions at most": (
        "序列长度为 {sequence}，但最多只有 {positions} 个位置"
    ),
    "an empty text or answer": "文本或回答为空",
    "an id outside of the vocabulary": "id 超出词表",
    "as many labels as ids are wanted": "标签数应与 id 数相同",
    "continued pretraining": "继续预训练",
    "every label is ignored (-100): nothing is learned of it": ("所有标签都被忽略（-100）：学不到东西"),
    "fields that tell no kind, or another kind than the first record's": (
        "字段不属于已知的类型，或与第一条记录的类型不同"
    ),
    "fine-tuning": "微调",
    "fixed loss scale": "固定的 loss scale",
    "fp16 and bf16 are both enabled": "fp16 与 bf16 同时启用",
    "fp16 and bf16 are both on": "fp16 与 bf16 同时打开",
    "garbled: read in a wrong encoding, or characters of no writing": (
        "乱码：按错误的编码读取，或不属于任何文字的字符"
    ),
    "gradient clipping": "梯度裁剪",
    "gradients are clipped at {norm} only; published {value} ({source})": (
        "梯度到 {norm} 才裁剪；公开值为 {value}（{source}）"
    ),
    "how many tokens there are is not known: name the --tokenizer.": (
        "不知道有多少 token：请用 --tokenizer 指定分词器。"
    ),
    "last learning rate / peak": "最终学习率 / 峰值",
    "learning rate": "学习率",
    "learning rate {rate} is high for {size}: published {value} ({source})": (
        "学习率 {rate} 对{size}偏高：公开值为 {value}（{source}）"
    ),
    (
        "learning rate {rate} is low for {size}: published {value} ({source}); right where a trained model is continued"
    ): ("学习率 {rate} 对{size}偏低：公开值为 {value}（{source}）；若是在已训练的模型上继续，则合适"),
    "lengths are not known: name the --tokenizer": ("长度未知：请用 --tokenizer 指定分词器"),
    "longer than --max-length": "超过 --max-length",
    "lora": "LoRA",
    "model of unknown size": "模型大小未知",
    "mostly encoded data (base64, hexadecimal)": "大部分是编码数据（base64、十六进制）",
    "no JSON object": "不是 JSON 对象",
    "no gradient clipping; published {value} ({source})": ("没有梯度裁剪；公开值为 {value}（{source}）"),
    "no record stands out": "没有异常的记录",
    "no warm-up; published {value} of the steps ({source})": ("没有预热；公开值为步数的 {value}（{source}）"),
    "not known from the files: {names}": "文件中没有说明：{names}",
    "nothing but digits": "全是数字",
    "pretraining": "预训练",
    "published instead: {value}": "公开值：{value}",
    "published {value} ({source})": "公开值 {value}（{source}）",
    "the learning rate ends at {share} of its peak; published {value} ({source})": (
        "学习率最终为峰值的 {share}；公开值为 {value}（{source}）"
    ),
    (
        "the loss scale stays at {scale}: gradients that overflow or vanish change nothing; a dynamic "
        "one begins with {value} ({source})"
    ): ("loss scale 固定为 {scale}：梯度上溢或下溢时不会调整；动态的从 {value} 开始（{source}）"),
    "the same as an earlier record": "与前面的记录相同",
    "the warm-up takes {share} of the steps; published {value} ({source})": (
        "预热占步数的 {share}；公开值为 {value}（{source}）"
    ),
    "there is no record in {paths}.": "{paths} 中没有记录。",
    "tokens of a step": "每步的 token 数",
    "tokens of the training": "训练的 token 总数",
    "train_batch_size {batch} is not micro-batch {micro} x accumulation {steps} x {devices} devices": (
        "train_batch_size {batch} 不等于 micro-batch {micro} x 累积 {steps} x {devices} 个设备"
    ),
    "two questions in a row: some chat templates refuse that": ("连续两次提问：有些对话模板不接受"),
    "warm-up / steps": "预热 / 步数",
    "weight decay": "权重衰减",
    "what is trained is not known (--for)": "不知道训练的是什么（--for）",
    "{experts} experts over EP {over}": "{experts} 个专家，EP 为 {over}",
    "{first} and {second} are both {kind} configurations: check them one at a time.": (
        "{first} 与 {second} 都是 {kind} 配置：请分别检查。"
    ),
    "{groups} query groups over TP {tensor}": ("{groups} 个 query 组，TP 为 {tensor}"),
    "{heads} heads over TP {tensor}": "{heads} 个头，TP 为 {tensor}",
    "{heads} heads over TP {tensor} x CP {context} (Ulysses)": ("{heads} 个头，TP {tensor} x CP {context}（Ulysses）"),
    "{layers} layers of a stage in virtual stages of {virtual}": ("每个阶段 {layers} 层，每个虚拟阶段 {virtual} 层"),
    "{layers} layers over PP {stages}": "{layers} 层，PP 为 {stages}",
    "{name} to {device} with ZeRO stage {stage}": ("{name} 到 {device}，而 ZeRO 为 stage {stage}"),
    "{number} characters; tokens need --tokenizer": ("{number} 个字符；统计 token 需要 --tokenizer"),
    "{number} devices": "{number} 个设备",
    "{option} by default": "{option} 的默认值",
    "{path} has no gradient_clipping": "{path} 中没有 gradient_clipping",
    (
        "{path} holds no configuration that npuport knows: TrainingArguments or LLaMA-Factory's YAML, "
        "DeepSpeed's JSON, accelerate's YAML, a model's config.json, or a script that starts Megatron "
        "or MindSpeed."
    ): (
        "{path} 中没有 npuport 认识的配置：TrainingArguments 或 LLaMA-Factory 的"
        " YAML、DeepSpeed 的 JSON、accelerate 的 YAML、模型的 config.json，或启动"
        " Megatron、MindSpeed 的脚本。"
    ),
    "{path} is no text: give the JSON, YAML or shell script that the training is started with.": (
        "{path} 不是文本：请给出启动训练所用的 JSON、YAML 或 shell 脚本。"
    ),
    "{path} is {given} in {file}, and {value} by TrainingArguments": (
        "{path} 在 {file} 中为 {given}，而 TrainingArguments 为 {value}"
    ),
    "{path} says nothing of a training: give its arguments too.": ("{path} 没有说明训练：请同时给出训练的参数。"),
    (
        "{ratio} tokens for each parameter; published {value} ({source}): a smaller model, or more "
        "text, unless a trained model is continued"
    ): (
        "每个参数 {ratio} 个 token；公开值为 {value}（{source}）：除非是在已训练的模型上继续，否则"
        "请用更小的模型或更多的文本"
    ),
    "{size} parameters": "{size} 参数",
    "{tokens} tokens; a record has {median} (half of them), {most} (95 %), at most {largest}": (
        "共 {tokens} 个 token；每条记录 {median} 个（中位数）、{most} 个（95 %），最多 {largest} 个"
    ),
}
