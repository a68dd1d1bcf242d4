"""Chinese sentences of `npuport precision preflight` and of a run made deterministic."""

from __future__ import annotations

PREFLIGHT_SENTENCES = {
    "--no-dropout belongs to --deterministic.": "--no-dropout 须与 --deterministic 一起使用。",
    ("A run that is not deterministic differs from itself; how much is the noise that a comparison must allow for."): (
        "非确定性的运行与自身也有差异；其大小就是比较时必须容许的噪声。"
    ),
    "A switch of PyTorch differs.": "PyTorch 的某个开关不同。",
    "Another dtype rounds otherwise in every operator; the criteria for runs of one dtype do not hold.": (
        "数据类型不同，每个算子的舍入都不同；针对同一数据类型的判据不适用。"
    ),
    "Another version may compute otherwise.": "版本不同，计算可能不同。",
    "Another world size or accumulation is another batch size and another order of samples.": (
        "进程数或累积步数不同，批大小和样本顺序也就不同。"
    ),
    "Build both from one configuration file and one commit.": "请用同一份配置文件和同一提交构建两者。",
    (
        "Compare it by hand, or have the run say it: arguments of a parser, YAML or JSON files on the "
        "command line and plain variables of the script are read."
    ): ("请人工比较，或让运行自己说明：会读取参数解析器的参数、命令行中的 YAML 或 JSON 文件以及脚本的普通变量。"),
    "Compare the model's code and its versions; look at which operator draws.": (
        "请比较模型代码及其版本，查看是哪个算子取随机数。"
    ),
    "Compare warm-up, number of steps and world size: schedules are often computed from them.": (
        "请比较预热、步数和进程数：学习率计划往往由它们算出。"
    ),
    "Each step computes something else.": "每一步计算的内容都不同。",
    "Far from what published runs used; this is no proof of a fault.": ("与公开训练所用的值相差很大；这不能证明有错。"),
    (
        "Fix the order (shuffle off, or one seed for the sampler's generator), the number of workers and "
        "the listing order of files."
    ): ("请固定顺序（关闭 shuffle，或为采样器的生成器设定同一种子）、加载进程数和文件列表的顺序。"),
    "Give both the same dtype, autocast and TF32 or HF32 switches.": (
        "请让两者使用相同的数据类型、autocast 以及 TF32 或 HF32 开关。"
    ),
    "Give both the same optimizer and options; a platform's fused optimizer has defaults of its own.": (
        "请让两者使用相同的优化器和选项；平台的融合优化器有自己的默认值。"
    ),
    "Give both the same value, or say why it cannot matter.": "请让两者取相同的值，或说明它为何没有影响。",
    "Give the sampler's generator one seed in both runs; sort the list of files before it is shuffled.": (
        "请为两次运行的采样器生成器设定同一种子；打乱前先对文件列表排序。"
    ),
    "HCCL_DETERMINISTIC is not true: reductions may add in another order": (
        "HCCL_DETERMINISTIC 不为 true：归约的相加顺序可能不同"
    ),
    ("Install the same versions where both platforms have them; transformers, tokenizers and image libraries first."): (
        "两个平台都有的软件请安装相同版本；首先是 transformers、tokenizers 和图像库。"
    ),
    "Its name says that the numbers depend on it.": "从名称看，数值取决于它。",
    "Libraries read it when they start.": "库在启动时读取它。",
    "Look at it first when the loss spikes, diverges or stays.": ("当 loss 出现尖峰、发散或不降时，请首先查看它。"),
    "Look whether it does.": "请确认是否有影响。",
    "Nothing differs.": "没有差异。",
    "Nothing here is random or unknown.": "没有随机或未知之处。",
    "One run drops what the other keeps, or drops other positions: each step differs as a whole.": (
        "一次运行丢弃了另一次保留的内容，或丢弃的位置不同：每一步整体上都不同。"
    ),
    "Other layers or shapes are another model; nothing behind this can be compared.": (
        "层或形状不同就是另一个模型；其后的内容都无法比较。"
    ),
    "PYTHONHASHSEED is not set: sets of strings have another order in every run": (
        "未设置 PYTHONHASHSEED：字符串集合在每次运行中的顺序都不同"
    ),
    "Preprocessing differs: another image library, resize or tokenizer version.": (
        "预处理不同：图像库、缩放方式或分词器版本不同。"
    ),
    "PyTorch was never seeded: weights and random numbers differ in every run": (
        "PyTorch 从未设定种子：每次运行的权重和随机数都不同"
    ),
    "Run both from one commit without local changes; a script converted for NPUs differs by design.": (
        "请用没有本地修改的同一提交运行两者；为 NPU 转换过的脚本本来就不同。"
    ),
    "Run both with the same number of processes, batch size and accumulation.": (
        "请用相同的进程数、批大小和累积步数运行两者。"
    ),
    (
        "Save the weights of one run before its first step and load them in both, or draw them on the CPU "
        "from one seed."
    ): ("请保存一次运行第一步之前的权重并在两者中加载，或在 CPU 上用同一种子生成。"),
    "Schedules differ step by step although the first rate may be the same.": (
        "即使最初的学习率相同，计划也会逐步不同。"
    ),
    "Seed both alike: npuport run --deterministic.": "请为两者设定相同的种子：npuport run --deterministic。",
    "Set it alike in both.": "请在两者中设为相同。",
    "Small gradients vanish at another scale, and other steps are left out.": (
        "缩放倍数不同，小梯度会消失，被跳过的步也不同。"
    ),
    "Start both from the same scale; with bfloat16 none is needed.": (
        "请让两者从相同的缩放倍数开始；使用 bfloat16 时不需要。"
    ),
    "Switch it off in both for the comparison: npuport run --deterministic --no-dropout.": (
        "比较时请在两者中关闭：npuport run --deterministic --no-dropout。"
    ),
    "The command lines differ here; the name does not say that numbers depend on it.": (
        "命令行在此处不同；从名称看不出数值取决于它。"
    ),
    "The first step already differs by more than any operator does.": "第一步的差异就已超过任何算子的差异。",
    "The loss of the first step differs, and errors of operators cannot be told from it.": (
        "第一步的 loss 不同，无法与算子误差区分。"
    ),
    "The mean of a batch hardly changes; layers that mix samples and the next batches do.": (
        "批的均值几乎不变；但混合样本的层和后续的批会不同。"
    ),
    "The scripts are not the same text.": "脚本文本不同。",
    "The two draw random numbers at other places: another path through the code, or other operators.": (
        "两者取随机数的位置不同：代码路径不同，或算子不同。"
    ),
    "What a comparison with this run must allow for:": "与这次运行比较时必须考虑：",
    "What is drawn from it later differs.": "之后由它取出的随机数不同。",
    "What is not known cannot be compared; it may differ.": "未知的内容无法比较；它可能不同。",
    "Write the preprocessed batches of one run to disk and read them in both.": (
        "请把一次运行预处理后的批写入磁盘，并在两者中读取。"
    ),
    "a warning": "警告",
    "an error": "错误",
    "as the script has it": "按脚本设置",
    "autocast: {reference} and {candidate}": "autocast：{reference} 与 {candidate}",
    "batch {batch} {where} comes {ahead} batches earlier in the reference": (
        "第 {batch} 个批（{where}）在参考运行中早 {ahead} 个批出现"
    ),
    "batch {batch} {where} comes {ahead} batches later in the reference": (
        "第 {batch} 个批（{where}）在参考运行中晚 {ahead} 个批出现"
    ),
    "batch {batch} {where} has other shapes: {reference} and {candidate}": (
        "第 {batch} 个批（{where}）形状不同：{reference} 与 {candidate}"
    ),
    "batch {batch} {where}: nearly the same values ({name}), not the same": (
        "第 {batch} 个批（{where}）：数值接近（{name}），但不相同"
    ),
    "batch {batch} {where}: other samples ({name})": "第 {batch} 个批（{where}）：样本不同（{name}）",
    "batch {batch} {where}: the same samples in another order": ("第 {batch} 个批（{where}）：样本相同，顺序不同"),
    (
        "batch {batch} {where}: {common} of {all} samples of the first {batches} batches are the same, in another order"
    ): ("第 {batch} 个批（{where}）：前 {batches} 个批的 {all} 个样本中有 {common} 个相同，但顺序不同"),
    "beta2 {beta}; published {value} ({source}): after a spike it takes longer to recover": (
        "beta2 为 {beta}；公开值为 {value}（{source}）：出现尖峰后恢复更慢"
    ),
    "by rounding only, as far as statistics tell": "从统计量看仅为舍入差异",
    "commit: {reference} and {candidate}": "提交：{reference} 与 {candidate}",
    "cuDNN chooses its algorithms by measuring (cudnn.benchmark)": "cuDNN 通过测量选择算法（cudnn.benchmark）",
    "data loader {number} draws its samples at random": "第 {number} 个数据加载器随机取样本",
    "deterministic: {variables}": "确定性计算：{variables}",
    "drawn or loaded otherwise": "生成或加载方式不同",
    "dropout is on at {number} places: {paths}": "有 {number} 处启用了 dropout：{paths}",
    "dropout of {path}: {reference} and {candidate}": "{path} 的 dropout：{reference} 与 {candidate}",
    "first loss scale: {reference} and {candidate}": "初始 loss scale：{reference} 与 {candidate}",
    "forward passes for one step: {reference} and {candidate}": "每步的前向次数：{reference} 与 {candidate}",
    "from data loader {number}": "来自第 {number} 个数据加载器",
    "from the data loader": "来自数据加载器",
    "given to the model": "输入模型",
    "gradients are clipped to norm: {reference} and {candidate}": "梯度裁剪的范数：{reference} 与 {candidate}",
    "groups of parameters: {reference} and {candidate}": "参数组数：{reference} 与 {candidate}",
    "hyper-parameters of {side}: it parses no arguments and reads no file": (
        "{side}的超参数：它不解析参数，也不读取文件"
    ),
    "learning rate from step {step} on: {reference} and {candidate}": (
        "从第 {step} 步起的学习率：{reference} 与 {candidate}"
    ),
    "missing": "缺失",
    "module {path}: {reference} and {candidate}": "模块 {path}：{reference} 与 {candidate}",
    "never seeded": "从未设定种子",
    "no batch was seen": "未见到批数据",
    "no batch was seen in one of the two": "其中一次运行未见到批数据",
    "no model was seen in one of the two": "其中一次运行未见到模型",
    "no model was seen: its forward pass is compiled as a whole, or no hook sees it": (
        "未见到模型：其前向被整体编译，或没有钩子能看到它"
    ),
    "no optimizer step was seen in one of the two": "其中一次运行未见到优化器更新",
    "no warm-up: the learning rate of the first {steps} steps is the same": ("没有预热：前 {steps} 步的学习率相同"),
    "not set": "未设置",
    "npuport explain NAME says what it does; unset what only one run has.": (
        "npuport explain NAME 说明其作用；请取消仅一次运行设置的变量。"
    ),
    "npuport run --deterministic": "npuport run --deterministic",
    "off": "关闭",
    "optimizer: {reference} and {candidate}": "优化器：{reference} 与 {candidate}",
    "parameter {path}: shape {reference} and {candidate}": "参数 {path}：形状 {reference} 与 {candidate}",
    "processes: {reference} and {candidate}": "进程数：{reference} 与 {candidate}",
    "random operators of the first forward pass: {reference} and {candidate}": (
        "第一次前向中的随机算子：{reference} 与 {candidate}"
    ),
    "rank {rank} has {name} {version}, rank {first} {other}": (
        "rank {rank} 的 {name} 为 {version}，rank {first} 为 {other}"
    ),
    "seed of PyTorch: {reference} and {candidate}": "PyTorch 的种子：{reference} 与 {candidate}",
    (
        "seed {seed} for random, numpy, torch and the devices; deterministic algorithms, {mode} where "
        "there is none; dropout {dropout}"
    ): ("random、numpy、torch 和设备的种子为 {seed}；使用确定性算法，没有时给出{mode}；dropout {dropout}"),
    "state of the random numbers of {name}": "{name} 的随机数状态",
    "the candidate": "被测运行",
    "the generator has drawn other numbers from seed {seed} before the first batch": (
        "在第一个批之前，生成器从种子 {seed} 取出的随机数不同"
    ),
    "the reference": "参考运行",
    "the repository has changes that no commit holds": "仓库中有未提交的修改",
    "the text of {script}": "{script} 的文本",
    "this run": "这次运行",
    "torch.use_deterministic_algorithms is off": "未启用 torch.use_deterministic_algorithms",
    "weight decay {decay}; published {value} ({source})": "权重衰减为 {decay}；公开值为 {value}（{source}）",
    "{name} is {value} in one run; of {side} it is not known": "{name} 在一次运行中为 {value}；{side}的值未知",
    "{name} of the optimizer (group {group}): {reference} and {candidate}": (
        "优化器的 {name}（第 {group} 组）：{reference} 与 {candidate}"
    ),
    "{name}: {reference} and {candidate}": "{name}：{reference} 与 {candidate}",
    "{number} difference": "{number} 处差异",
    "{number} differences": "{number} 处差异",
    "{number} important": "其中 {number} 处重要",
    "{number} more difference": "另外 {number} 处差异",
    "{number} more differences": "另外 {number} 处差异",
    "{number} of {all} weights differ at the first forward pass, {how}: {paths}": (
        "第一次前向时 {all} 个权重中有 {number} 个不同，{how}：{paths}"
    ),
    "{number} weights have another dtype: {path} is {reference} and {candidate}": (
        "{number} 个权重的数据类型不同：{path} 为 {reference} 与 {candidate}"
    ),
    "{path} holds facts of a run already: choose another folder, or remove them.": (
        "{path} 中已有运行的信息：请换一个目录，或先删除它们。"
    ),
    "{path} holds no facts of a run (run.json). They are written by npuport run --preflight {path} -- COMMAND": (
        "{path} 中没有运行的信息（run.json）。请用 npuport run --preflight {path} -- COMMAND 记录"
    ),
    "{path} holds no facts of a run, or not of this version of npuport.": (
        "{path} 不是运行的信息，或不属于此版本的 npuport。"
    ),
    "{tokens} tokens in a step (micro-batch x accumulation x processes); published {value} ({source})": (
        "每步 {tokens} 个 token（微批 x 累积 x 进程数）；公开值为 {value}（{source}）"
    ),
    "{value}, switched off by eval()": "{value}，已被 eval() 关闭",
}
