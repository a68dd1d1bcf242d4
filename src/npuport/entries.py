"""Files of a cache that several processes share: each is written whole or not at all, and read whole or not at all.

Loads little: processes that a run starts ask it before their first line.
"""

from __future__ import annotations

import hashlib
import os
import threading

_DIGEST = hashlib.sha256().digest_size


class Entries:
    """Contents by key in a folder of their own.

    A folder that cannot be read or written, and a damaged entry, mean that nothing is known.
    """

    def __init__(self, folder: str | os.PathLike[str], suffix: str) -> None:
        self._folder = os.fspath(folder)
        self._suffix = suffix

    def read(self, key: str) -> bytes | None:
        """What was written under ``key``; it counts as used now."""
        place = self._place(key)
        try:
            with open(place, "rb") as file:  # noqa: PTH123
                data = file.read()
            if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
                return None
            os.utime(place)
        except OSError:
            return None
        return data[_DIGEST:]

    def write(self, key: str, body: bytes) -> None:
        """Keep ``body`` under ``key``, whatever other processes write at the same time."""
        aside = os.path.join(self._folder, f".{key[:16]}-{os.getpid()}-{threading.get_ident()}.aside")  # noqa: PTH118
        try:
            os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103
            try:
                with open(aside, "wb") as file:  # noqa: PTH123
                    file.write(hashlib.sha256(body).digest() + body)
                os.replace(aside, self._place(key))  # noqa: PTH105
            except BaseException:
                os.unlink(aside)  # noqa: PTH108
                raise
        except OSError:
            return

    def shrink(self, limit: int) -> None:
        """Remove those not used for longest until the rest holds at most ``limit`` bytes."""
        entries = []
        try:
            for entry in os.scandir(self._folder):
                try:
                    about = entry.stat()
                except FileNotFoundError:  # another process has just removed it
                    continue
                entries.append((about.st_mtime_ns, about.st_size, entry.path))
            total = sum(size for _, size, _ in entries)
            for _, size, place in sorted(entries):
                if total <= limit:
                    return
                os.unlink(place)  # noqa: PTH108
                total -= size
        except OSError:
            return

    def _place(self, key: str) -> str:
        return os.path.join(self._folder, key + self._suffix)  # noqa: PTH118
