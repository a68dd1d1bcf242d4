"""Chinese sentences of the command line. The findings' own messages are English."""

from __future__ import annotations

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
    # converting
    "{edits} in {files}, {unchanged} unchanged, {left} left for you": (
        "{files}中共 {edits}，{unchanged}未改动，还有 {left}需要您处理"
    ),
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
    "`npuport explain` lists the rules.": "`npuport explain` 会列出全部规则。",
    "unknown chip {chip}. Known are {known}.": "未知芯片 {chip}。已知的有 {known}。",
}
