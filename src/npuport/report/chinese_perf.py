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
    # the summary
    "rank {rank}": "rank {rank}",
    "{number} step": "{number} 步",
    "{number} steps": "{number} 步",
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
    "{count} operators go through the operator compiler in a step, {time} ms": (
        "每步有 {count} 个算子经过算子编译器，共 {time} ms"
    ),
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
    # what could not be read
    "it cannot be read ({reason})": "无法读取（{reason}）",
    "it cannot be read to its end ({reason})": "无法读到末尾（{reason}）",
    "it is cut off: the list of events has no end": "文件被截断：事件列表没有结尾",
    "it holds no list of events": "其中没有事件列表",
    "it holds no events of PyTorch: what the host did is not known": "其中没有 PyTorch 的事件：无法得知主机做了什么",
    "it holds no events of PyTorch's profiler": "其中没有 PyTorch profiler 的事件",
    "it holds none of the profiler's tables": "其中没有 profiler 的任何表",
    "the table {table} cannot be read ({reason})": "表 {table} 无法读取（{reason}）",
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
}
