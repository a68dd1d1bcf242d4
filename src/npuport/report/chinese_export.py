"""Chinese sentences of `npuport export`."""

from __future__ import annotations

EXPORT_SENTENCES = {
    "--cache is for a Hugging Face folder, and makes the inputs itself: leave out --input.": (
        "--cache 用于 Hugging Face 目录，并自行生成输入：请去掉 --input。"
    ),
    "--cache is for decoders of transformers, and {model} has no cache of keys and values: {reason}.": (
        "--cache 用于 transformers 的解码器，而 {model} 没有键值缓存：{reason}。"
    ),
    "--dynamic takes batch, image, dims or shape, not {given}.": (
        "--dynamic 可取 batch、image、dims 或 shape，不能是 {given}。"
    ),
    "--input {text} is not understood. Write NAME=FILE.npy or NAME=FOLDER.": (
        "无法理解 --input {text}。请写成 NAME=FILE.npy 或 NAME=FOLDER。"
    ),
    "Next: on the NPU machine bash {folder}/run_om.sh, then anywhere bash {folder}/compare.sh": (
        "下一步：在 NPU 机器上执行 bash {folder}/run_om.sh，之后在任意机器上执行 bash {folder}/compare.sh"
    ),
    "onnxruntime cannot run {path}: {reason}.": "onnxruntime 无法运行 {path}：{reason}。",
    "the size of {axes} of {value} is not fixed: give --size {example}.": (
        "{value} 的 {axes} 大小不固定：请给出 --size {example}。"
    ),
    "{folder}: {files} of inputs, run_om.sh for the NPU machine, compare.sh for onnxruntime. Neither was run.": (
        "{folder}：{files}输入，run_om.sh 用于 NPU 机器，compare.sh 用于 onnxruntime。二者均未执行。"
    ),
    "{path} has no input {name}. It has: {known}.": "{path} 没有输入 {name}。它的输入有：{known}。",
    "{path} is neither an .npy file nor a folder with some.": "{path} 既不是 .npy 文件，也不是含有 .npy 的目录。",
    "{path} is of another size than the first: an .om takes one size at a time.": (
        "{path} 的大小与第一个不同：.om 一次只接受一种大小。"
    ),
    "--arguments is no JSON: {reason}.": "--arguments 不是 JSON：{reason}。",
    '--arguments takes a JSON object such as {{"num_classes": 10}}.': (
        '--arguments 需要一个 JSON 对象，例如 {{"num_classes": 10}}。'
    ),
    "--input names {name} twice.": "--input 中 {name} 出现了两次。",
    "--input {text} is not understood. Write NAME=DTYPE[AXES], such as image=float32[batch,3,224,224] or "
    "ids=int64[batch,sequence]:0..999.": (
        "无法理解 --input {text}。请写成 NAME=DTYPE[AXES]，例如 image=float32[batch,3,224,224] 或 "
        "ids=int64[batch,sequence]:0..999。"
    ),
    "--input {text}: the values go from the smaller to the larger.": "--input {text}：取值范围应从小到大。",
    "--input {text}: {axis} is no axis. An axis is a size (3), a name (batch) or a sum (past+sequence).": (
        "--input {text}：{axis} 不是合法的轴。轴可以是大小（3）、名称（batch）或二者之和（past+sequence）。"
    ),
    "--input {text}: {dtype} is no dtype that is exported. Known are {known}.": (
        "--input {text}：不支持导出数据类型 {dtype}。支持的有 {known}。"
    ),
    "--output-names gives {given} names, and the model returns {number} tensors: {names}.": (
        "--output-names 给出 {given} 个名称，而模型返回 {number} 个张量：{names}。"
    ),
    "--size {name}: no input has an axis of this name. Known are: {known}.": (
        "--size {name}：没有输入带有该名称的轴。已有的名称：{known}。"
    ),
    "--size {text} is not understood. Write NAME=SIZE,SIZE such as height=224,320.": (
        "无法理解 --size {text}。请写成 NAME=SIZE,SIZE，例如 height=224,320。"
    ),
    "Next: npuport export atc {path} --soc Ascend310P3": "下一步：npuport export atc {path} --soc Ascend310P3",
    "PyTorch cannot export the model to operator set {opset}: {reason}. --opset {other} uses PyTorch's other "
    "exporter.": "PyTorch 无法把模型导出为算子集 {opset}：{reason}。--opset {other} 会使用 PyTorch 的另一个导出器。",
    "PyTorch itself runs the model with none of the other sizes that were tried ({sizes}), so that its "
    "dynamic axes are untested and nothing is written. Give sizes that it takes, such as --size {example}.": (
        "在所尝试的其他大小（{sizes}）下 PyTorch 自身也无法运行该模型，动态轴未经验证，因此不写出文件。"
        "请给出模型可接受的大小，例如 --size {example}。"
    ),
    "PyTorch wrote operator set {written} in place of {opset}: it knows no way to the other.": (
        "PyTorch 写出的是算子集 {written} 而不是 {opset}：它无法转换到后者。"
    ),
    "allowed {allowed}": "允许 {allowed}",
    "axis {axis} of {name} became fixed, so nothing is written: the model uses its size as a plain "
    "number. Write a number in --input, or keep the size a tensor's shape in the model.": (
        "{name} 的轴 {axis} 变成了固定值，因此不写出文件：模型把它的大小当作普通数字使用。"
        "请在 --input 中写成数字，或在模型中保持由张量形状取得该大小。"
    ),
    "give each input of the model, such as --input image=float32[batch,3,224,224].": (
        "请给出模型的每个输入，例如 --input image=float32[batch,3,224,224]。"
    ),
    "input": "输入",
    "no --checkpoint: the weights are those that {model} gives": "未给出 --checkpoint：使用 {model} 自带的权重",
    "no such file: {path}.": "没有该文件：{path}。",
    "onnxruntime agrees with PyTorch (largest difference, over the largest value):": (
        "onnxruntime 与 PyTorch 一致（最大误差与最大值之比）："
    ),
    "onnxruntime does not take the exported model, so nothing is written: {reason}. Export in float32: "
    "ATC lowers the precision itself (--precision_mode).": (
        "onnxruntime 无法加载导出的模型，因此不写出文件：{reason}。请以 float32 导出：ATC 会自行降低精度"
        "（--precision_mode）。"
    ),
    "output": "输出",
    "output {name} is bfloat16, in which onnxruntime computes little on the CPU. Export the model in float32 "
    "(model.float()): ATC lowers the precision itself.": (
        "输出 {name} 为 bfloat16，onnxruntime 在 CPU 上几乎不支持。请以 float32 导出模型（model.float()）："
        "ATC 会自行降低精度。"
    ),
    "output {name} of the exported model differs from PyTorch's for {sizes} by {value} of its largest "
    "value (allowed {allowed}), so nothing is written. Random numbers in the model, ties that are "
    "sorted, or an exporter's fault: try --opset {other}.": (
        "当 {sizes} 时，导出模型的输出 {name} 与 PyTorch 相差其最大值的 {value}（允许 {allowed}），因此不写出文件。"
        "可能是模型中有随机数、对相等值排序，或导出器有误：可尝试 --opset {other}。"
    ),
    "output {name} of the exported model has the shape {shape} for {sizes}, and {wanted} in PyTorch, so "
    "nothing is written. An exporter took a size for a constant: try --opset {other}.": (
        "当 {sizes} 时，导出模型的输出 {name} 的形状为 {shape}，而 PyTorch 中为 {wanted}，因此不写出文件。"
        "导出器把某个大小当成了常量：可尝试 --opset {other}。"
    ),
    "the exported model fails for {sizes}, where PyTorch does not, so nothing is written: {reason}. "
    "Either an exporter took a size for a constant (try --opset {other}), or the model reads sizes as "
    "plain numbers.": (
        "当 {sizes} 时导出的模型运行失败，而 PyTorch 可以运行，因此不写出文件：{reason}。"
        "或者导出器把某个大小当成了常量（可尝试 --opset {other}），或者模型把大小读成了普通数字。"
    ),
    "the model calls {name}, an operator of NPUs that neither ONNX nor this CPU has. Export the model with plain "
    "PyTorch in its place (npuport explain {name} names what it stands for).": (
        "模型调用了 {name}，这是 NPU 专有算子，ONNX 与本机 CPU 都没有。导出时请换成普通的 PyTorch 写法"
        "（npuport explain {name} 说明它对应的运算）。"
    ),
    "the model does not use its input {name}: leave it out.": "模型没有用到输入 {name}：请去掉它。",
    "the model itself fails on the CPU for {sizes}: {reason}. Its forward takes {signature}; "
    "--input gives the inputs, --size the sizes of named axes.": (
        "当 {sizes} 时模型自身在 CPU 上运行失败：{reason}。其 forward 的参数为 {signature}；"
        "用 --input 给出输入，用 --size 给出具名轴的大小。"
    ),
    "the model returns no tensor: ONNX has tensors as outputs.": "模型没有返回张量：ONNX 的输出必须是张量。",
    "{folder} cannot be loaded: {reason}.": "无法加载 {folder}：{reason}。",
    "{folder} has no config.json: it is no Hugging Face model.": (
        "{folder} 中没有 config.json：它不是 Hugging Face 模型。"
    ),
    "{folder} needs transformers: pip install transformers": "{folder} 需要 transformers：pip install transformers",
    '{name} is missing: pip install torch "npuport[export]"': '缺少 {name}：pip install torch "npuport[export]"',
    "{names}: forward has no parameter of this name. It takes {signature}.": (
        "{names}：forward 没有该名称的参数。它的参数为 {signature}。"
    ),
    "{number} node": "{number} 个节点",
    "{number} nodes": "{number} 个节点",
    "{path} cannot be read as weights alone ({reason}). Nothing else in it is run: save "
    "model.state_dict() of the model on the CPU, and give that file.": (
        "{path} 不能作为纯权重读取（{reason}）。其中的其他内容不会被执行：请在 CPU 上保存 model.state_dict()，"
        "再给出该文件。"
    ),
    "{path} has no weights under {key}. It has: {keys}.": "{path} 的 {key} 下没有权重。其中有：{keys}。",
    "{path} has weights under {number} keys ({keys}): name one with --checkpoint-key.": (
        "{path} 中有 {number} 个键下是权重（{keys}）：请用 --checkpoint-key 指定一个。"
    ),
    "{path} holds a {kind}, no weights by name.": "{path} 中是 {kind}，不是按名称存放的权重。",
    "{path} holds the weights of another model. Missing there: {missing}. Unknown to the model: {unexpected}.": (
        "{path} 是另一个模型的权重。其中缺少：{missing}。模型没有的：{unexpected}。"
    ),
    "{path} holds weights of other sizes: {reason}": "{path} 中权重的大小不符：{reason}",
    "{path} is no JSON: {reason}.": "{path} 不是 JSON：{reason}。",
    "{path} is no ONNX file: {reason}.": "{path} 不是 ONNX 文件：{reason}。",
    "{path} names no class of transformers {version} under architectures.": (
        "{path} 的 architectures 中没有 transformers {version} 的类。"
    ),
    '{path} needs onnx to be read: pip install "npuport[export]"': (
        '读取 {path} 需要 onnx：pip install "npuport[export]"'
    ),
    "{path}: operator set {opset}, {nodes} of {kinds}": "{path}：算子集 {opset}，{kinds}，共 {nodes}",
    "{place} cannot be imported: {reason}.": "无法导入 {place}：{reason}。",
    "{place} ends the program when it is imported: keep what trains under if __name__ == '__main__'.": (
        "{place} 在导入时结束了程序：请把训练代码放在 if __name__ == '__main__' 之下。"
    ),
    "{place} has no {name}.": "{place} 中没有 {name}。",
    "{place} needs torch_npu, which does not load here: {reason}. Run the same command behind "
    "`npuport run --sim --`, or on the NPU machine.": (
        "{place} 需要 torch_npu，而它在本机无法加载：{reason}。请在同一命令前加上 `npuport run --sim --`，"
        "或在 NPU 机器上执行。"
    ),
    "{sizes}: not compared, PyTorch itself cannot run them": "{sizes}：未比较，PyTorch 自身无法以此运行",
    "{source} could not be called: {reason}. Arguments go into --arguments as JSON; it takes {signature}.": (
        "调用 {source} 失败：{reason}。参数以 JSON 写在 --arguments 中；它接受 {signature}。"
    ),
    "{source} gave a {kind}, not a torch.nn.Module: name a class of a module, a function that makes one, "
    "or a module.": ("{source} 给出的是 {kind} 而不是 torch.nn.Module：请指定模块类、返回模块的函数，或模块对象。"),
    "{source} is no model: give MODULE:CALLABLE such as nets.resnet:resnet18 or nets/resnet.py:resnet18, "
    "or a Hugging Face folder with a config.json.": (
        "{source} 不是模型：请给出 MODULE:CALLABLE，例如 nets.resnet:resnet18 或 nets/resnet.py:resnet18，"
        "或带有 config.json 的 Hugging Face 目录。"
    ),
}
