"""What scripts, images and installation lines do with CUDA's variables, tools, images and wheels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.facts import torch_npu_for
from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.environment import TOOLS, cuda_variable, meaning, same_value
from npuport.rules.files.base import FileRule, OtherFile
from npuport.rules.files.values import COMMANDS, SETTINGS
from npuport.rules.version_drift import LAUNCHER, LAUNCHER_BASIS
from npuport.source.files import FileKind

_VARIABLE = re.compile(
    r"(?<![\w$-])(?P<name>[A-Z][A-Z0-9_]{3,})(?P<after>[\"']?[ \t]*[=:][ \t]*[\"']?(?P<value>[\w,:.-]*))?"
)
_TOOL = re.compile(rf"(?<![\w./-])(?P<tool>{'|'.join(map(re.escape, TOOLS))})(?![\w-])")
_COMMENT = re.compile(r"(?:^|\s)#")


def _in_comment(file: OtherFile, start: int) -> bool:
    line = file.index.starts[file.index.position(start)[0] - 1]
    return _COMMENT.search(file.text[line:start]) is not None


class CudaVariableInScript(FileRule):
    """An environment variable of CUDA's world in a script, an image or a configuration."""

    code = "NP514"
    name = "cuda-variable-in-script"
    severity = Severity.WARNING
    kinds = SETTINGS | COMMANDS

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for match in _VARIABLE.finditer(file.text):
            known = cuda_variable(match["name"])
            if known is None or _in_comment(file, match.start()):
                continue
            fix = None
            if known.counterpart and known.counterpart not in file.text:
                safe = match["after"] is not None and same_value(known.name, match["value"])
                edit = Edit(match.start("name"), match.end("name"), known.counterpart)
                level = Applicability.SAFE if safe else Applicability.UNSAFE
                fix = file.fix([edit], level, f"set {known.counterpart}")
            note = f": {known.note.rstrip('.')}" if known.note and known.status != "same" else ""
            yield file.finding(
                self,
                match.start("name"),
                match.end("name"),
                f"{meaning(known)}{note}",
                fix=fix,
                basis=known.basis,
                severity=Severity.WARNING if known.status == "renamed" else Severity.INFO,
                variable=known.name,
            )


class NvidiaToolInScript(FileRule):
    """A command of NVIDIA's in a script."""

    code = "NP515"
    name = "nvidia-tool-in-script"
    severity = Severity.WARNING
    kinds = COMMANDS | {FileKind.YAML}

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for match in _TOOL.finditer(file.text):
            if _in_comment(file, match.start()):
                continue
            tool = match["tool"]
            alone = tool == "nvidia-smi" and re.match(r"[ \t]*(?:$|[;&|)\r\n])", file.text[match.end() :])
            fix = None
            if alone:
                fix = file.fix([Edit(*match.span("tool"), "npu-smi info")], Applicability.UNSAFE, "ask npu-smi")
            message = f"{tool} is not there on an Ascend machine: {TOOLS[tool]}"
            yield file.finding(self, *match.span("tool"), message, fix=fix, tool=tool)


_IMAGE = re.compile(
    r"(?m)(?:^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)?|\bimage[\"']?[ \t]*:[ \t]*[\"']?"
    r"|\bdocker[ \t]+(?:run|pull)\b[^\n]*?[ \t])"
    r"(?P<image>(?:[\w.-]+/)*"
    r"(?:nvidia/cuda|nvcr\.io/[\w/.-]+|pytorch/pytorch|huggingface/[\w.-]*gpu[\w.-]*)(?::[\w.-]+)?)"
)
_GPUS = re.compile(r"(?P<option>--gpus(?:[ \t]+|=)[\w\"'=,]+|--runtime(?:[ \t]+|=)nvidia|\bdriver:[ \t]*nvidia)")


class CudaImage(FileRule):
    """A container image built on CUDA, or a container that is given GPUs."""

    code = "NP516"
    name = "cuda-image"
    severity = Severity.WARNING
    kinds = COMMANDS | {FileKind.YAML, FileKind.JSON}

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for match in _IMAGE.finditer(file.text):
            if not _in_comment(file, match.start("image")):
                message = "an image with CUDA: build on quay.io/ascend/torch-npu, which has CANN, torch and torch_npu"
                yield file.finding(self, *match.span("image"), message, basis=_CANN_IMAGE, image=match["image"])
        for match in _GPUS.finditer(file.text):
            if not _in_comment(file, match.start()):
                message = "this hands NVIDIA GPUs to the container: hand it /dev/davinci*, /dev/davinci_manager, "
                message += "/dev/devmm_svm and /dev/hisi_hdc, or use the runtime ascend"
                yield file.finding(self, *match.span("option"), message, basis=_DEVICES)


_CANN_IMAGE = Basis("Ascend/pytorch documents on installation by Docker", "documented", "2.10.0")
_DEVICES = Basis("Ascend/pytorch documents on installation by Docker", "documented", "2.10.0")

_WHEEL = re.compile(r"(?P<name>torch(?:vision|audio)?)[ \t]*==[ \t]*(?P<version>\d+(?:\.\d+)+)(?P<local>\+cu\d+)")
_INDEX = re.compile(r"(?P<url>https?://[\w./-]*/cu\d{2,3}\b/?)")
_CONDA = re.compile(
    r"(?<![\w-])(?P<name>pytorch-cuda|cudatoolkit|cuda-toolkit|cudnn|nccl)(?=[ \t]*[=<>\"'\r\n]|[ \t]*$)", re.MULTILINE
)


class CudaWheel(FileRule):
    """A wheel, an index or a conda package of PyTorch that is built for CUDA."""

    code = "NP517"
    name = "cuda-wheel"
    severity = Severity.WARNING
    kinds = COMMANDS | SETTINGS | {FileKind.REQUIREMENTS}

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for match in _WHEEL.finditer(file.text):
            fix = file.fix([Edit(*match.span("local"), "")], Applicability.UNSAFE, "the build without CUDA")
            yield file.finding(
                self,
                *match.span(),
                f"a build of {match['name']} for CUDA; {_pair(match['version'], match['name'])}",
                fix=fix,
            )
        for match in _INDEX.finditer(file.text):
            yield file.finding(
                self,
                *match.span("url"),
                "an index of wheels for CUDA: NPUs take the CPU build of torch, and torch-npu beside it",
            )
        if file.source.kind in (FileKind.YAML, FileKind.SHELL, FileKind.DOCKERFILE):
            for match in _CONDA.finditer(file.text):
                if not _in_comment(file, match.start()) and re.search(r"(?i)conda|channels|dependencies", file.text):
                    yield file.finding(
                        self,
                        *match.span("name"),
                        f"{match['name']} belongs to CUDA: leave it out; CANN is installed on its own",
                    )


def _pair(version: str, name: str) -> str:
    """Which torch_npu goes with a torch."""
    if name != "torch":
        return "NPUs take the CPU build"
    releases = torch_npu_for(version)
    if not releases:
        return f"no torch_npu is known for torch {version}: choose a version that has one"
    return f"NPUs take the CPU build, and torch-npu=={releases[0].torch_npu} beside it"


_LAUNCH = re.compile(
    r"(?P<python>[\w./${}\"]*(?i:python)[\w.}\"]*(?:[ \t]+-u)?[ \t]+-m[ \t]+)?torch\.distributed\.launch(?!\w)"
)
_USE_ENV = re.compile(r"[ \t]+--use[_-]env\b(?:=\w+)?")


class OldLauncherInScript(FileRule):
    """``python -m torch.distributed.launch`` in a script."""

    code = "NP518"
    name = "old-launcher-in-script"
    severity = Severity.INFO
    kinds = COMMANDS | SETTINGS

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for match in _LAUNCH.finditer(file.text):
            if _in_comment(file, match.start()):
                continue
            fix = None
            if match["python"]:
                edits = [Edit(*match.span(), "torchrun")]
                end = _end_of_command(file.text, match.end())
                edits += [Edit(*found.span(), "") for found in _USE_ENV.finditer(file.text, match.end(), end)]
                fix = file.fix(edits, Applicability.UNSAFE, "start by torchrun")
            yield file.finding(self, *match.span(), LAUNCHER, fix=fix, basis=LAUNCHER_BASIS)


def _end_of_command(text: str, start: int) -> int:
    """Where the logical line around ``start`` ends; a backslash continues it."""
    end = re.compile(r"(?<!\\)(?<!\\\r)\n|\Z").search(text, start)
    return end.start() if end else len(text)
