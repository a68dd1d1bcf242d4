"""Devices, backends and choices in configuration files and on command lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.facts import chip
from npuport.facts.settings import known_setting
from npuport.findings import Applicability, Basis, Edit, Finding, Severity
from npuport.rules.files.base import FileRule, OtherFile
from npuport.rules.usage import BACKEND, DEVICE
from npuport.source.files import FileKind
from npuport.source.settings import Setting

SETTINGS = frozenset({FileKind.YAML, FileKind.JSON, FileKind.TOML, FileKind.INI})
COMMANDS = frozenset({FileKind.SHELL, FileKind.DOCKERFILE, FileKind.MAKEFILE})
_DEVICE = re.compile(r"cuda(?::\d+)?")
_NCCL_PAIR = re.compile(r"cuda:nccl(?!\w)")
_CHOICES = re.compile(r"(?i)^(?:choices|options|enum|allowed|matrix|include|exclude)$")
_NPU = Basis("PyTorch registers the Ascend backend as device type npu", "documented", "torch_npu 2.13.0")
_HCCL = Basis("torch_npu registers the process group backend hccl", "measured", "torch_npu 2.13.0")


class CudaDeviceInSettings(FileRule):
    """A setting or an option that names a CUDA device."""

    code = "NP511"
    name = "cuda-device-in-settings"
    severity = Severity.ERROR
    kinds = SETTINGS | COMMANDS

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for one in file.made:
            if _DEVICE.fullmatch(one.value) is None or any(_CHOICES.match(key) for key in one.keys):
                continue
            if known_setting(one.key, one.value) is not None:
                continue  # NP513 knows what this very choice means
            certain = _holds_a_device(one.key)
            edit = Edit(one.start, one.start + len("cuda"), "npu")
            applicability = Applicability.SAFE if certain else Applicability.UNSAFE
            yield file.finding(
                self,
                one.start,
                one.end,
                "this names a CUDA device; on Ascend it is npu"
                if certain
                else "if this is a device, it is called npu on Ascend",
                fix=file.fix([edit], applicability, "name the NPU"),
                basis=_NPU,
                severity=Severity.ERROR if certain and not file.has_npu_branches else Severity.WARNING,
                key=".".join(one.keys),
                value=one.value,
            )


def _holds_a_device(key: str) -> bool:
    return DEVICE.named(key.replace("-", "_")) or key.replace("-", "_") == "device_map"


class NcclBackendInSettings(FileRule):
    """A setting or an option that names NCCL as the communication backend."""

    code = "NP512"
    name = "nccl-backend-in-settings"
    severity = Severity.ERROR
    kinds = SETTINGS | COMMANDS

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for one in file.made:
            edit = _hccl(one)
            if edit is None or any(_CHOICES.match(key) for key in one.keys):
                continue
            certain = BACKEND.named(one.key.replace("-", "_")) or one.key.endswith("backend_name")
            yield file.finding(
                self,
                one.start,
                one.end,
                "NCCL drives NVIDIA GPUs only; NPUs communicate through hccl",
                fix=file.fix([edit], Applicability.SAFE if certain else Applicability.UNSAFE, "name HCCL"),
                basis=_HCCL,
                severity=Severity.ERROR if certain and not file.has_npu_branches else Severity.WARNING,
                key=".".join(one.keys),
                value=one.value,
            )


def _hccl(one: Setting) -> Edit | None:
    if one.value in ("nccl", "NCCL"):
        return Edit(one.start, one.end, "hccl" if one.value == "nccl" else "HCCL")
    pair = _NCCL_PAIR.search(one.value)
    return Edit(one.start + pair.start(), one.start + pair.end(), "npu:hccl") if pair else None


class CudaChoiceInSettings(FileRule):
    """A value of a well-known library's setting that only suits CUDA."""

    code = "NP513"
    name = "cuda-choice-in-settings"
    severity = Severity.WARNING
    kinds = SETTINGS | COMMANDS

    def check(self, file: OtherFile) -> Iterator[Finding]:
        for one in file.made:
            known = known_setting(one.key, one.value)
            if known is None:
                continue
            fix = None
            if known.replacement is not None and known.applicability is not None:
                fix = file.fix([Edit(one.start, one.end, known.replacement)], known.applicability, known.replacement)
            instead = f"; use {known.replacement}" if known.replacement else ""
            yield file.finding(
                self,
                one.start,
                one.end,
                f"{one.key} {one.value}{instead}: {known.note.rstrip('.')}",
                fix=fix,
                basis=known.basis,
                severity=known.severity,
                key=".".join(one.keys),
                value=one.value,
            )


class BFloat16InSettings(FileRule):
    """A setting that asks for bfloat16, for a chip that does not compute it."""

    code = "NP521"
    name = "bfloat16-in-settings"
    severity = Severity.ERROR
    kinds = SETTINGS | COMMANDS

    def check(self, file: OtherFile) -> Iterator[Finding]:
        known = chip(file.settings.chip)
        if known is None or known.bf16:
            return
        for one in file.made:
            new = _FLOAT16.get(one.value) if one.key.replace("-", "_") in _DTYPE_KEYS else None
            if new is None and not _turns_bfloat16_on(one):
                continue
            edits = [Edit(one.start, one.end, new)] if new is not None else []
            yield file.finding(
                self,
                one.start,
                one.end,
                f"{known.name} does not compute bfloat16: use float16, with a gradient scaler where it trains",
                fix=file.fix(edits, Applicability.UNSAFE, "ask for float16") if edits else None,
                basis=known.basis,
                key=".".join(one.keys),
                value=one.value,
            )


# The words of transformers, accelerate, Lightning and DeepSpeed, each with what they call float16.
_FLOAT16 = {
    "bfloat16": "float16",
    "torch.bfloat16": "torch.float16",
    "bf16": "fp16",
    "bf16-mixed": "16-mixed",
    "bf16-true": "16-true",
}
_DTYPE_KEYS = frozenset({"torch_dtype", "dtype", "mixed_precision", "precision", "params_dtype"})


def _turns_bfloat16_on(one: Setting) -> bool:
    """``bf16: true``, and DeepSpeed's ``"bf16": {"enabled": true}``."""
    keys = one.keys[:-1] if one.key == "enabled" else one.keys
    return bool(keys) and keys[-1] in ("bf16", "bfloat16") and one.value.lower() == "true"
