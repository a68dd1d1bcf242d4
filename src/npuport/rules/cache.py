"""Findings of trees that were checked before, kept in the user's cache directory.

What a rule finds in a file may depend on every other file of the tree, so the findings of a tree are kept together,
under a hash of all that they depend on: the texts, the settings, npuport itself, Python. Nothing stale can come back.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from npuport.entries import Entries
from npuport.findings import Finding
from npuport.rules.settings import Settings
from npuport.source.files import SourceFile

LIMIT = 200_000_000
"""Bytes of all entries together; those not used for longest are removed."""

_SMALLEST = 300_000  # characters; less is checked as fast as it is looked up
_READERS = ("PyYAML", "ahocorasick_rs", "packaging")  # what decides beside npuport
_Findings = Mapping[str, Sequence[Finding]]  # by path


def default_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("npuport")) / "findings"


@dataclass(frozen=True, slots=True)
class FindingsCache:
    """Findings by tree. A folder that cannot be read or written, and a damaged entry, mean that nothing is known."""

    folder: Path
    limit: int = LIMIT

    @property
    def _entries(self) -> Entries:
        return Entries(self.folder, ".findings")

    def read(self, key: str) -> dict[str, list[Finding]]:
        """The findings kept under ``key``, by path; empty for none. A file without an entry is not known."""
        body = self._entries.read(key) if key else None
        try:
            found: dict[str, list[Finding]] = pickle.loads(zlib.decompress(body)) if body else {}
        except (zlib.error, pickle.PickleError):
            return {}
        return found

    def write(self, key: str, findings: _Findings) -> None:
        """Keep ``findings`` whole or not at all, whatever else runs at the same time."""
        if key:
            body = pickle.dumps({path: list(found) for path, found in findings.items()})
            self._entries.write(key, zlib.compress(body, level=1))
            self._entries.shrink(self.limit)


def key_of(files: Sequence[SourceFile], settings: Settings, before: Sequence[SourceFile] = ()) -> str:
    """A hash of all that findings in ``files`` depend on; "" for so few that they are not worth keeping.

    ``before`` are the files as they were before the conversion that is under way, if one is.
    """
    if sum(len(file.text) for file in files) < _SMALLEST:
        return ""
    digest = hashlib.sha256(repr((settings, _tools())).encode())
    for part in (files, before):
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, files: Iterable[SourceFile]) -> None:
    for file in files:
        data = file.text.encode("utf-8", "surrogatepass")
        digest.update(repr((file.path, file.kind.value, file.encoding, file.bom, len(data))).encode())
        digest.update(data)
    digest.update(b"end")


@cache
def _tools() -> tuple[str, ...]:
    """What checks: this Python, the libraries that read, and the text of npuport's own rules and facts."""
    package = Path(__file__).parents[1]
    own = hashlib.sha256()
    for folder in ("rules", "source", "facts"):
        for place in sorted((package / folder).rglob("*")):
            if place.is_file() and place.suffix != ".pyc":
                data = place.read_bytes()
                own.update(repr((place.relative_to(package).as_posix(), len(data))).encode() + data)
    own.update((package / "findings.py").read_bytes())
    return sys.version, own.hexdigest(), *(metadata.version(name) for name in _READERS)
