"""Files of torch.save that no tensor is in: read without importing torch, which takes a second by itself, and written
without asking of each value whether it is a tensor."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import IO, Any, NoReturn

from npuport.errors import UserError


def not_whole(path: Path) -> UserError:
    return UserError(
        "{path} is not whole: the run, or a copy, was stopped while it was written. Record it again, copy it again, or "
        "take another step.",
        path=path,
    )


def is_cut(path: Path) -> bool:
    """Whether a file begins as what torch.save writes and lacks its end, or is empty."""
    try:
        with path.open("rb") as file:
            begin = file.read(2)
    except OSError:
        return False
    return begin == b"" or (begin == b"PK" and not zipfile.is_zipfile(path))


def read_plain(path: Path) -> Any:
    """What ``torch.save`` wrote, if it is made of plain values; None where there are tensors in it, or something else.

    Raises:
        FileNotFoundError: there is no such file.
    """
    try:
        with zipfile.ZipFile(path) as file:
            (name,) = (one for one in file.namelist() if one.endswith("/data.pkl"))
            folder = name.removesuffix("data.pkl") + "data/"
            if any(one.startswith(folder) for one in file.namelist()):
                return None
            return _Plain(io.BytesIO(file.read(name))).load()
    except (zipfile.BadZipFile, pickle.UnpicklingError, ValueError, EOFError):
        return None


class PlainPickle:
    """In the place of the module ``pickle`` that ``torch.save`` is given, for values without tensors: it asks a method
    in Python about each value, which takes ten times as long as all else."""

    class Pickler:
        def __init__(self, file: IO[bytes], protocol: int) -> None:
            self._pickler = pickle.Pickler(file, protocol)  # not of the class that torch derives from this one

        def dump(self, value: Any) -> None:
            self._pickler.dump(value)


class _Plain(pickle.Unpickler):
    """Makes nothing but plain values: a file from elsewhere cannot run code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name}")
