"""Chinese sentences of `npuport perf`."""

from __future__ import annotations

PERFORMANCE_SENTENCES = {
    # the parts of a step
    "data loading": "数据加载",
    "forward": "前向",
    "backward": "反向",
    "optimizer": "优化器",
    "post-processing": "后处理",
    "communication": "通信",
    "moving data": "传输数据",
    "waiting for other ranks": "等待其他 rank",
    "idle": "空闲",
    "collecting garbage": "垃圾回收",
    "compiling operators": "编译算子",
    "allocating device memory": "分配设备内存",
    "host blocked on a synchronisation": "主机阻塞在同步上",
    "before the first kernel": "第一个 kernel 之前",
    "host dispatching operators": "主机下发算子",
    "host outside operators": "主机不在算子中",
    "the host was not recorded": "未记录主机",
    "behind computing {time} more": "另有 {time} 被计算掩盖",
    # the summary
    "recorded with {what}: without, the host is faster": "采集时记录了{what}：不记录时主机更快",
    "Python stacks": "Python 调用栈",
    "allocations of memory": "内存分配",
    "shapes of tensors": "张量形状",
    "rank {rank}": "rank {rank}",
    "{number} step": "{number} 步",
    "{number} steps": "{number} 步",
    "no step is marked: all of it counts as one": "没有标记步：整体算作一步",
    "no step was found": "没有找到任何一步",
    "step {time} ms": "单步 {time} ms",
    "up to -{time} ms": "最多 -{time} ms",
    "{findings} below 1 % of the step: --all shows them": "另有 {findings}低于单步时间的 1 %：用 --all 查看",
    "{one} and {other}": "{one} 与 {other}",
    "{pairs} explain the same time: their gains do not add up. All together at most {time} ms.": (
        "{pairs} 解释的是同一段时间：收益不能相加。全部合计最多 {time} ms。"
    ),
    # findings
    "{operator} makes the host wait for the device, {count} x in a step, {time} ms (the longest {longest} ms)": (
        "{operator} 使主机等待设备，每步 {count} 次，共 {time} ms（最长 {longest} ms）"
    ),
    "give the DataLoader pin_memory=True and copy with .to(device, non_blocking=True)": (
        "给 DataLoader 设置 pin_memory=True，并用 .to(device, non_blocking=True) 拷贝"
    ),
    "keep the size fixed: torch.where or a product with the mask instead of picking elements": (
        "保持大小固定：用 torch.where 或与掩码相乘代替挑选元素"
    ),
    "read the value every 100 steps, or keep it on the device with .detach() and read it later": (
        "每 100 步读取一次该值，或用 .detach() 把它留在设备上，之后再读取"
    ),
    "leave the call out of the training loop; for timing use events": "把该调用移出训练循环；计时请使用 event",
    "{operator} is gone from the steps that do not need it": "{operator} 不再出现在不需要它的步中",
    "operators are compiled {count} x in a step, {time} ms": "每步编译算子 {count} 次，共 {time} ms",
    "call torch.npu.set_compile_mode(jit_compile=False) before the model is built": (
        "在构建模型之前调用 torch.npu.set_compile_mode(jit_compile=False)"
    ),
    "aclopCompileAndExecute is gone from the next profile": "下一次 profile 中不再出现 aclopCompileAndExecute",
    "collectives wait {wait} ms for another rank in a step, and move data for {transmit} ms": (
        "每步集合通信等待其他 rank {wait} ms，传输数据 {transmit} ms"
    ),
    "profile every rank: the one that waits least is late, and its own findings say why": (
        "采集所有 rank：等待最少的 rank 是迟到者，它自己的结果会说明原因"
    ),
    "the waiting of all ranks is alike and short": "所有 rank 的等待时间相近且很短",
    "collectives take {time} ms in a step, {bare} ms of it while nothing is computed": (
        "每步集合通信用时 {time} ms，其中 {bare} ms 没有被计算掩盖"
    ),
    "let the reduction run behind the backward: larger or smaller buckets (bucket_cap_mb), gradients as views": (
        "让梯度规约与反向重叠：调大或调小 bucket（bucket_cap_mb），使用 gradient_as_bucket_view"
    ),
    "more of the communication is overlapped": "更多的通信被掩盖",
    "the device waits {time} ms in a step for the host to launch operators ({kernels} kernels in a step)": (
        "每步设备等待主机下发算子 {time} ms（每步 {kernels} 个 kernel）"
    ),
    "launch less: fused operators, a larger batch; set TASK_QUEUE_ENABLE=2 and CPU_AFFINITY_CONF=2": (
        "减少下发：融合算子、更大的 batch；设置 TASK_QUEUE_ENABLE=2 和 CPU_AFFINITY_CONF=2"
    ),
    "launch less: torch.compile, fused operators, a larger batch": "减少下发：torch.compile、融合算子、更大的 batch",
    "the part of dispatching in the step is smaller": "单步中下发算子的部分变小",
    "the device waits {time} ms in a step for its first kernel": "每步设备等待第一个 kernel {time} ms",
    "prepare the next batch while this one trains: in the DataLoader's workers, copied on a stream of its own": (
        "在训练当前 batch 时准备下一个：在 DataLoader 的 worker 中处理，并在单独的 stream 上拷贝"
    ),
    "the first kernel of a step starts with it": "每步的第一个 kernel 在步开始时就启动",
    "the device waits {time} ms in a step while the host is outside operators": (
        "每步有 {time} ms 主机不在算子中，设备在等待"
    ),
    "move what the loop does between operators (logging, metrics, checkpoints) out of most steps": (
        "把训练循环在算子之间做的事（日志、指标、检查点）移出大多数步"
    ),
    "the part outside operators in the step is smaller": "单步中主机不在算子中的部分变小",
    "Python's garbage collector runs {count} x in a step, {time} ms": (
        "Python 垃圾回收每步运行 {count} 次，共 {time} ms"
    ),
    "call gc.freeze() once the model is built, and collect by hand every few hundred steps": (
        "构建模型后调用 gc.freeze()，并每几百步手动回收一次"
    ),
    "no collection lies in a step of the next profile": "下一次 profile 的步中没有垃圾回收",
    "ASCEND_LAUNCH_BLOCKING=1: the host waits after every launch, {time} ms in a step": (
        "ASCEND_LAUNCH_BLOCKING=1：主机在每次下发后等待，每步 {time} ms"
    ),
    "unset ASCEND_LAUNCH_BLOCKING; it is for finding the operator that fails": (
        "取消 ASCEND_LAUNCH_BLOCKING；它只用于定位出错的算子"
    ),
    "the part blocked on synchronisations is gone": "阻塞在同步上的部分消失",
    "the training loop waits {time} ms in a step for its DataLoader ({idle} ms of it with an idle device)": (
        "训练循环每步等待 DataLoader {time} ms（其中 {idle} ms 设备空闲）"
    ),
    "give the DataLoader num_workers: it loads in the training process, while nothing is computed": (
        "给 DataLoader 设置 num_workers：现在它在训练进程中加载，期间没有计算"
    ),
    "more workers, persistent_workers=True, a larger prefetch_factor, or cheaper transforms in the workers": (
        "更多 worker、persistent_workers=True、更大的 prefetch_factor，或在 worker 中使用更省的变换"
    ),
    "the part of data loading in the step is near zero": "单步中数据加载的部分接近零",
    "device memory is allocated or freed {count} x in a step, {time} ms": (
        "每步分配或释放设备内存 {count} 次，共 {time} ms"
    ),
    "set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, and take empty_cache() out of the loop": (
        "设置 PYTORCH_NPU_ALLOC_CONF=expandable_segments:True，并把 empty_cache() 移出循环"
    ),
    "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and take empty_cache() out of the loop": (
        "设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True，并把 empty_cache() 移出循环"
    ),
    "steps after the first few call neither allocation nor freeing": "最初几步之后不再分配或释放设备内存",
    "{count} kernels run on the control processors of the device (AI CPU) in a step, {time} ms: {types}": (
        "每步有 {count} 个 kernel 运行在设备的控制处理器（AI CPU）上，共 {time} ms：{types}"
    ),
    "change the data type (float64 to float32, int64 to int32), or write the operator with others": (
        "更换数据类型（float64 换成 float32，int64 换成 int32），或用其他算子实现"
    ),
    "the next profile has no kernels on AI_CPU": "下一次 profile 中没有 AI_CPU 上的 kernel",
    "{count} kernels only convert between memory layouts in a step, {time} ms: {types}": (
        "每步有 {count} 个 kernel 只做内存格式转换，共 {time} ms：{types}"
    ),
    "set torch.npu.config.allow_internal_format=False before the model is built": (
        "在构建模型之前设置 torch.npu.config.allow_internal_format=False"
    ),
    "the next profile has few or no TransData kernels": "下一次 profile 中很少或没有 TransData",
    "{count} kernels only bring values into another order in a step, {time} ms: {types}": (
        "每步有 {count} 个 kernel 只改变数据排列，共 {time} ms：{types}"
    ),
    "call .contiguous() once behind the transpose or slice, or give operators the layout they want": (
        "在 transpose 或切片之后调用一次 .contiguous()，或直接给算子所需的排列"
    ),
    "the next profile has fewer of these kernels": "下一次 profile 中这类 kernel 更少",
    "{optimizer} launches {count} kernels in a step, the host takes {time} ms for that": (
        "{optimizer} 每步下发 {count} 个 kernel，主机为此用时 {time} ms"
    ),
    "use torch_npu.optim.NpuFused{optimizer}, or foreach=True": (
        "使用 torch_npu.optim.NpuFused{optimizer}，或 foreach=True"
    ),
    "give the optimizer foreach=True or fused=True": "给优化器设置 foreach=True 或 fused=True",
    "the optimizer launches a handful of kernels in a step": "优化器每步只下发少数几个 kernel",
    # what could not be read
    "it holds no events: nothing was recorded in its steps": "其中没有事件：各步中什么都没有记录",
    "it was collected, but not parsed: run torch_npu.profiler.profiler.analyse({path!r}) first": (
        "已采集但尚未解析：请先运行 torch_npu.profiler.profiler.analyse({path!r})"
    ),
    "{name} is {other}, but {first} in {path}: compare their numbers with care": (
        "{name} 为 {other}，而 {path} 中为 {first}：比较数字时请谨慎"
    ),
    "it cannot be read ({reason})": "无法读取（{reason}）",
    "it cannot be read to its end ({reason})": "无法读到末尾（{reason}）",
    "it is cut off: the list of events has no end": "文件被截断：事件列表没有结尾",
    "it holds no list of events": "其中没有事件列表",
    "it holds no events of PyTorch: what the host did is not known": "其中没有 PyTorch 的事件：无法得知主机做了什么",
    "it holds no events of PyTorch's profiler": "其中没有 PyTorch profiler 的事件",
    "it holds none of the profiler's tables": "其中没有 profiler 的任何表",
    "the table {table} cannot be read ({reason})": "表 {table} 无法读取（{reason}）",
    "{number} events are of a kind that is not read: {kind}": "有 {number} 个事件属于不读取的类型：{kind}",
    "{number} entries are malformed": "{number} 个条目格式错误",
    "{number} events end before they begin": "{number} 个事件在开始之前就结束",
    "{number} events are malformed": "{number} 个事件格式错误",
    "columns are missing: {columns}": "缺少列：{columns}",
    "it is missing: what the host did is not known": "文件缺失：无法得知主机做了什么",
    "it is missing: types and shapes of the kernels are not known": "文件缺失：无法得知 kernel 的类型和形状",
    (
        "{path} holds no profile: neither a result of torch_npu's profiler (…_ascend_pt) nor a trace of "
        "PyTorch's (….pt.trace.json)."
    ): (
        "{path} 中没有 profile：既没有 torch_npu profiler 的结果（…_ascend_pt），"
        "也没有 PyTorch 的 trace（….pt.trace.json）。"
    ),
    # npuport run --profile
    "profiling steps {first} to {last}: {least} to {most} MB a rank": (
        "正在 profile 第 {first} 至 {last} 步：每个 rank {least} 至 {most} MB"
    ),
    "only {free} MB are free there": "那里只剩 {free} MB 空间",
    "profiled steps {first} to {last}: {size} MB in {folder}": (
        "已 profile 第 {first} 至 {last} 步：{size} MB，位于 {folder}"
    ),
    "a step took {profiled} ms under the profiler, {plain} ms without": (
        "profiler 下单步耗时 {profiled} ms，不使用时 {plain} ms"
    ),
    "the run ended after {number} steps; step {first} was to be profiled first: --profile-steps {last}": (
        "运行在 {number} 步后结束，未到达要 profile 的第 {first} 步：--profile-steps {last}"
    ),
    "the run ended before step {first}: nothing was profiled": "运行在第 {first} 步之前结束：没有 profile 任何一步",
    "next: npuport perf analyze {folder}": "下一步：npuport perf analyze {folder}",
    "nothing was profiled: steps are counted by the optimizer's, and the run had none or too few": (
        "没有 profile 任何一步：步数按优化器的 step 计算，而这次运行没有或太少"
    ),
    "{path} holds profiles already: choose another folder, or remove them.": (
        "{path} 中已有 profile：请选择其他目录，或将其删除。"
    ),
    "{option} takes {known} or nothing, not {given}": "{option} 接受 {known} 或 nothing，而不是 {given}",
    "{option} takes a number or a range, such as 10 or 10-12, not {text}": (
        "{option} 接受一个数字或范围，例如 10 或 10-12，而不是 {text}"
    ),
    # npuport perf ranks
    "reading ranks": "正在读取各 rank",
    "{number} rank": "{number} 个 rank",
    "{number} ranks": "{number} 个 rank",
    "a step takes {average} ms, longest on rank {rank} ({longest} ms)": (
        "单步平均 {average} ms，最长的是 rank {rank}（{longest} ms）"
    ),
    "{number} more finding": "另有 {number} 个发现",
    "{number} more findings": "另有 {number} 个发现",
    "no rank, link or stage stands out": "没有突出的 rank、链路或流水线阶段",
    "the latest ranks (ms a step): {ranks}": "最迟的 rank（每步 ms）：{ranks}",
    "{path} holds one profile: comparing ranks takes several.": "{path} 中只有一个 profile：比较 rank 需要多个。",
    "rank {rank} loads data {excess} ms longer than the others, which wait {late} ms for it": (
        "rank {rank} 加载数据比其他 rank 多 {excess} ms，其他 rank 为此等待 {late} ms"
    ),
    "look at this machine's storage, its processors and what else runs there; more workers, prefetching": (
        "检查这台机器的存储、处理器以及其上运行的其他程序；增加 worker、预取"
    ),
    "rank {rank} is late by {late} ms: {part} takes {excess} ms more there": (
        "rank {rank} 迟到 {late} ms：其“{part}”多用 {excess} ms"
    ),
    "npuport perf analyze {path} says what its host does there": "npuport perf analyze {path} 会说明其主机在做什么",
    (
        "rank {rank} computes {excess} ms longer than the others, with {more} kernels against {usual}: it has more "
        "to do, and they wait {late} ms"
    ): (
        "rank {rank} 比其他 rank 多计算 {excess} ms，kernel 数为 {more} 对 {usual}："
        "它的工作更多，其他 rank 等待 {late} ms"
    ),
    "give all ranks as much: samples of like length, the same micro-batches, experts in balance": (
        "让所有 rank 的工作相同：样本长度相近、micro-batch 相同、专家均衡"
    ),
    "rank {rank} computes the same kernels {ratio} x as long as the others, which wait {late} ms for it": (
        "rank {rank} 计算相同的 kernel 用时是其他 rank 的 {ratio} 倍，其他 rank 为此等待 {late} ms"
    ),
    (
        "look at this chip: frequency and temperature (npu-smi info -t common), other processes, its inputs' sizes"
    ): "检查这颗芯片：频率与温度（npu-smi info -t common）、其他进程、其输入的大小",
    (
        "the {kind} link from rank {source} to rank {destination} moves {rate} GB/s, others {usual}: {cost} ms "
        "more in a step"
    ): "rank {source} 到 rank {destination} 的 {kind} 链路为 {rate} GB/s，其他为 {usual}：每步多 {cost} ms",
    "check this link (hccn_tool -stat, -link, optical modules) and what else uses it": (
        "检查这条链路（hccn_tool -stat、-link、光模块）以及谁还在使用它"
    ),
    (
        "pipeline stage {stage} of {number} computes {longest} ms in a step, the others {others} ms: {more} ms more"
    ): "{number} 个流水线阶段中的第 {stage} 阶段每步计算 {longest} ms，其他为 {others} ms：多 {more} ms",
    "move layers from this stage to others; the first has the embedding, the last the head and the loss": (
        "把这一阶段的层移到其他阶段；第一阶段有 embedding，最后一阶段有 head 和 loss"
    ),
    "ranks wait {time} ms of a step for other pipeline stages ({share}), rank {rank} longest: {longest} ms": (
        "各 rank 每步等待其他流水线阶段 {time} ms（{share}），最长的是 rank {rank}：{longest} ms"
    ),
    (
        "more micro-batches in a step, or interleaved stages: with p stages and m micro-batches the bubble is "
        "(p - 1) / (m + p - 1) of a step"
    ): "每步使用更多 micro-batch，或交错的阶段：p 个阶段、m 个 micro-batch 时，气泡占一步的 (p - 1) / (m + p - 1)",
    "all {number} ranks wait {time} ms at once in a step": "全部 {number} 个 rank 每步同时等待 {time} ms",
    "the rank that they wait for is not among them: profile all ranks": (
        "它们等待的 rank 不在其中：请 profile 所有 rank"
    ),
    # npuport perf export
    "--format takes parquet, trace or all, not {given}": "--format 接受 parquet、trace 或 all，而不是 {given}",
    "{path} is not empty: choose another folder.": "{path} 不为空：请选择其他目录。",
    "{path} is written to {folder}": "{path} 已写入 {folder}",
    # npuport perf compare
    "reference": "参考",
    "candidate": "候选",
    "a step takes {ratio} x as long, its kernels {kernels} x": "单步用时是 {ratio} 倍，其中 kernel 是 {kernels} 倍",
    "the reference holds no kernels: parts of the step alone are compared": "参考中没有 kernel：只比较单步的各部分",
    "above their share, by module:": "超出份额的模块：",
    "above their share, by operator:": "超出份额的算子：",
    "nothing takes more than its share": "没有超出份额的项",
    "modules are not in both profiles: record both with stacks": "两个 profile 并非都含模块：请都带 stacks 采集",
    "grown most: {parts}": "增长最多：{parts}",
    "+{excess} ms above its share": "超出份额 +{excess} ms",
    "not in the reference": "参考中没有",
    # metrics
    "{number} steps/s": "{number} 步/秒",
    "{number} samples/s": "{number} 样本/秒",
    "{number} tokens/s": "{number} token/秒",
    "steps of {shortest} to {longest} ms (±{deviation})": "单步 {shortest} 到 {longest} ms（±{deviation}）",
    "only communication {share} of the step": "仅通信占单步 {share}",
    "memory at its peak {allocated} GB": "内存峰值 {allocated} GB",
    "memory at its peak {allocated} GB, reserved {reserved} GB": "内存峰值 {allocated} GB，已预留 {reserved} GB",
    "{transport} {rate} GB/s": "{transport} {rate} GB/s",
    "{transport} {rate} of {nominal} GB/s": "{transport} {rate} GB/s（标称 {nominal} GB/s）",
    "MFU {efficiency} of {peak} TFLOP/s ({chip}, {dtype})": "MFU {efficiency}（峰值 {peak} TFLOP/s，{chip}，{dtype}）",
    "{number} TFLOP/s": "{number} TFLOP/s",
    "(no MFU: --chip names the chip)": "（无 MFU：用 --chip 指定芯片）",
    "(no MFU: --dtype names the type of matrix products)": "（无 MFU：用 --dtype 指定矩阵乘的数据类型）",
    "(no MFU: no peak is known of {chip} in {dtype})": "（无 MFU：不知道 {chip} 在 {dtype} 下的峰值）",
    "attention not counted in it, {count} x": "其中未计入注意力算子 {count} 次",
    "computing {share} of the step": "计算占单步 {share}",
    "held at the peak of memory, of what was allocated while profiling:": (
        "内存峰值时占用的内存（采集期间分配的部分）："
    ),
    # findings on links and memory
    "{transport} moves {rate} GB/s, nominal are {nominal} GB/s": "{transport} 带宽为 {rate} GB/s，标称 {nominal} GB/s",
    "compare with hccl_test on idle machines; then larger buckets, and less computing at the same time": (
        "在空闲机器上用 hccl_test 对比；再增大 bucket，并减少同时进行的计算"
    ),
    "the bandwidth is above 0.8 of the nominal one": "带宽高于标称值的 0.8",
    "{count} collectives move little over {transport} in a step, {slow} GB/s where large ones reach {fast}": (
        "每步有 {count} 次集合通信经 {transport} 只传少量数据，带宽 {slow} GB/s，大数据量时可达 {fast}"
    ),
    "let fewer collectives move more: larger buckets (bucket_cap_mb), gradient accumulation": (
        "让更少的集合通信传更多数据：增大 bucket（bucket_cap_mb）、梯度累积"
    ),
    "fewer collectives, of 16 MB or more inside a node and 1 MB or more between nodes": (
        "集合通信更少，节点内每次 16 MB 以上，节点间每次 1 MB 以上"
    ),
    "{count} collectives take {time} ms over RDMA, longer than the time after which cards send again": (
        "{count} 次集合通信经 RDMA 用时 {time} ms，超过网卡重传的时间"
    ),
    (
        "look for lost packets: flow control (PFC) of switches and cards, HCCL_RDMA_TC and HCCL_RDMA_SL, "
        "hccn_tool -stat"
    ): "检查丢包：交换机和网卡的流控（PFC）、HCCL_RDMA_TC 与 HCCL_RDMA_SL、hccn_tool -stat",
    "no collective takes 4 s over RDMA": "没有集合通信经 RDMA 用时达到 4 s",
    "at the peak {unused} GB of {reserved} GB reserved memory are in no tensor": (
        "峰值时预留的 {reserved} GB 内存中有 {unused} GB 不属于任何张量"
    ),
    "at the peak less than 1 GB of the reserved memory is unused": "峰值时未使用的预留内存不到 1 GB",
    "up to -{size} GB": "最多 -{size} GB",
    "kernels run {time} ms in a step while the AI cores are at {lowest} MHz instead of {highest} MHz": (
        "每步有 {time} ms 的 kernel 运行时 AI Core 频率降到 {lowest} MHz，而不是 {highest} MHz"
    ),
    "look at temperature and power of the chip (npu-smi info), cooling, and power limits of the machine": (
        "检查芯片的温度和功耗（npu-smi info）、散热以及机器的功率限制"
    ),
    "the clock stays at its highest while kernels run": "kernel 运行时频率保持在最高值",
}
