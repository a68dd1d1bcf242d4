"""Chinese sentences of `npuport model`."""

from __future__ import annotations

MODEL_SENTENCES = {
    "measuring batch {batch}, context {context}": "正在测量：batch {batch}，上下文 {context}",
    "{parameters} parameters in {dtype} on {device}": "{parameters} 个参数，{dtype}，设备 {device}",
    "The weights are random: speed and memory are as with trained ones, answers are not.": (
        "权重是随机的：速度和显存与训练好的权重相同，回答则没有意义。"
    ),
    "CPU kernels stand in for the NPU: THE TIMES ARE NOT THOSE OF HARDWARE; memory is as torch_npu allocates.": (
        "由 CPU 算子代替 NPU 计算：时间不代表硬件性能；显存与 torch_npu 的分配一致。"
    ),
    "Messages stand in the model's chat template.": "消息套用了模型自带的对话模板。",
    "first: to the first token with earlier turns kept in the cache; afresh: with the whole context computed; "
    "token: each further one; tok/s: of one chat, and of all at once. Medians, and percentiles of {chats} chats.": (
        "first：首 token 时延（保留前几轮的 KV cache）；afresh：整个上下文重新计算时的首 token 时延；token：其后每个 "
        "token；tok/s：单个对话，以及全部对话合计。数值为 {chats} 次对话的中位数和百分位数。"
    ),
    "out of memory": "显存不足",
    "batch {batch}, context {context}: {measured} tokens/s of each chat, needed {wanted}": (
        "batch {batch}，上下文 {context}：每个对话 {measured} token/s，要求 {wanted}"
    ),
    "batch {batch}, context {context}: first token in {measured} ms (95th percentile), allowed {wanted} ms": (
        "batch {batch}，上下文 {context}：首 token 时延 {measured} ms（95 百分位），上限 {wanted} ms"
    ),
    "met": "满足",
    "NOT MET": "不满足",
    # errors
    "--device takes auto, npu, npu:1, cuda, cuda:1 or cpu, not {given}.": (
        "--device 可取 auto、npu、npu:1、cuda、cuda:1 或 cpu，不能是 {given}。"
    ),
    "there is no device {name} here ({count} of its kind). Try --device auto; `npuport doctor` says what is missing, "
    "and `npuport run --sim -- npuport model …` takes the simulated NPU.": (
        "本机没有设备 {name}（同类设备共 {count} 个）。可用 --device auto；`npuport doctor` 会说明缺少什么，"
        "`npuport run --sim -- npuport model …` 可使用模拟 NPU。"
    ),
    "npuport model takes the packages torch and transformers:\n  pip install 'npuport[model]'": (
        "npuport model 需要 torch 和 transformers：\n  pip install 'npuport[model]'"
    ),
    "--dtype takes auto, {known}, not {given}.": "--dtype 可取 auto、{known}，不能是 {given}。",
    "{option} takes numbers such as 1,4,16, not {given}.": "{option} 应为 1,4,16 这样的数字，不能是 {given}。",
    "--need-first takes a time such as 200ms or 1.5s, not {given}.": (
        "--need-first 应为 200ms 或 1.5s 这样的时间，不能是 {given}。"
    ),
    "times on the simulated NPU are not those of hardware, so they meet or miss no need: leave out --need and "
    "--need-first.": "模拟 NPU 上的时间不代表硬件性能，无法判断是否满足需求：请去掉 --need 和 --need-first。",
    "{path} holds no config.json: give the folder of a Hugging Face model.": (
        "{path} 中没有 config.json：请给出 Hugging Face 模型的目录。"
    ),
    "{path} holds no weights. Download them, or measure with random ones: --random-weights.": (
        "{path} 中没有权重。请下载权重，或用 --random-weights 以随机权重测量。"
    ),
    "{path} does not fit into the memory of {device}. `npuport model choose --config {path}` tells its size.": (
        "{path} 超出 {device} 的显存。`npuport model choose --config {path}` 可给出所需显存。"
    ),
    "{model} hands no keys and values on that a next turn could use.": "{model} 不返回可供下一轮使用的 KV cache。",
    "no language model can be made of {path}: {reason}": "无法用 {path} 构建语言模型：{reason}",
    "a context of {length} tokens is too short: the chat template takes {taken}. Give a longer --context.": (
        "{length} 个 token 的上下文太短：对话模板本身就占 {taken} 个。请增大 --context。"
    ),
    "the chats reach {length} tokens, and the model's longest context is {longest}. Shorten --context, "
    "--answer-tokens, --message-tokens or --turns.": (
        "对话将达到 {length} 个 token，而模型最长上下文为 {longest}。请减小 --context、--answer-tokens、"
        "--message-tokens 或 --turns。"
    ),
    # evaluating and comparing
    "on {device}, lm-eval {version}": "设备 {device}，lm-eval {version}",
    "CPU kernels stand in for the NPU: the scores are of their arithmetic, not of the NPU's.": (
        "由 CPU 算子代替 NPU 计算：得分反映 CPU 算子的精度，而不是 NPU 的精度。"
    ),
    "Only the first samples of each task: no scores to publish.": "每个任务只评测了前若干样本：得分不能用于发布。",
    "{number}-shot": "{number}-shot",
    "only in the first: {task}": "仅在第一个结果中：{task}",
    "only in the second: {task}": "仅在第二个结果中：{task}",
    "A score differs where equal models would show as much in fewer than {level} of {number} such comparisons.": (
        "判为不同的标准：若两个模型相同，在 {number} 项比较中出现如此差异的概率合计低于 {level}。"
    ),
    "same": "相同",
    "DIFFERS": "不同",
    "unknown": "无法判断",
    "not comparable": "不可比",
    "no standard error": "没有标准误",
    "{changed} of {samples} answers score otherwise, p = {chance}": (
        "{samples} 个回答中有 {changed} 个得分不同，p = {chance}"
    ),
    "no samples: by the standard errors of both, p = {chance}": "没有样本：按两者的标准误，p = {chance}",
    "--rouge-fields takes two names, such as input,output, not {given}.": (
        "--rouge-fields 需要两个名称，例如 input,output，不能是 {given}。"
    ),
    "say what to evaluate: --tasks mmlu,hellaswag, or --rouge FILE.": (
        "请指定评测内容：--tasks mmlu,hellaswag，或 --rouge FILE。"
    ),
    "npuport model evaluate takes the package lm_eval:\n  pip install 'npuport[eval]'": (
        "npuport model evaluate 需要 lm_eval：\n  pip install 'npuport[eval]'"
    ),
    "ROUGE takes the package rouge_score:\n  pip install 'npuport[eval]'": (
        "ROUGE 需要 rouge_score：\n  pip install 'npuport[eval]'"
    ),
    "{path} holds no tokenizer: lm-eval asks in words.": "{path} 中没有 tokenizer：lm-eval 以文本提问。",
    "{path} holds no lines.": "{path} 没有内容。",
    "{place} is no JSON object.": "{place} 不是 JSON 对象。",
    "{place}: field {given} must be a text, and {wanted} a text or a list of texts. Its fields are {fields}; name two "
    "with --rouge-fields INPUT,OUTPUT.": (
        "{place}：字段 {given} 应为文本，{wanted} 应为文本或文本列表。现有字段：{fields}；可用 --rouge-fields "
        "INPUT,OUTPUT 指定两个字段。"
    ),
    "{place}: there is no right output to score against.": "{place}：没有可供对照的参考答案。",
    "a task's files cannot be used: {reason}": "无法使用任务的文件：{reason}",
    "lm-eval knows no task {names}. `lm-eval ls tasks` lists its own; --task-folder brings others.": (
        "lm-eval 没有任务 {names}。`lm-eval ls tasks` 可列出自带任务；用 --task-folder 可加入其他任务。"
    ),
    "a task's data cannot be read: {reason}": "无法读取任务的数据：{reason}",
    "the dataset {name} is not on this machine, and the Hub cannot be reached. On one with a network (a mirror: "
    "HF_ENDPOINT=https://hf-mirror.com before it):\n"
    '  python -c "from lm_eval.tasks import TaskManager; TaskManager().load({tasks})"\n'
    "Copy its ~/.cache/huggingface here (another place: HF_HOME), then run again with HF_HUB_OFFLINE=1.": (
        "本机没有数据集 {name}，也无法访问 Hub。请在有网络的机器上执行（使用镜像：在前面加 "
        "HF_ENDPOINT=https://hf-mirror.com）：\n"
        '  python -c "from lm_eval.tasks import TaskManager; TaskManager().load({tasks})"\n'
        "再把它的 ~/.cache/huggingface 拷贝到本机（其他位置用 HF_HOME 指定），然后加 HF_HUB_OFFLINE=1 重新运行。"
    ),
    "{path} holds no results of lm-eval.": "{path} 不是 lm-eval 的结果文件。",
    "{first} and {second} share no score: evaluate the same tasks.": (
        "{first} 与 {second} 没有共同的得分：请评测相同的任务。"
    ),
    # choosing
    "decoder-only (GPT, Llama, Qwen): writes token by token from all that stands before": (
        "decoder-only（GPT、Llama、Qwen）：根据前文逐个 token 生成"
    ),
    "encoder-only (BERT): sees a whole text at once and says something of it or of its words": (
        "encoder-only（BERT）：一次读入整段文本，对文本或其中的词作出判断"
    ),
    "encoder-decoder (T5): reads a whole text and writes another one": (
        "encoder-decoder（T5）：读入整段文本，生成另一段文本"
    ),
    "Memory and rates are computed for decoder-only models alone.": "只对 decoder-only 模型计算显存和速度。",
    "{devices} x {chip}, {memory} GiB of each to fill, memory at {bandwidth}; {batch} chats of {context} tokens": (
        "{devices} x {chip}，每个设备可用 {memory} GiB，显存带宽 {bandwidth}；{batch} 个对话，各 {context} 个 token"
    ),
    "an unknown rate": "未知",
    "No source for the bandwidth of this chip's memory is known here: give it with --bandwidth GBS.": (
        "没有该芯片显存带宽的资料：请用 --bandwidth GBS 给出。"
    ),
    "no model of the table meets the need": "表中没有满足需求的模型",
    "{name}: no source was read for {names}": "{name}：没有 {names} 的资料",
    "GiB of one device. At most: tokens/s of each chat if memory were read at its nominal rate; real ones are lower: "
    "measure with `npuport model bench --random-weights`. Serves: what vllm-ascend says.": (
        "GiB 为单个设备的显存。at most：按标称显存带宽计算，每个对话的 token/s 上限；实际值更低，请用 "
        "`npuport model bench --random-weights` 测量。serves：vllm-ascend 的支持情况。"
    ),
    "Not these:": "不满足的：",
    "{heads} heads and {kv} of keys do not divide by {devices}": (
        "{heads} 个注意力头（KV 头 {kv} 个）不能由 {devices} 个设备均分"
    ),
    "{held} GiB do not fit into {memory}": "需要 {held} GiB，超过 {memory} GiB",
    "at most {rate} tokens/s, needed {need}": "上限 {rate} token/s，要求 {need}",
    "its context ends at {context} tokens": "上下文最长 {context} 个 token",
    "licence {licence}": "许可证 {licence}",
    "vllm-ascend does not name it for {family}": "vllm-ascend 的列表中没有它在 {family} 上的支持",
    "{name}, of one device:": "{name}，单个设备：",
    "weights: {parameters} parameters, {dtype}, / {devices} = {size} bytes": (
        "权重：{parameters} 个参数，{dtype}，/ {devices} = {size} 字节"
    ),
    "cache: 2 x {layers} layers x {heads} heads x {width} x 2 = {each} bytes a token; x {context} x {batch} = {size}": (
        "KV cache：2 x {layers} 层 x {heads} 头 x {width} x 2 = 每个 token {each} 字节；x {context} x {batch} = {size}"
    ),
    "experts that a step reads of {experts}: {touched}, if each is chosen as often": (
        "每步读取的专家数（共 {experts} 个）：{touched}（假设各专家被选中的机会均等）"
    ),
    "a step reads {read} bytes; {bandwidth} / {read} = {rate} steps/s at most": (
        "每步读取 {read} 字节；{bandwidth} / {read} = 每秒最多 {rate} 步"
    ),
    "{chip} has no bfloat16: take --dtype float16.": "{chip} 不支持 bfloat16：请用 --dtype float16。",
}
