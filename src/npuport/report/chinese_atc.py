"""Chinese sentences of `npuport export atc` and `npuport export check-atc`."""

from __future__ import annotations

ATC_SENTENCES = {
    "--dynamic_batch_size: no input in --input_shape has -1 as its first size.": (
        "--dynamic_batch_size：--input_shape 中没有首维为 -1 的输入。"
    ),
    "--dynamic_batch_size: only the first size of {input} may be -1 (else --dynamic_dims).": (
        "--dynamic_batch_size：{input} 只有首维可以为 -1（否则请用 --dynamic_dims）。"
    ),
    "--dynamic_batch_size: {size} is outside of {low} to {high}.": (
        "--dynamic_batch_size：{size} 超出 {low} 到 {high}。"
    ),
    "--dynamic_dims has {number} profiles: documents advise 3 or 4.": (
        "--dynamic_dims 有 {number} 个档位：文档建议 3 到 4 个。"
    ),
    "--dynamic_dims: --input_shape has no -1.": "--dynamic_dims：--input_shape 中没有 -1。",
    "--dynamic_dims: a profile has {sizes} sizes, and --input_shape has {number} axes of -1.": (
        "--dynamic_dims：某个档位有 {sizes} 个值，而 --input_shape 中有 {number} 个 -1。"
    ),
    "--dynamic_dims: the profile {profile} gives {name} the sizes {sizes}; in the model it is one size.": (
        "--dynamic_dims：档位 {profile} 给 {name} 的值为 {sizes}；而在模型中它是同一个大小。"
    ),
    "--dynamic_image_size: a profile is a height and a width, such as 416,416.": (
        "--dynamic_image_size：每个档位由高和宽组成，例如 416,416。"
    ),
    "--dynamic_image_size: in --input_shape the height and width of an input with four sizes are -1, and "
    "nothing else{wrong}.": ("--dynamic_image_size：--input_shape 中只有四维输入的高和宽可以为 -1{wrong}。"),
    "--framework={framework} reads {expected} files, and --model is {model}.": (
        "--framework={framework} 读取 {expected} 文件，而 --model 是 {model}。"
    ),
    "--input_format is {format}, and no input has {sizes} sizes: ND is for any other number.": (
        "--input_format 为 {format}，但没有 {sizes} 维的输入：其他维数请用 ND。"
    ),
    "--input_format takes {values} with --framework={framework}, not {value}.": (
        "--framework={framework} 时 --input_format 可取 {values}，不能是 {value}。"
    ),
    "--input_shape gives {input} {number} sizes; in the model it is {value}.": (
        "--input_shape 给 {input} 指定了 {number} 维；模型中为 {value}。"
    ),
    "--input_shape lacks {input}: {value}.": "--input_shape 缺少 {input}：{value}。",
    "--input_shape makes size {axis} of {input} {size}; the model fixes it at {fixed}.": (
        "--input_shape 把 {input} 的第 {axis} 维设为 {size}；模型中固定为 {fixed}。"
    ),
    "--input_shape names {input}, which is no input of the model. It has: {known}.": (
        "--input_shape 中的 {input} 不是模型的输入。模型的输入有：{known}。"
    ),
    "--input_shape names {name} twice.": "--input_shape 中 {name} 出现了两次。",
    "--input_shape: the range {range} is empty.": "--input_shape：范围 {range} 为空。",
    "--input_shape: {part} has no name: an input is written NAME:SIZE,SIZE.": (
        "--input_shape：{part} 没有名称：输入应写成 NAME:SIZE,SIZE。"
    ),
    "--input_shape: {size} in {part} is no size of an axis.": "--input_shape：{part} 中的 {size} 不能作为轴的大小。",
    "--input_shape: {size} in {part} is no size: write 3, -1 or 1~8, separated by commas.": (
        "--input_shape：{part} 中的 {size} 不是大小：请写 3、-1 或 1~8，以英文逗号分隔。"
    ),
    "--option {text} is not understood. Write NAME=VALUE such as log=error.": (
        "无法理解 --option {text}。请写成 NAME=VALUE，例如 log=error。"
    ),
    "--out_nodes names {part}, which is neither an output ({outputs}) nor a node with the number of its "
    "output, such as Conv_0:0.": (
        "--out_nodes 中的 {part} 既不是输出（{outputs}），也不是带输出序号的节点（例如 Conv_0:0）。"
    ),
    "--output_type takes {values}, not {value}.": "--output_type 可取 {values}，不能是 {value}。",
    "--soc_version={name}: no chip that is known here. ATC takes the name of the chip as `npu-smi info` "
    "shows it behind Ascend, such as {near}.": (
        "--soc_version={name}：这里没有收录该芯片。ATC 要求写 Ascend 加 `npu-smi info` 显示的芯片名，例如 {near}。"
    ),
    "--soc_version={name}: the name begins with Ascend: {full}.": "--soc_version={name}：名称以 Ascend 开头：{full}。",
    "--{name} is given up: ranges go into --input_shape.": "--{name} 已废弃：范围请写在 --input_shape 中。",
    "--{name} is not supported on {chip}.": "{chip} 不支持 --{name}。",
    "--{name} takes {values}, not {value}.": "--{name} 可取 {values}，不能是 {value}。",
    "--{option} has the profile {profile} twice.": "--{option} 中档位 {profile} 出现了两次。",
    "--{option} has {number} profiles; the most are {most}.": "--{option} 有 {number} 个档位，最多 {most} 个。",
    "--{option} needs at least two profiles.": "--{option} 至少需要两个档位。",
    "--{option}: --input_shape has -1 where sizes vary, no range.": (
        "--{option}：--input_shape 中变化的大小应写 -1，不能写范围。"
    ),
    "--{option}: the profiles have different numbers of sizes.": "--{option}：各档位的值的个数不同。",
    "--{option}: {part} is no profile. Write {example}.": "--{option}：{part} 不是档位。请写成 {example}。",
    "AIPP has no field {field}.": "AIPP 没有字段 {field}。",
    "AIPP makes images of {axis}={size}, and the model takes {wanted}.": (
        "AIPP 输出图像的 {axis}={size}，而模型需要 {wanted}。"
    ),
    "AIPP: YUV420SP_U8 needs an even load_start_pos_{axis} (not on Ascend 950).": (
        "AIPP：YUV420SP_U8 的 load_start_pos_{axis} 必须为偶数（Ascend 950 无此要求）。"
    ),
    "AIPP: YUV420SP_U8 needs an even src_image_size_w and src_image_size_h.": (
        "AIPP：YUV420SP_U8 的 src_image_size_w 与 src_image_size_h 必须为偶数。"
    ),
    "AIPP: beside --dynamic_image_size, src_image_size_w and src_image_size_h are 0.": (
        "AIPP：与 --dynamic_image_size 同用时 src_image_size_w 与 src_image_size_h 须为 0。"
    ),
    "AIPP: crop and padding cannot stand beside --dynamic_image_size.": (
        "AIPP：与 --dynamic_image_size 同用时不能开启 crop 和 padding。"
    ),
    "AIPP: crop and padding need src_image_size_w and src_image_size_h.": (
        "AIPP：crop 和 padding 需要 src_image_size_w 与 src_image_size_h。"
    ),
    "AIPP: crop with padding needs crop_size_{axis}.": "AIPP：crop 与 padding 同时开启时需要 crop_size_{axis}。",
    "AIPP: dynamic mode needs max_src_image_size.": "AIPP：动态模式需要 max_src_image_size。",
    "AIPP: load_start_pos_{axis} {start} and crop_size_{axis} {size} reach beyond src_image_size_{axis} {source}.": (
        "AIPP：load_start_pos_{axis} {start} 加 crop_size_{axis} {size} 超出 src_image_size_{axis} {source}。"
    ),
    "AIPP: the padded width is {width}; the most is {most}.": "AIPP：padding 后宽度为 {width}，最大为 {most}。",
    "AIPP: {field} has no effect in {mode} mode.": "AIPP：{field} 在 {mode} 模式下不起作用。",
    "AIPP: {field} is missing.": "AIPP：缺少 {field}。",
    "AIPP: {field} is reserved: it has no effect.": "AIPP：{field} 为保留字段，不起作用。",
    "AIPP: {field} takes {expected}, not {value}.": "AIPP：{field} 可取 {expected}，不能是 {value}。",
    "ATC has no option --{name}.": "ATC 没有选项 --{name}。",
    "ATC has no option --{name}. Did you mean --{near}?": "ATC 没有选项 --{name}。是否想写 --{near}？",
    "a quantised model takes no profiles such as --dynamic_batch_size.": (
        "量化后的模型不能使用 --dynamic_batch_size 等动态档位。"
    ),
    "a space stands behind the \\ at the end of a line: the command ends there.": (
        "行末的 \\ 之后有空格：命令会在此处结束。"
    ),
    "advice": "建议",
    "error": "错误",
    "nothing to report": "没有问题",
    "sizes of {inputs} are not fixed in the model: --input_shape must give them.": (
        "模型中 {inputs} 的大小不固定：必须用 --input_shape 给出。"
    ),
    "static AIPP and sizes that vary freely must be of different inputs.": (
        "静态 AIPP 与自由变化的大小必须用于不同的输入。"
    ),
    "static AIPP is not supported for the only input when its sizes vary freely.": (
        "模型只有一个输入且其大小自由变化时，不支持静态 AIPP。"
    ),
    "the AIPP configuration has no aipp_op.": "AIPP 配置中没有 aipp_op。",
    "the AIPP configuration has {word} where aipp_op {{ … }} is expected.": (
        "AIPP 配置中应为 aipp_op {{ … }} 的位置出现了 {word}。"
    ),
    "the AIPP configuration lacks a closing brace.": "AIPP 配置缺少右花括号。",
    "the AIPP configuration: behind {name} a colon and a value are expected.": (
        "AIPP 配置：{name} 之后应为英文冒号和取值。"
    ),
    "the sizes of {value} are not all fixed: give --input-shape, such as {example}, or --dynamic-dims.": (
        "{value} 的大小不全固定：请给出 --input-shape（例如 {example}）或 --dynamic-dims。"
    ),
    "warning": "警告",
    "{first} and {second} exclude each other up to CANN {version}.": (
        "在 CANN {version} 及之前，{first} 与 {second} 不能同时使用。"
    ),
    "{first} and {second} exclude each other.": "{first} 与 {second} 不能同时使用。",
    '{given} is neither a file with a call of atc nor such a call, as "atc --model=… --framework=5 …".': (
        '{given} 既不是含有 atc 调用的文件，也不是 "atc --model=… --framework=5 …" 这样的命令。'
    ),
    "{inputs}: {chip} takes no sizes that vary freely. Give profiles, such as --dynamic_dims.": (
        "{inputs}：{chip} 不支持自由变化的大小。请给出档位，例如 --dynamic_dims。"
    ),
    "{input} has AIPP and stands in --input_fp16_nodes: one of them.": (
        "{input} 既配置了 AIPP 又出现在 --input_fp16_nodes 中：只能取其一。"
    ),
    "{needs} is missing.": "缺少 {needs}。",
    "{operator} ({nodes}x) is in CANN's list for operator sets {others}, not for {opset}. "
    "`npuport export onnx --opset` writes another.": (
        "{operator}（{nodes} 处）在 CANN 清单中的算子集为 {others}，不含 {opset}。"
        "可用 `npuport export onnx --opset` 导出其他算子集。"
    ),
    "{operator} ({nodes}x) is not in the list of operators that CANN's plugins register.": (
        "{operator}（{nodes} 处）不在 CANN 插件注册的算子清单中。"
    ),
    "{path} has no input.": "{path} 没有输入。",
    "{path} holds the command. It was not run: ATC is part of CANN.": (
        "命令已写入 {path}。未执行该命令：ATC 属于 CANN。"
    ),
    "{path} is of operator set {opset}; ATC's documents name {low} to {high}.": (
        "{path} 的算子集为 {opset}；ATC 文档支持 {low} 到 {high}。"
    ),
    "{path} names the operator set of {domain} twice.": "{path} 两次声明了 {domain} 的算子集。",
    "{second} has no effect beside {first}.": "与 {first} 同时使用时 {second} 不起作用。",
    "{setting} needs {needs}.": "{setting} 需要 {needs}。",
    "{setting}: {chip} has no {dtype}.": "{setting}：{chip} 不支持 {dtype}。",
    "{word} belongs to no option. Values with spaces or ; stand in quotation marks.": (
        "{word} 不属于任何选项。含空格或分号的取值请加引号。"
    ),
}
