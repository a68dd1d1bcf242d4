"""Chinese sentences of `npuport apex`."""

from __future__ import annotations

APEX_SENTENCES = {
    "torch is not installed in this Python, and Apex is linked against it": (
        "此 Python 未安装 torch，而 Apex 需要链接 torch"
    ),
    "Apex for Ascend is not documented with torch {version}": "昇腾 Apex 的文档中没有 torch {version}",
    "Apex for Ascend is documented with torch {torch} for Python {pythons}, not {python}": (
        "昇腾 Apex 的文档中 torch {torch} 对应 Python {pythons}，不含 {python}"
    ),
    "torch {torch} goes with CANN {canns} in Apex's documents; the build itself needs no CANN": (
        "Apex 文档中 torch {torch} 与 CANN {canns} 配套；编译本身不需要 CANN"
    ),
    (
        "docker pull takes no proxy from the shell: for a build in scripts/docker, the daemon needs it in"
        " {folder}/proxy.conf, then systemctl daemon-reload and systemctl restart docker"
    ): (
        "docker pull 不使用 shell 中的代理：若用 scripts/docker 编译，请在 {folder}/proxy.conf 中为守护进程配置代理，"
        "再执行 systemctl daemon-reload 和 systemctl restart docker"
    ),
    "new code needs no Apex: npuport convert --unsafe-fixes turns it into torch.amp": (
        "新代码不需要 Apex：npuport convert --unsafe-fixes 可将其改写为 torch.amp"
    ),
    "{path} is not named as a wheel is: {wanted}": "{path} 的文件名不符合 wheel 规范：{wanted}",
    "{path} cannot be read as a wheel ({error}): build it again": "{path} 不是可读取的 wheel（{error}）：请重新编译",
    "the wheel is {name}, not apex": "该 wheel 是 {name}，不是 apex",
    "the version is {version}, not {wanted}: NVIDIA's own Apex, or another project of that name": (
        "版本为 {version}，不是 {wanted}：可能是 NVIDIA 原版 Apex 或同名的其他项目"
    ),
    "it is for {found}, and this Python is {wanted}: build with the Python that trains": (
        "该 wheel 适用于 {found}，而此 Python 是 {wanted}：请用训练所用的 Python 编译"
    ),
    "it is for {found}, and this machine is {arch}": "该 wheel 适用于 {found}，而本机是 {arch}",
    "{part} is missing: this is not Apex": "缺少 {part}：这不是 Apex",
    "{part} has no {word}: Ascend's patch was not applied": "{part} 中没有 {word}：未打昇腾补丁",
    "apex_C is missing: build with --cpp_ext": "缺少 apex_C：请用 --cpp_ext 编译",
    "{library} is compiled for {machine}, not {arch}": "{library} 是为 {machine} 编译的，不是 {arch}",
    "{path}: Apex for Ascend, and it fits this Python and this machine": "{path}：昇腾 Apex，与此 Python 和本机匹配",
}
