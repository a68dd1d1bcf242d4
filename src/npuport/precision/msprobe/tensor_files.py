"""The files in which msprobe saves tensors, one in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zipfile import BadZipFile, ZipFile

from npuport.errors import UserError
from npuport.precision.operators.calls import Step, TensorRef
from npuport.precision.operators.plain_file import is_cut, not_whole

if TYPE_CHECKING:
    import torch


def read_tensor(path: Path) -> torch.Tensor:
    """The tensor in a file, mapped into memory; one that is sparse or quantised as the values that it stands for.

    Raises:
        UserError: the file is not whole, or holds something else.
    """
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:
        if is_cut(path):
            raise not_whole(path) from error
        raise UserError("{path} is no tensor of msprobe: it is damaged, or holds something else.", path=path) from error
    if not isinstance(found, torch.Tensor):
        raise UserError("{path} is no tensor of msprobe: it is damaged, or holds something else.", path=path)
    return _values(found.detach())


def _values(tensor: torch.Tensor) -> torch.Tensor:
    import torch

    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.layout is not torch.strided:
        return tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


def checksums_of(path: Path, size: int) -> tuple[int, ...]:
    """What tells the values of a tensor and their order, from the checksums that torch.save wrote: that of the values,
    and of a view into more than its ``size`` in bytes also that of what lies where."""
    try:
        with ZipFile(path) as file:
            entries = {entry.filename.partition("/")[2]: entry for entry in file.infolist()}
    except (OSError, BadZipFile):
        return ()  # what is wrong with it is said when it is read
    values = entries.get("data/0")
    parts = [values] if values is not None and values.file_size == size else entries.values()
    return tuple(one.CRC for one in parts)


class Files(dict[int, "torch.Tensor"]):
    """The storages of a dump with tensors, each read when it is asked for; of values in several orders the first."""

    def __init__(self, files: Mapping[tuple[int, int], Path]) -> None:
        """``files``: by the number of a storage and the offset of the tensor in it."""
        super().__init__()
        self._files = files
        self._numbers = {number for number, _ in files}

    def __bool__(self) -> bool:
        return bool(self._files)

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def __missing__(self, number: int) -> torch.Tensor:
        import torch

        return read_tensor(self._files[number, 0]).contiguous().reshape(-1).view(torch.uint8)

    def tensor(self, ref: TensorRef) -> torch.Tensor:
        """A tensor of the dump.

        Raises:
            KeyError: it was not saved.
            UserError: its file is not whole, or holds something else.
        """
        import torch

        path = self._files[ref.storage, ref.offset]
        tensor = read_tensor(path)
        if tuple(tensor.shape) == ref.shape:
            return tensor
        if tensor.numel() != torch.Size(ref.shape).numel():
            raise UserError(
                "{path} holds {count} values, and dump.json says {shape}: they are not of one run.",
                path=path,
                count=tensor.numel(),
                shape=list(ref.shape),
            )
        return tensor.reshape(ref.shape)


@dataclass
class DumpedStep(Step):
    """A step whose tensors lie in files of msprobe; ``missing`` counts those that it names and that are not there."""

    missing: int = 0

    def tensor(self, ref: TensorRef) -> torch.Tensor:
        return cast("Files", self.storages).tensor(ref)
