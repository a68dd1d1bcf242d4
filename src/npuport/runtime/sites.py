"""What became of each line of CUDA code that runs through npuport."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from npuport.findings import Finding, Severity
from npuport.runtime import stand_ins
from npuport.runtime.converted import Effect, Site

_CONVERTED: dict[str, Effect] = {"NP403": "emulated"}  # HF32 rounds otherwise than TF32
_MET: dict[str, tuple[Effect, str]] = {
    "NP209": ("emulated", "a capability of (8, 0) with bfloat16, else (7, 0)"),
    "NP402": ("no effect", "cuDNN's flags; it counts as available"),
    "NP461": ("no effect", "tensors stay contiguous"),
    "NP503": ("emulated", "a version of CUDA, 12.4"),
}
_OF_CUDA = ("NP1", "NP2", "NP30", "NP40", "NP50", "NP60")  # rules on CUDA's names; the others advise
EMULATED: dict[str, tuple[Effect, str]] = {
    "torch.cuda.nvtx": ("emulated", "torch_npu.npu.mstx"),
    "torch.cuda.nccl": ("emulated", "a version of NCCL, 2.21.5"),
    "torch.cuda.comm": ("emulated", "copies between devices"),
    "torch.cuda.profiler": ("no effect", "NVIDIA's profiler is not there"),
    "torch.cuda.cudart": ("emulated", "memory from torch.npu; NVIDIA's profiler is not there"),
    "torch.cuda.get_arch_list": ("emulated", "the architecture of the capability"),
    "torch.cuda.get_gencode_flags": ("emulated", "no flags"),
    "torch.cuda.is_tf32_supported": ("emulated", "HF32 for TF32"),
    "torch.cuda.list_gpu_processes": ("emulated", "npu-smi info"),
}
"""Names of torch.cuda without a counterpart that ``npuport.runtime.cuda`` answers."""

HELPERS: dict[str, tuple[Effect, str]] = {
    "device": ("at run time", "a CUDA device that comes here becomes the NPU"),
    "backend": ("at run time", "nccl that comes here becomes hccl"),
    "word": ("at run time", "compared as if the NPU were called cuda, and hccl nccl"),
    "holds": ("at run time", "sought as if the NPU were called cuda, and hccl nccl"),
    "starts": ("at run time", "compared as if the NPU were called cuda"),
    "double": ("emulated", "float64, by way of the CPU where the tensor is on the NPU"),
    "memory_format": ("at run time", "channels_last that comes here has no effect: tensors stay contiguous"),
    "set_default_tensor_type": ("emulated", "default dtype and default device"),
    "cuda": ("at run time", "npuport answers for the name of torch.cuda that is asked for"),
    "cuda.get_device_properties": ("emulated", "properties of the NPU, with a capability"),
    "cuda.device_count": ("same", "torch.npu.device_count"),
}
"""Functions of ``npuport.runtime.on_npu`` that converted code calls. Of the rest, findings tell."""


def sites(
    before: str,
    after: str,
    rules: Mapping[int, Sequence[str]],
    left: Sequence[Finding],
    helpers: Sequence[tuple[int, str]],
) -> list[Site]:
    """What became of each line that names CUDA, or may; each line once for each effect.

    ``rules`` are those that changed a line, by line; ``left`` the findings that conversion left; ``helpers`` the
    lines that call ``npuport.runtime.on_npu``, and what of it.
    """
    lines, found = before.splitlines(), after.splitlines()
    doubles = {number for number, helper in helpers if helper == "double"}
    unmet = [finding for finding in left if finding.code != "NP401" or finding.location.line not in doubles]
    told = [*_converted(lines, found, rules), *_left(unmet, lines)]
    by_line: dict[tuple[int, Effect], Site] = {}
    for site in (*told, *_helped(helpers, lines, {site.line for site in told})):
        by_line.setdefault((site.line, site.effect), site)
    return sorted(by_line.values(), key=lambda site: (site.line, site.effect))


def _converted(before: Sequence[str], after: Sequence[str], rules: Mapping[int, Sequence[str]]) -> Iterator[Site]:
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            codes = rules.get(number, ())
            effect: Effect = next((_CONVERTED[code] for code in codes if code in _CONVERTED), "same")
            yield Site(number, old.strip(), new.strip(), effect, ", ".join(codes))


def _left(findings: Sequence[Finding], lines: Sequence[str]) -> Iterator[Site]:
    for finding in findings:
        effect, meaning = met(finding) or (None, finding.message)
        if effect is None and finding.severity is Severity.ERROR:
            effect = "refused"
        elif effect is None and finding.severity is Severity.WARNING and finding.code.startswith(_OF_CUDA):
            effect = "left"
        if effect is not None:
            number = finding.location.line
            yield Site(number, _text(lines, number), meaning, effect, finding.code)


def _helped(helpers: Sequence[tuple[int, str]], lines: Sequence[str], told: Container[int]) -> Iterator[Site]:
    """``told`` are lines of which a finding tells already what stands for a name of torch.cuda."""
    for number, helper in helpers:
        if helper in HELPERS and not (helper.startswith("cuda") and number in told):
            effect, meaning = HELPERS[helper]
            yield Site(number, _text(lines, number), meaning, effect)


def _text(lines: Sequence[str], number: int) -> str:
    return lines[number - 1].strip() if number <= len(lines) else ""


def met(finding: Finding) -> tuple[Effect, str] | None:
    """What stands at run time for something that source shows but conversion cannot replace; None: nothing."""
    if finding.code in _MET:
        return _MET[finding.code]
    library = str(finding.evidence.get("library", "")).partition(".")[0]
    if library in stand_ins.wanted():
        return "emulated", f"npuport's stand-in for {library}"
    symbol = str(finding.evidence.get("symbol", ""))
    return next((EMULATED[name] for name in EMULATED if f"{symbol}.".startswith(f"{name}.")), None)
