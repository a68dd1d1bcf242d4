"""What became of each line of CUDA code that runs through npuport.

A process that finds the variable ``NPUPORT_SITES`` adds a line of JSON for each site to a file of its own in that
folder; whoever started the processes gathers them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from npuport.findings import Finding, Severity
from npuport.runtime import stand_ins

VARIABLE = "NPUPORT_SITES"

Effect = Literal["same", "emulated", "no effect", "refused"]

_MET: dict[str, tuple[Effect, str]] = {
    "NP209": ("emulated", "a capability of (8, 0) with bfloat16, else (7, 0)"),
    "NP402": ("no effect", "cuDNN's flags; it counts as available"),
    "NP461": ("no effect", "tensors stay contiguous"),
    "NP503": ("emulated", "a version of CUDA, 12.4"),
}
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


@dataclass(frozen=True)
class Site:
    """One line. ``after`` is what runs instead, or stands for it; ``code`` is the rule's, "" where source changed."""

    file: str
    line: int
    before: str
    after: str
    effect: Effect
    code: str = ""


def sites(file: Path, before: str, after: str, left: Sequence[Finding]) -> Iterator[Site]:
    """What conversion changed line by line, and what became of the findings it left."""
    lines, found = before.splitlines(), after.splitlines()
    for number, (old, new) in enumerate(zip(lines, found, strict=False), 1):
        if old != new:
            yield Site(os.fspath(file), number, old.strip(), new.strip(), "same")
    for finding in left:
        effect, meaning = met(finding) or (None, finding.message)
        if effect is not None or finding.severity is Severity.ERROR:
            line = finding.location.line
            text = found[line - 1].strip() if line <= len(found) else ""
            yield Site(os.fspath(file), line, text, meaning, effect or "refused", finding.code)


def met(finding: Finding) -> tuple[Effect, str] | None:
    """What stands at run time for something that source shows but conversion cannot replace; None: nothing."""
    if finding.code in _MET:
        return _MET[finding.code]
    library = str(finding.evidence.get("library", "")).partition(".")[0]
    if library in stand_ins.wanted():
        return "emulated", f"npuport's stand-in for {library}"
    symbol = str(finding.evidence.get("symbol", ""))
    return next((EMULATED[name] for name in EMULATED if f"{symbol}.".startswith(f"{name}.")), None)


def note(found: Sequence[Site]) -> None:
    """Hand the sites of a module to whoever started this run and wants them."""
    folder = os.environ.get(VARIABLE)
    if folder and found:
        with Path(folder, f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as output:
            output.write("".join(json.dumps(asdict(site)) + "\n" for site in found))


def gather(folder: Path) -> list[Site]:
    """The sites that the processes of a run noted, each once, by file and line."""
    found = {
        Site(**json.loads(line))
        for file in folder.glob("*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    }
    return sorted(found, key=lambda site: (site.file, site.line, site.code))
