"""What became of each name under ``torch.cuda`` on ``torch.npu``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Literal

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Status = Literal["same", "renamed", "missing"]


@dataclass(frozen=True)
class CudaName:
    """A name under ``torch.cuda`` and its counterpart.

    ``status`` is "same" (same path under ``torch.npu``), "renamed" (use ``npu_name``) or "missing" (``npu_name`` None;
    ``note`` says what to do). ``kind`` is module, class, function, member (of a class) or value.
    """

    name: str
    kind: str
    status: Status
    npu_name: str | None
    import_from: str | None
    """Module M for which ``from M import <last part of npu_name>`` gives the object; None for members of classes.

    It is ``torch_npu.npu.amp`` and not ``torch.npu.amp``: importing the latter makes a second copy of the module.
    """
    note: str
    basis: Basis
    cuda_signature: str = ""
    npu_signature: str = ""
    """Both are "" where the two take the same parameters, or where Python cannot tell."""
    left_as_is: str = ""
    """What calling the unchanged CUDA name does with torch_npu: "raises AssertionError", "returns 0"; "" if untried."""

    @property
    def module_path(self) -> str | None:
        """For a module that is one on the NPU side too: what to write after ``import``, such as "torch_npu.npu.amp"."""
        if self.kind != "module" or self.status != "same" or self.npu_name is None:
            return None
        return self.npu_name.replace("torch.npu", "torch_npu.npu", 1)

    @property
    def silent_if_left(self) -> bool:
        """Whether the unchanged name runs on without an error, and so does nothing or answers wrongly."""
        return self.left_as_is.startswith("returns")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters on CUDA, in order; () where both take the same."""
        return _parameters(self.cuda_signature)

    @property
    def renamed_arguments(self) -> dict[str, str]:
        """Parameters that keep their place under another name, such as ``{"device": "device_name"}``."""
        on_cuda, on_npu = _parameters(self.cuda_signature), _parameters(self.npu_signature)
        pairs = zip(on_cuda, on_npu, strict=False)
        return {old: new for old, new in pairs if old != new and new not in on_cuda and old not in on_npu}

    @property
    def dropped_arguments(self) -> tuple[str, ...]:
        """Parameters that the counterpart does not take under any name."""
        if "**" in self.npu_signature:
            return ()
        on_npu = _parameters(self.npu_signature)
        return tuple(p for p in _parameters(self.cuda_signature) if p not in on_npu and p not in self.renamed_arguments)

    @property
    def positional_arguments(self) -> int | None:
        """How many leading arguments may be given by position without meaning something else; None: all of them."""
        on_cuda, on_npu = _parameters(self.cuda_signature), _parameters(self.npu_signature)
        for place, old in enumerate(on_cuda):
            if place >= len(on_npu):
                return place if "*" not in self.npu_signature else None
            if on_npu[place] not in (old, self.renamed_arguments.get(old)):
                return place
        return None


def torch_cuda(name: str) -> CudaName | None:
    """The entry of a dotted name such as "torch.cuda.synchronize"; None if torch.cuda has no such name."""
    return _table().get(name)


def all_torch_cuda_names() -> tuple[CudaName, ...]:
    """Every entry, ordered by name."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, CudaName]:
    notes = {row["name"]: row for row in rows("torch_cuda_notes")}
    return {row["name"]: _entry(row, notes) for row in rows("torch_cuda_measured")}


def _entry(measured: dict[str, str], notes: dict[str, dict[str, str]]) -> CudaName:
    name = measured["name"]
    npu_name, import_from = measured["npu_name"], measured["import_from"]
    # Where the same path exists, only a note on this very name counts; else the nearest one above it speaks for it.
    noted_at = name if npu_name else _nearest(name, notes)
    note = notes.get(noted_at)
    if note and note["npu_name"]:
        npu_name = note["npu_name"] + name[len(noted_at) :]
        import_from = note["import_from"] if noted_at == name else ""
    expected = name.replace("torch.cuda", "torch.npu", 1)
    status: Status = "missing" if not npu_name else "same" if npu_name == expected else "renamed"
    return CudaName(
        name=name,
        kind=measured["kind"],
        status=status,
        npu_name=npu_name or None,
        import_from=import_from or None,
        note=note["note"] if note else "",
        basis=basis(note or measured),
        cuda_signature=measured["cuda_signature"],
        npu_signature=measured["npu_signature"],
        left_as_is=measured["left_as_is"],
    )


def _nearest(name: str, notes: dict[str, dict[str, str]]) -> str:
    """The longest prefix of ``name`` below ``torch.cuda`` that has a note, or ``name`` itself."""
    parts = name.split(".")
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 2, -1))
    return next((prefix for prefix in prefixes if prefix in notes), name)


def _parameters(signature: str) -> tuple[str, ...]:
    if not signature:
        return ()
    function = ast.parse(f"def f{signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    return tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
