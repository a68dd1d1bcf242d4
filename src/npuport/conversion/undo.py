"""Taking a conversion in place back: the patch that it left, applied whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from npuport.conversion.record import JSON, MARKDOWN
from npuport.conversion.tree import stage, undo_patches
from npuport.errors import UserError

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
_NO_NEWLINE = b"\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Undone:
    """The files that are as they were before the conversion."""

    paths: tuple[str, ...]


def undo(root: Path) -> Undone:
    """Apply the newest undo patch in ``root``, then remove it, and the record with the last of them.

    Raises:
        UserError: there is no patch, or a file has changed since the conversion; then no file is touched.
    """
    patches = undo_patches(root)
    if not patches:
        raise UserError(
            "{root} holds no npuport-undo.patch: nothing was converted in place here. "
            "A copy made with -o is undone by deleting it.",
            root=root,
        )
    try:
        data = patches[-1].read_bytes()
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=patches[-1], reason=error.strerror) from error
    contents = dict(_restored(root, data, patches[-1]))
    _replace(contents)
    patches[-1].unlink()
    for name in (MARKDOWN, JSON) if len(patches) == 1 else ():
        (root / name).unlink(missing_ok=True)
    return Undone(tuple(path.relative_to(root).as_posix() for path in contents))


def _replace(contents: Mapping[Path, bytes]) -> None:
    """Give every file its new bytes; where one cannot be written, none keeps them."""
    before = {path: path.read_bytes() for path in contents}
    staged: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            staged[path] = stage(path, data)
        for path, aside in staged.items():
            aside.replace(path)
    except OSError as error:
        for path, aside in staged.items():
            aside.unlink(missing_ok=True)
            if path.read_bytes() != before[path]:
                stage(path, before[path]).replace(path)
        raise UserError("{path} cannot be written: {reason}.", path=error.filename, reason=error.strerror) from error


def _restored(root: Path, patch: bytes, origin: Path) -> Iterator[tuple[Path, bytes]]:
    for name, hunks in _files(patch):
        path = root / name.decode("utf-8", "surrogateescape")
        try:
            yield path, _applied(path.read_bytes(), hunks)
        except (OSError, ValueError):
            raise UserError(
                "{path} has changed since the conversion, so nothing was undone. "
                "Undo your own changes first, or take the hunks you want from {patch}.",
                path=path,
                patch=origin,
            ) from None


def _files(patch: bytes) -> Iterator[tuple[bytes, list[tuple[int, list[bytes]]]]]:
    """Each file of a unified diff, with its hunks: the line they begin at, and their lines."""
    name, hunks = b"", list[tuple[int, list[bytes]]]()
    lines = patch.split(b"\n")
    position = 0
    while position < len(lines):
        line = lines[position]
        if line.startswith(b"--- ") and position + 1 < len(lines) and lines[position + 1].startswith(b"+++ "):
            if name:
                yield name, hunks
            name, hunks = lines[position + 1].removeprefix(b"+++ b/").rstrip(b"\t"), []
            position += 2
        elif hunk := _HUNK.match(line):
            count = int(hunk[2]) if hunk[2] else 1
            body, position = _body(lines, position + 1, count)
            hunks.append((int(hunk[1]), body))
        else:
            position += 1
    if name:
        yield name, hunks


def _body(lines: Sequence[bytes], position: int, old_lines: int) -> tuple[list[bytes], int]:
    """The lines of a hunk whose old side has ``old_lines``, and where the next one begins."""
    body: list[bytes] = []
    while position < len(lines):
        line = lines[position]
        if old_lines == 0 and line[:1] not in (b"+", b"\\"):
            break
        if line[:1] in (b" ", b"-"):
            old_lines -= 1
        body.append(line)
        position += 1
    return body, position


def _applied(data: bytes, hunks: Sequence[tuple[int, list[bytes]]]) -> bytes:
    """``data`` with every hunk applied at its very place.

    Raises:
        ValueError: a line is not what the patch says.
    """
    old = data.split(b"\n")
    old = [line + b"\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    new: list[bytes] = []
    done = 0
    for first, body in hunks:
        start = first - 1 if any(line[:1] in (b" ", b"-") for line in body) else first
        new += old[done:start]
        done = start
        for place, line in enumerate(body):
            if line.startswith(b"\\"):
                continue
            bare = place + 1 < len(body) and body[place + 1].startswith(_NO_NEWLINE)
            text = line[1:] if bare else line[1:] + b"\n"
            if line[:1] in (b" ", b"-"):
                if done >= len(old) or old[done] != text:
                    raise ValueError(f"line {done + 1} is not what the patch says")
                done += 1
            if line[:1] in (b" ", b"+"):
                new.append(text)
    return b"".join([*new, *old[done:]])
