"""Chinese sentences of `npuport doctor --plan` and `--compare`."""

from __future__ import annotations

PLAN_SENTENCES = {
    "--install-script writes a plan. Add --plan, for example: --plan 'torch 2.7, Ascend910B3'": (
        "--install-script 用于输出方案。请加上 --plan，例如：--plan 'torch 2.7, Ascend910B3'"
    ),
    "--plan and --compare exclude each other. Give one of them.": (
        "--plan 与 --compare 不能同时使用，请只给出其中一个。"
    ),
    "Add a line: {line}": "请添加一行：{line}",
    "Ask for the CPU build: {text}": "请改用 CPU 版：{text}",
    "Driver {driver} is older than {wanted}, which documents pair with this release: upgrade it first.": (
        "驱动 {driver} 早于文档中与该版本配套的 {wanted}：请先升级。"
    ),
    "Hold torch at the version of torch_npu: {lines}.": "请把 torch 固定为 torch_npu 对应的版本：{lines}。",
    "Look at the Python that trains.": "请检查用于训练的 Python。",
    "Name the chip, and the plan names the package with its operators.": "请说明芯片，方案才能给出其算子包。",
    "No document pairs a driver with this release: see the release notes of its CANN.": (
        "没有文档说明该版本配套的驱动：请查看其 CANN 的发布说明。"
    ),
    "No document pairs torch_npu {npu} with a CANN yet; the newest that is paired is {newest}.": (
        "尚无文档说明 torch_npu {npu} 配套的 CANN；有配套说明的最新版本为 {newest}。"
    ),
    "No torch_npu is published for it; `npuport doctor --plan 'torch {version}'` names near ones.": (
        "没有为它发布的 torch_npu；`npuport doctor --plan 'torch {version}'` 可列出相近版本。"
    ),
    "NumPy": "NumPy",
    "On openEuler packages may lie in lib64: see ND603 before building Apex for Ascend.": (
        "在 openEuler 上软件包可能位于 lib64：构建昇腾 Apex 之前请参见 ND603。"
    ),
    "Published are: {near}.": "已发布的有：{near}。",
    "Take the line out.": "请删去该行。",
    "The active environment is {active}; this looked at {prefix}.": (
        "已激活的环境是 {active}；本次检查的是 {prefix}。"
    ),
    "This torch_npu is not on PyPI: download its wheel from the releases of Ascend/pytorch.": (
        "该 torch_npu 不在 PyPI 上：请从 Ascend/pytorch 的发布页下载 wheel。"
    ),
    "Write a pair that exists: {lines}.": "请写成确实存在的配套：{lines}。",
    "Write: {line}": "请写成：{line}",
    "`npuport doctor` looks for it on this machine.": "`npuport doctor` 会在本机上检查它。",
    "an install script needs the Python. Add it to the plan, for example: Python 3.9": (
        "安装脚本需要 Python 版本。请在方案中加上，例如：Python 3.9"
    ),
    "an install script needs the chip. Add it to the plan, for example: Ascend910B3": (
        "安装脚本需要芯片。请在方案中加上，例如：Ascend910B3"
    ),
    "differs": "不同之处",
    "download": "下载",
    "must agree in one job": "同一任务中必须一致",
    "no published torch_npu goes with {wish}. Near are: {near}.": (
        "没有已发布的 torch_npu 与 {wish} 配套。相近的有：{near}。"
    ),
    "none": "无",
    "source": "来源",
    "the plan asks for both {one} and {other}. Ask for one of them.": (
        "方案同时要求 {one} 和 {other}。请只保留其中一个。"
    ),
    "the plan does not know the chip {word}. `npuport explain Ascend910B3` shows one.": (
        "方案不认识芯片 {word}。`npuport explain Ascend910B3` 可查看示例。"
    ),
    (
        "the plan does not understand {word}. It understands torch, torch_npu, CANN, Python and driver "
        "with a version, a chip, a processor and a system, for example: torch 2.7, Ascend910B3, Python "
        "3.11, aarch64, openEuler 22.03"
    ): (
        "方案不理解 {word}。可用的有：带版本的 torch、torch_npu、CANN、Python 和 driver，以及芯片、处理器和"
        "系统，例如：torch 2.7, Ascend910B3, Python 3.11, aarch64, openEuler 22.03"
    ),
    "the plan is empty. For example: npuport doctor --plan 'torch 2.7, Ascend910B3, Python 3.11'": (
        "方案为空。例如：npuport doctor --plan 'torch 2.7, Ascend910B3, Python 3.11'"
    ),
    "the plan knows the processors aarch64 and x86_64, not {word}.": (
        "方案只认识处理器 aarch64 和 x86_64，不认识 {word}。"
    ),
    "the two machines agree": "两台机器一致",
    "torch_npu": "torch_npu",
    "torchvision": "torchvision",
    "{path} could not be read: {problem}": "无法读取 {path}：{problem}",
    "{path} could not be written: {problem}": "无法写入 {path}：{problem}",
    "{path} holds no machine. Write one on each: npuport doctor --json > machine.json": (
        "{path} 中没有机器信息。请在每台机器上生成：npuport doctor --json > machine.json"
    ),
    "{path} is written; read it before you run it": "已写入 {path}；运行前请先阅读",
    "{place} is no requirement: {problem}": "{place} 不是有效的依赖项：{problem}",
    "{place}: torch_npu {version} is not among the published releases.": (
        "{place}：torch_npu {version} 不在已发布的版本之列。"
    ),
    "{place}: {text} asks for a CUDA build ({cuda}).": "{place}：{text} 要求 CUDA 版（{cuda}）。",
    "{place}: {text} is built for torch {wanted}; {other} asks for torch {version}.": (
        "{place}：{text} 是为 torch {wanted} 构建的；{other} 要求 torch {version}。"
    ),
    "{place}: {text} is written for CUDA.": "{place}：{text} 是为 CUDA 编写的。",
    "{place}: {text} leaves the version of torch open.": "{place}：{text} 没有固定 torch 的版本。",
    "{place}: {text} without torch_npu.": "{place}：{text} 没有 torch_npu。",
    "{place}: {text}, and torch_npu {npu} goes with CANN {cann}.": (
        "{place}：{text}，而 torch_npu {npu} 与 CANN {cann} 配套。"
    ),
    "{place}: {text}, but torch {version} goes with torchvision {wanted}.": (
        "{place}：{text}，但 torch {version} 与 torchvision {wanted} 配套。"
    ),
    "{place}: {text}: {cause} ({source})": "{place}：{text}：{cause}（{source}）",
    "{python} does not run as a Python. Check the path.": "{python} 无法作为 Python 运行。请检查路径。",
    "{word} is no version. For example: torch 2.7.1": "{word} 不是版本号。例如：torch 2.7.1",
}
