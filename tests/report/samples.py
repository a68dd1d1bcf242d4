"""Findings for tests of the reports."""

from __future__ import annotations

from npuport.findings import Applicability, Basis, Edit, Finding, Fix, Location, Severity
from npuport.source.files import FileKind, SourceFile

TEXT = "import torch\n\ndef f():\n\tx = torch.zeros(2, device='cuda')  # 昇腾\n"
SOURCE = SourceFile("pkg/train.py", FileKind.PYTHON, TEXT)


def finding(
    word: str = "'cuda'",
    new: str | None = "'npu'",
    *,
    code: str = "NP101",
    name: str = "cuda-device-string",
    severity: Severity = Severity.ERROR,
    level: Applicability = Applicability.SAFE,
    extra: tuple[Edit, ...] = (),
    evidence: dict[str, object] | None = None,
    message: str = "the device is called npu",
) -> Finding:
    """A finding at ``word`` in TEXT, which its fix replaces by ``new``."""
    start = TEXT.index(word)
    end = start + len(word)
    line = TEXT.count("\n", 0, start) + 1
    column = start - (TEXT.rfind("\n", 0, start) + 1) + 1
    fix = None if new is None else Fix((Edit(start, end, new), *extra), level, "rename")
    where = Location("pkg/train.py", line, column, line, column + len(word))
    return Finding(code, name, severity, where, message, evidence or {}, Basis("torch_npu", "measured", "2.13.0"), fix)
