"""Chinese sentences of `npuport precision check-ops`, `overflow` and `bisect`."""

from __future__ import annotations

CHECKING_SENTENCES = {
    "a collective": "集合通信",
    "its result is no function of its inputs": "结果不由输入决定",
    "random": "随机算子",
    "no kernel on the CPU, and no reference formula": "CPU 没有该算子的实现，也没有参考公式",
    "no reference formula for {argument}": "参考公式不支持 {argument}",
    "it gave {number} tensors, and its formula {other}": "算子给出 {number} 个张量，公式给出 {other} 个",
    "cannot be executed: {reason}": "无法执行：{reason}",
    "an argument was not recorded ({what})": "有一个参数未被记录（{what}）",
    "the values of a tensor were not recorded": "有张量的数值未被记录",
    "no result was recorded": "没有记录结果",
    "it gave no tensor": "未产生张量",
    "its indexes are not told apart in the dump": "dump 中无法区分其索引",
    "{name} is no function of this torch": "{name} 不是当前 torch 的函数",
    "the dump has other gradients than those of its tensors": "dump 中的梯度不是其输入张量的梯度",
    "--repro writes scripts of operators, and {path} has calls of APIs: leave it out.": (
        "--repro 只为算子写脚本，而 {path} 记录的是 API 调用：请去掉该选项。"
    ),
    "{path} has no calls of APIs (it is of level {level}): record them with msprobe's level L1 or mix.": (
        "{path} 没有 API 调用（级别为 {level}）：请以 msprobe 的 L1 或 mix 级别采集。"
    ),
    "{path} has no tensors (its task is {task}): record them with msprobe's task tensor.": (
        "{path} 没有张量（任务为 {task}）：请以 msprobe 的 tensor 任务采集。"
    ),
    "its shape is {shape}, that of the CPU {other}": "形状为 {shape}，CPU 结果为 {other}",
    "{number} of {total} values are finite and should not be, or are not and should": (
        "{total} 个值中有 {number} 个本不应有限却有限，或本应有限却不是"
    ),
    "{number} of {total} whole numbers differ": "{total} 个整数中有 {number} 个不同",
    "{number} of {total} values differ; this operator computes nothing, every bit must agree": (
        "{total} 个值中有 {number} 个不同；该算子不做计算，每一位都应一致"
    ),
    "its error is {error} of its size, {times} x what {dtype} and these inputs explain": (
        "误差为自身大小的 {error}，是 {dtype} 与这些输入所能解释的 {times} 倍"
    ),
    "a value is {got} and should be {truth}: {times} x what {dtype} and these inputs explain": (
        "有一个值为 {got}，应为 {truth}：是 {dtype} 与这些输入所能解释误差的 {times} 倍"
    ),
    (
        "the published standard {standard} is not kept ({share} of the values, allowed {limit}); the CPU keeps it"
    ): "不满足公开标准 {standard}（占 {share} 的值，允许 {limit}）；CPU 结果满足",
    "its error is {times} x that of the reference ({measure}; the published limit is {limit})": (
        "误差为参考的 {times} 倍（{measure}；公开上限为 {limit}）"
    ),
    "the result is {share} off as a whole": "结果整体偏差 {share}",
    "the result is {factor} x what it should be": "结果是应有值的 {factor} 倍",
    "within the error of {mode}, in which this device multiplies by default": (
        "在 {mode} 的误差之内，该设备默认以此格式做乘法"
    ),
    "the same call of the reference is as far off": "参考运行的同一次调用偏差同样大",
    "chose others among equal values": "在相等的值中选择了其他的",
    (
        "{path} holds statistics only: give --device, and each call is executed there with values generated in the "
        "recorded range."
    ): "{path} 只含统计量：请给出 --device，将在该设备上用记录范围内生成的数值执行每次调用。",
    "{path} has no call that --only {pattern} means.": "{path} 中没有 --only {pattern} 所指的调用。",
    "nothing can be executed on {device} here: {reason}": "此处无法在 {device} 上执行：{reason}",
    "checking": "检查中",
    "step {step}, rank {rank} ({device})": "第 {step} 步，rank {rank}（{device}）",
    "{right} right, {wrong} wrong, {open} not judged": "{right} 次正确，{wrong} 次错误，{open} 次未判断",
    "{number} more wrong call": "另外 {number} 次错误的调用",
    "{number} more wrong calls": "另外 {number} 次错误的调用",
    "executed again: ": "再次执行：",
    "result {number}, {dtype} {shape}": "结果 {number}，{dtype} {shape}",
    "executed again it is right: the fault is not in the operator alone (memory, order)": (
        "再次执行结果正确：问题不只在算子本身（内存、执行顺序）"
    ),
    "{path} tells nothing of the values of tensors: record statistics or tensors.": (
        "{path} 没有张量数值的任何信息：请记录统计量或张量。"
    ),
    "{what} holds NaN or infinite values that no recorded call made": (
        "{what} 含有 NaN 或无穷，且并非由已记录的调用产生"
    ),
    "NaN or infinite values come from other ranks": "NaN 或无穷来自其他 rank",
    (
        "a row of the mask hides everything, and the softmax of nothing but -inf is NaN: let each row see one place "
        "(a padding row itself), or use a large negative number"
    ): "掩码有一行遮住了全部，而全为 -inf 的 softmax 是 NaN：请让每行至少看到一处（填充行看到自身），或改用很大的负数",
    (
        "a softmax makes NaN: a row of its mask hides everything, or +inf came in (statistics do not tell which)"
    ): "softmax 产生了 NaN：mask 的某一行遮住了全部位置，或输入中有 +inf（统计量无法区分）",
    "a softmax makes NaN although no row of its mask hides everything": "softmax 产生 NaN，但其掩码没有一行遮住全部",
    "infinite inputs become NaN (inf - inf, or 0 x inf)": "无穷输入变成 NaN（inf - inf，或 0 x inf）",
    "finite inputs become NaN": "有限输入变成 NaN",
    "finite inputs (up to {largest}) become infinite; {dtype} ends at {end}": (
        "有限输入（最大 {largest}）变成无穷；{dtype} 的上限为 {end}"
    ),
    "results end at {end}, the largest {dtype}: a chip that saturates gives it in place of infinity": (
        "结果止于 {end}，即 {dtype} 的最大值：饱和模式的芯片以它代替无穷"
    ),
    (
        "the batch is odd: an input of {operator}, {dtype} {shape}, has values up to {size}, in other steps {usual} at "
        "most"
    ): "该批数据异常：{operator} 的输入（{dtype} {shape}）最大达 {size}，其他步最多 {usual}",
    "{number} more begin in this step of this rank": "此步此 rank 中另有 {number} 处开始",
    "rank {rank} receives it in {operator}": "rank {rank} 经 {operator} 收到",
    "It comes from a rank that was not recorded.": "它来自未被记录的 rank。",
    "step {step}, rank {rank}": "第 {step} 步，rank {rank}",
    "Nothing becomes NaN or infinite that is not meant to.": "没有任何值意外变成 NaN 或无穷。",
    "left out": "跳过",
    "loss scale: {path}": "损失缩放：{path}",
    "The loss scaler left out {times}; it halves the scale each time.": "损失缩放器跳过了 {times}，每次将缩放减半。",
    "No step was made: the scale is not what is too large; look at the call above.": (
        "没有一步成功：问题不在缩放过大；请看上面的调用。"
    ),
    "{share} of the values become zero in float16: {operator} ({phase}) {place}": (
        "{share} 的值在 float16 中变为零：{operator}（{phase}）{place}"
    ),
    "the largest value in float16 is {largest} of 65504: {operator} ({phase}) {place}": (
        "float16 中的最大值为 {largest}（上限 65504）：{operator}（{phase}）{place}"
    ),
    "--by takes {known}, not {value}.": "--by 接受 {known}，不是 {value}。",
    "--check and --reference are two judges: give one.": "--check 与 --reference 是两种判据：请只给一个。",
    "right": "正确",
    "wrong": "错误",
    "run {number}: {raised} raised: {verdict} ({seconds} s)": (
        "第 {number} 次运行：提升 {raised} 个：{verdict}（{seconds} 秒）"
    ),
    "The run is right as it is: there is nothing to search for.": "运行本身正确，无需查找。",
    "It is wrong with every operator raised too: their precision is not the cause.": (
        "提升全部算子后仍然错误：原因不是算子精度。"
    ),
    "Next: npuport precision preflight compares data, weights and settings; logs are in {path}": (
        "下一步：npuport precision preflight 可比较数据、权重和设置；日志在 {path}"
    ),
    "in float32": "用 float32",
    "on the CPU": "在 CPU 上",
    "in float64 on the CPU": "在 CPU 上用 float64",
    "The limit of runs is reached before anything is known; the same command goes on.": (
        "尚无结论即达到运行次数上限；同一命令可继续。"
    ),
    (
        "With these computed {where} the run is right; after {runs} it is not known whether fewer do. The same command "
        "goes on."
    ): "以下算子{where}计算时运行正确；{runs}后尚不知能否更少。同一命令可继续。",
    "With these computed {where}, and nothing else changed, the run is right ({runs}):": (
        "仅以下算子{where}计算、其余不变时，运行正确（{runs}）："
    ),
    "Next: npuport precision check-ops DUMP --only {only} judges these calls alone": (
        "下一步：npuport precision check-ops DUMP --only {only} 可单独判断这些调用"
    ),
    "{number} run": "{number} 次运行",
    "{number} runs": "{number} 次运行",
    "{command} cannot be started: {reason}.": "无法启动 {command}：{reason}。",
    "{path} holds the answers of another search: choose another folder with --keep.": (
        "{path} 中是另一次查找的结果：请用 --keep 选择其他目录。"
    ),
    "No process of the run has computed with torch to its end: look at {path}.": (
        "没有进程用 torch 计算到结束：请查看 {path}。"
    ),
    "{path} has no step {step}: give one that it has with --step.": (
        "{path} 中没有第 {step} 步：请用 --step 给出其中已有的步。"
    ),
    "The run ended with exit code {code} before a module was called as in the reference: see what it says above.": (
        "运行在任何模块按参考方式被调用之前就以退出码 {code} 结束：请看上面的输出。"
    ),
    "No module of the run was called as in the reference (exit code {code}).": (
        "运行中没有模块与参考运行的调用相同（退出码 {code}）。"
    ),
    "{number} module call": "{number} 次模块调用",
    "{number} module calls": "{number} 次模块调用",
    "each with the input of the reference; usually {error} off": "每次都使用参考运行的输入；通常偏差 {error}",
    "its own result is {error} off": "自身结果偏差 {error}",
    "its input was {error} off before it was replaced: the code before it": (
        "替换之前其输入已偏差 {error}：问题在它之前的代码"
    ),
    "No module is further off than the others.": "没有模块的偏差大于其他模块。",
}
