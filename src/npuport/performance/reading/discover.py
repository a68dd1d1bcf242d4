"""Finding the profiles under a path, and the reader of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from npuport.errors import UserError
from npuport.performance.reading.torch_npu_text import read_text
from npuport.performance.tables import Profile

Reader = Callable[[Path], Profile]

_OUTPUT = "ASCEND_PROFILER_OUTPUT"


def profiles_under(paths: Sequence[Path]) -> list[tuple[Path, Reader]]:
    """Each profile once, in the order of the paths and of the names below them.

    Raises:
        UserError: a path does not exist, or holds no profile.
    """
    found: dict[Path, Reader] = {}
    for path in paths:
        if not path.exists():
            raise UserError("{path} does not exist.", path=path)
        below = dict(_below(path))
        if not below:
            raise UserError(
                "{path} holds no profile: neither a result of torch_npu's profiler (…_ascend_pt) nor a trace of "
                "PyTorch's (….pt.trace.json).",
                path=path,
            )
        found |= below
    return list(found.items())


def _below(path: Path) -> Iterator[tuple[Path, Reader]]:
    folders = [path.parent] if path.name == _OUTPUT else sorted(one.parent for one in path.rglob(_OUTPUT))
    for folder in folders:
        yield folder, read_text
