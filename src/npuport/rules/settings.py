"""What a port aims at; every rule sees it."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

TARGETS = ("npu", "agnostic", "import")
APEX = ("torch", "ascend", "stand-in")


@dataclass(frozen=True, slots=True)
class Settings:
    """The target of a conversion.

    ``target`` "npu" writes explicit torch.npu code; "agnostic" writes code that runs on CUDA, on an NPU and on the CPU,
    in PyTorch's own words; "import" adds one import at each entry point, which converts the
    code in memory when it runs. ``keep_lines`` forbids edits that change the number of lines. With
    ``edits_only``, rules rest whose findings never ask for an edit. With ``fuse``, those that put fused operators in
    the place of code take part all the same. ``apex`` says what becomes of NVIDIA's Apex: "torch" for torch.amp,
    "ascend" for Apex for Ascend, "stand-in" for npuport's own, with which the code stays as it is.

    Raises:
        ValueError: for an unknown target, an unknown Apex, or a version that is none.
    """

    target: str = "npu"
    torch_version: str = "2.13.0"
    chip: str = "Ascend910B3"
    keep_lines: bool = False
    edits_only: bool = False
    fuse: bool = False
    apex: str = "torch"

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise ValueError(f"unknown target {self.target!r}; choose from {', '.join(TARGETS)}")
        if self.apex not in APEX:
            raise ValueError(f"unknown apex {self.apex!r}; choose from {', '.join(APEX)}")
        try:
            Version(self.torch_version)
        except InvalidVersion:
            raise ValueError(f"{self.torch_version!r} is not a version of torch, such as 2.13.0") from None

    def torch_at_least(self, version: str) -> bool:
        return Version(self.torch_version) >= Version(version)
