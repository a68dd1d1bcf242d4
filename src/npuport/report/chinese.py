"""Chinese sentences of the command line. The findings' own messages are English."""

from __future__ import annotations

from npuport.report.chinese_apex import APEX_SENTENCES
from npuport.report.chinese_atc import ATC_SENTENCES
from npuport.report.chinese_checking import CHECKING_SENTENCES
from npuport.report.chinese_cleaning import CLEANING_SENTENCES
from npuport.report.chinese_config import CONFIG_SENTENCES
from npuport.report.chinese_data import DATA_SENTENCES
from npuport.report.chinese_doctor import DOCTOR_SENTENCES
from npuport.report.chinese_export import EXPORT_SENTENCES
from npuport.report.chinese_launch import LAUNCH_SENTENCES
from npuport.report.chinese_model import MODEL_SENTENCES
from npuport.report.chinese_parallel import PARALLEL_SENTENCES
from npuport.report.chinese_perf import PERFORMANCE_SENTENCES
from npuport.report.chinese_perf_page import PERFORMANCE_PAGE_SENTENCES
from npuport.report.chinese_plan import PLAN_SENTENCES
from npuport.report.chinese_precision import PRECISION_SENTENCES
from npuport.report.chinese_preflight import PREFLIGHT_SENTENCES
from npuport.report.chinese_reasons import REASONS
from npuport.report.chinese_recording import RECORDING_SENTENCES
from npuport.report.chinese_run import RUN_SENTENCES
from npuport.report.chinese_state import STATE_SENTENCES
from npuport.report.chinese_statistics import STATISTICS_SENTENCES

SENTENCES = {
    # groups of findings
    "will fail": "无法运行",
    "must change": "必须修改",
    "may differ": "结果可能不同",
    "faster as": "可加速",
    "libraries": "第三方库",
    "worth knowing": "供参考",
    # the summary
    "{number} Python file": "{number} 个 Python 文件",
    "{number} Python files": "{number} 个 Python 文件",
    "{number} edit": "{number} 处修改",
    "{number} edits": "{number} 处修改",
    "{number} file": "{number} 个文件",
    "{number} files": "{number} 个文件",
    "{number} finding": "{number} 条结果",
    "{number} findings": "{number} 条结果",
    "{number} CUDA reference": "{number} 处 CUDA 相关内容",
    "{number} CUDA references": "{number} 处 CUDA 相关内容",
    "{number} other": "其他 {number} 个",
    "all with a safe fix": "均可安全自动修改",
    "{number} with a safe fix": "其中 {number} 处可安全自动修改",
    "nothing to report: no CUDA reference was found": "无需处理：没有发现 CUDA 相关内容",
    "Effort: {automatic} lines automatic, {to_read} to read, {by_hand} by hand.": (
        "工作量：自动修改 {automatic} 行，需人工确认 {to_read} 行，需手工修改 {by_hand} 行。"
    ),
    "No blockers.": "没有阻塞项。",
    "Next:": "下一步：",
    "every finding with its line, reason and fix": "逐条列出位置、原因和修改方法",
    # the target by default
    "--target agnostic, for {why}; --target npu writes code for NPUs alone": (
        "--target agnostic（默认，{why}）；用 --target npu 可生成仅面向 NPU 的代码"
    ),
    "--target npu, for {why}; --target agnostic writes code for GPU, NPU and CPU": (
        "--target npu（默认，{why}）；用 --target agnostic 可生成同时支持 GPU、NPU 和 CPU 的代码"
    ),
    "{path} declares the package {name}": "{path} 声明了软件包 {name}",
    "{declared}, but {script} trains": "{declared}，但 {script} 是训练脚本",
    # findings in full
    "no fix": "无自动修改",
    "safe fix": "可安全自动修改",
    "unsafe fix": "可自动修改，需确认",
    "manual fix": "需手工修改",
    "(the line goes)": "（删除此行）",
    "line {number}": "第 {number} 行",
    "--ignore {code} leaves out texts and comments that only speak of CUDA": (
        "--ignore {code} 可略去仅在文字和注释中提到 CUDA 的条目"
    ),
    "{findings}, {safe} with a safe fix": "共 {findings}，其中 {safe} 条可安全自动修改",
    # reports
    "Porting {name} to Ascend": "将 {name} 迁移到昇腾",
    "Porting {name} to Ascend by hand": "手工将 {name} 迁移到昇腾",
    "Work by file, in lines": "各文件的工作量（行）",
    "Lines of work": "工作量（行）",
    "{automatic} automatic, {to_read} to read, {by_hand} by hand": (
        "自动 {automatic}，需确认 {to_read}，需手工 {by_hand}"
    ),
    "file": "文件",
    "automatic": "自动",
    "to read": "需确认",
    "by hand": "需手工",
    "… and {number} more with less work": "……另有 {number} 个文件，工作量更少",
    "Findings": "结果",
    "search paths, rules, messages and code": "搜索路径、规则、说明和代码",
    "rule": "规则",
    "every rule": "所有规则",
    "shown": "条已显示",
    "show more": "显示更多",
    "`npuport explain CODE` shows a rule with its background and sources.": (
        "`npuport explain 规则号` 显示规则的背景和来源。"
    ),
    "{findings} written to {path}": "已将 {findings}写入 {path}",
    "{findings} in {path} left out": "已略去 {path} 中的 {findings}",
    "{findings} in {path} no longer there": "{path} 中有 {findings}已不存在",
    "{path} does not exist. Make it with --write-baseline {path}.": (
        "{path} 不存在。请用 --write-baseline {path} 生成。"
    ),
    "{path} is no baseline of npuport. Make one with --write-baseline {path}.": (
        "{path} 不是 npuport 的基线文件。请用 --write-baseline {path} 生成。"
    ),
    "{path} is no report of a run. Make one with npuport run --sim --report {path} -- python train.py.": (
        "{path} 不是运行报告。请用 npuport run --sim --report {path} -- python train.py 生成。"
    ),
    "{path} is a file, and --csv needs a directory.": "{path} 是文件，而 --csv 需要目录。",
    "{path} cannot be written: {reason}.": "无法写入 {path}：{reason}。",
    "{files} as before the conversion": "{files}已恢复到转换之前",
    "{root} holds no npuport-undo.patch: nothing was converted in place here. "
    "A copy made with -o is undone by deleting it.": (
        "{root} 中没有 npuport-undo.patch：这里没有做过就地转换。用 -o 生成的副本，删除即可。"
    ),
    "{path} has changed since the conversion, so nothing was undone. "
    "Undo your own changes first, or take the hunks you want from {patch}.": (
        "{path} 在转换之后被改动过，因此没有撤销任何修改。请先撤销您自己的改动，或从 {patch} 中取用需要的部分。"
    ),
    "`npuport convert` does most of this by itself; this guide is for those who make or review each step.": (
        "`npuport convert` 能自动完成其中大部分；本指南供需要逐步修改或审阅的人使用。"
    ),
    "The environment": "环境",
    "torch and torch_npu must match exactly:": "torch 与 torch_npu 的版本必须完全一致：",
    "Libraries": "第三方库",
    "What has to be written by hand": "需要手工改写的部分",
    "What to read and decide": "需要阅读并决定的部分",
    "What can be replaced as it stands": "可以直接替换的部分",
    "What would be faster": "可以加速的部分",
    "The same in {places}.": "同样的修改还有：{places}。",
    "Try it": "试运行",
    "Without an NPU, on the real torch_npu over a simulated CANN, and then on the machine:": (
        "先在没有 NPU 的机器上（真实的 torch_npu，模拟的 CANN），再在目标机器上："
    ),
    # converting
    "{edits} in {files}, {unchanged} unchanged, {left} left for you": (
        "{files}中共 {edits}，{unchanged}未改动，还有 {left}需要您处理"
    ),
    "proving {fixes} on the simulated NPU": "正在模拟 NPU 上验证 {fixes}",
    "{number} replacement": "{number} 种替换",
    "{number} replacements": "{number} 种替换",
    "Proved: {proved} of {all} kinds of replacement by a fused operator are equal to the code in their place; "
    "no other is made.": "已验证：{all} 种融合算子替换中有 {proved} 种与原代码等价；其余均未替换。",
    "One could not run: {reason}.": "有替换无法验证：{reason}。",
    "{edits} in {files}; nothing was written": "{files}中共有 {edits}；未写入任何文件",
    "Checked: every converted file still parses; no CUDA reference is unexplained; "
    "a second run would change nothing.": (
        "已检查：转换后的文件都能解析；CUDA 相关内容均有说明；再次转换不会有任何改动。"
    ),
    "Checked: every converted file still parses; {unexplained} UNEXPLAINED, a defect of npuport met on {failures}; "
    "both are named below.": (
        "已检查：转换后的文件都能解析；但有 {unexplained}没有说明，{failures}遇到 npuport 的缺陷，详见下文。"
    ),
    "{where}: {word} is left and no finding explains it. This is a defect of npuport.": (
        "{where}：{word} 仍然保留且没有说明。这是 npuport 的缺陷。"
    ),
    "Undo:   git apply {patch}     or: patch -p1 < {patch}": "撤销：  git apply {patch}     或：patch -p1 < {patch}",
    "{path}: could not be read, so it is not in the copy": "{path}：无法读取，因此不在副本中",
    # input that was not read
    "not read: {reason}": "未读取：{reason}",
    "… and {number} more not read": "……另有 {number} 个未读取",
    "{path}: {rule} failed ({message}). This is a defect of npuport; please report it.": (
        "{path}：{rule} 执行失败（{message}）。这是 npuport 的缺陷，请反馈。"
    ),
    "… and in the same way on {files} more": "……另有 {files}出现同样的失败",
    # errors
    "interrupted": "已中断",
    "This is a defect of npuport. Run again with NPUPORT_DEBUG=1 and report it with the traceback.": (
        "这是 npuport 的缺陷。请设置 NPUPORT_DEBUG=1 重新运行，并附上错误堆栈反馈。"
    ),
    "{path} does not exist. Check the path.": "{path} 不存在。请检查路径。",
    "{path} cannot be read: {reason}.": "无法读取 {path}：{reason}。",
    "{path} is neither a file nor a directory.": "{path} 既不是文件也不是目录。",
    "{path} holds no source files. Give the directory of a PyTorch project.": (
        "{path} 中没有源文件。请给出 PyTorch 项目的目录。"
    ),
    "no rule is called {word}. `npuport explain` lists them.": (
        "没有名为 {word} 的规则。`npuport explain` 会列出全部规则。"
    ),
    "--json and --format exclude each other. Give one of them.": "--json 与 --format 不能同时使用，请只给出其中一个。",
    "say where the result goes with exactly one of -o OUT, --in-place, --diff, --check.": (
        "请用 -o OUT、--in-place、--diff、--check 之一指定结果的去向。"
    ),
    "code from stdin goes to stdout. Leave out -o and --in-place.": (
        "来自标准输入的代码只能写到标准输出。请去掉 -o 和 --in-place。"
    ),
    "stdin cannot be read: {reason}.": "无法读取标准输入：{reason}。",
    "{path} cannot be written: {reason}. Choose another place with -o.": (
        "无法写入 {path}：{reason}。请用 -o 选择其他位置。"
    ),
    "{out} is the project itself. Use --in-place to convert it where it is.": (
        "{out} 就是项目本身。如需原地转换，请使用 --in-place。"
    ),
    "{out} contains {source}. Choose a place outside it with -o.": "{out} 包含 {source}。请用 -o 选择其外部的位置。",
    "{out} is a file. Choose a directory with -o.": "{out} 是文件。请用 -o 选择一个目录。",
    "{out} exists. Choose another place with -o, or replace it with --force.": (
        "{out} 已存在。请用 -o 选择其他位置，或用 --force 替换。"
    ),
    "{out} is a repository, which npuport does not replace. Choose another place with -o.": (
        "{out} 是代码仓库，npuport 不会替换它。请用 -o 选择其他位置。"
    ),
    "{out} is not empty and not npuport's. Choose another place with -o, or replace it with --force.": (
        "{out} 非空且不是 npuport 的输出。请用 -o 选择其他位置，或用 --force 替换。"
    ),
    "{out} has changed since npuport wrote it ({path}). Choose another place, or replace it with --force.": (
        "{out} 在 npuport 写入之后有改动（{path}）。请选择其他位置，或用 --force 替换。"
    ),
    "nothing is known about {word}.{nearest}": "没有关于 {word} 的信息。{nearest}",
    "Did you mean {words}?": "您要找的是 {words} 吗？",
    "(the logs do not say for whom; give the logs of all ranks, and ~/ascend/log)": (
        "（日志没有说明在等谁；请提供所有 rank 的日志以及 ~/ascend/log）"
    ),
    "--json needs --log.": "--json 需要与 --log 一起使用。",
    "An exception of the program itself: the line above is where to look.": "程序自身的异常：请查看上面的行。",
    "Every rank that reports an error only waits for others, or was ended. Look at these first:": (
        "报错的 rank 都只是在等待其他 rank，或被结束。请先查看："
    ),
    "First cause: {what}": "最早的原因：{what}",
    "More is not known. The lines around it in the log may: npuport explain --log FILE": (
        "没有更多信息。日志中前后的行可能有帮助：npuport explain --log FILE"
    ),
    "No error was found ({read}).": "没有发现错误（{read}）。",
    "Nothing more is known about this error.": "没有关于该错误的更多信息。",
    "Other ranks:": "其他 rank：",
    "Unknown codes, which no document at hand names: {codes}. Look for them in CANN's own documents.": (
        "未知错误码（现有文档均未列出）：{codes}。请在 CANN 文档中查找。"
    ),
    "What they report: {what}": "它们的报错：{what}",
    "cause?": "可能的原因",
    "follows": "后果",
    "npuport explain --log rank*.log finds the rank that failed first": (
        "npuport explain --log rank*.log 找出最先失败的 rank"
    ),
    "rank {rank}: {why}": "rank {rank}：{why}",
    "{number} line": "{number} 行",
    "{number} lines": "{number} 行",
    "{number} more rank": "另外 {number} 个 rank",
    "{number} more ranks": "另外 {number} 个 rank",
    "{path} does not exist.": "{path} 不存在。",
    "{path} holds no logs (*.log, *.txt, *.out, *.err).": "{path} 中没有日志（*.log、*.txt、*.out、*.err）。",
    (
        "{word} is unknown: no list at hand names this code. CANN's documents may (search hiascend.com for it), "
        "and the lines around it in the log say more: npuport explain --log FILE"
    ): (
        "{word} 未知：现有列表中没有该错误码。可在 hiascend.com 的 CANN 文档中查找；日志中前后的行会有更多信息："
        "npuport explain --log FILE"
    ),
    "`npuport explain` lists the rules.": "`npuport explain` 会列出全部规则。",
    "unknown chip {chip}. Known are {known}.": "未知芯片 {chip}。已知的有 {known}。",
    **RUN_SENTENCES,
    **STATISTICS_SENTENCES,
    **CLEANING_SENTENCES,
    **DATA_SENTENCES,
    **ATC_SENTENCES,
    **EXPORT_SENTENCES,
    **DOCTOR_SENTENCES,
    **APEX_SENTENCES,
    **LAUNCH_SENTENCES,
    **CHECKING_SENTENCES,
    **PRECISION_SENTENCES,
    **RECORDING_SENTENCES,
    **PARALLEL_SENTENCES,
    **CONFIG_SENTENCES,
    **PERFORMANCE_SENTENCES,
    **PERFORMANCE_PAGE_SENTENCES,
    **PREFLIGHT_SENTENCES,
    **STATE_SENTENCES,
    **PLAN_SENTENCES,
    **MODEL_SENTENCES,
    **REASONS,
}
