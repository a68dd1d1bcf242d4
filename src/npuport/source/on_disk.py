"""The Python files below a folder, read one by one when somebody asks for them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from npuport.source.files import FileKind, UndecodableError, decode

_MANY = 2000  # enough for a project; keeps a script in a home directory from reading all of it


class TextsOnDisk(Mapping[str, str]):
    """Text by path relative to ``root``. Iterating gives at most 2,000 files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, str] = {}

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and (path in self._known or (self.root / path).is_file())

    def __getitem__(self, path: str) -> str:
        if path not in self._known:
            try:
                self._known[path] = decode(path, (self.root / path).read_bytes(), FileKind.PYTHON).text
            except (OSError, UndecodableError) as error:
                raise KeyError(path) from error
        return self._known[path]

    def __iter__(self) -> Iterator[str]:
        found = 0
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "__")) and name != "node_modules")
            for name in sorted(files):
                if name.endswith(".py"):
                    path = (Path(folder) / name).relative_to(self.root).as_posix()
                    if path in self:
                        yield path
                        found += 1
                        if found == _MANY:
                            return

    def __len__(self) -> int:
        return sum(1 for _ in self)
