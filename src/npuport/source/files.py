"""Reading a source tree: which files there are, of what kind, and their text, which goes back byte for byte."""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from npuport.errors import UserError
from npuport.source.kinds import FileKind, kind_by_content, kind_by_name

__all__ = ["FileKind", "InputError", "Skipped", "SourceFile", "Tree", "decode", "is_own_record", "read_tree"]

SIZE_LIMIT = 5_000_000
"""Bytes. A larger text file is data rather than source; it is copied, not read, and named in ``Tree.skipped``."""

_HEAD = 8192  # bytes looked at to tell text from binary; git looks at about as many

# Version control, caches and virtual environments: made by tools, made again by tools. Neither read nor copied.
_VERSION_CONTROL = {".git", ".hg", ".svn", ".bzr"}
_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".ipynb_checkpoints"}
_ENVIRONMENTS = {".venv", "venv", ".tox", ".nox", ".eggs", "node_modules", "site-packages"}
_PRUNED = frozenset(_VERSION_CONTROL | _CACHES | _ENVIRONMENTS)
_VIRTUAL_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")

_OWN_RECORD = re.compile(r"npuport-(changes\.(md|json)|undo(-\d+)?\.patch)")


class InputError(UserError):
    """The path given to a command cannot be read as a source tree."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A text file. ``text`` keeps its line ends; ``encode(text)`` gives the bytes it came from."""

    path: str  # relative to the tree, with forward slashes
    kind: FileKind
    text: str
    encoding: str = "utf-8"
    bom: bool = False

    def encode(self, text: str) -> bytes:
        """The bytes of ``text`` in this file's encoding.

        Raises:
            UnicodeEncodeError: when ``text`` holds a character that the encoding lacks.
        """
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or directory that was not read. ``unreadable`` when it should have been: the command then ends with 2."""

    path: str
    reason: str
    unreadable: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """What is below ``root`` (a directory, or one file). Every path is relative to ``base``; all tuples are sorted."""

    root: Path
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    others: tuple[str, ...] = ()  # binary files
    links: tuple[str, ...] = ()  # symbolic links, never followed
    directories: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()  # version control, caches, virtual environments, records of an earlier conversion

    @property
    def base(self) -> Path:
        """The directory that paths are relative to."""
        return self.root if self.root.is_dir() else self.root.parent


def read_tree(root: Path, without: Path | None = None) -> Tree:
    """Read a directory or a single file, leaving out the directory ``without``.

    Raises:
        InputError: when there is no such path, or nothing below it to read.
    """
    try:
        mode = root.stat().st_mode
    except OSError as error:
        raise _root_error(root, error) from error
    if stat.S_ISREG(mode):
        walk = _Walk(root.parent, None)
        walk.file(root.name, root.stat().st_size)
    elif stat.S_ISDIR(mode):
        walk = _Walk(root, without.resolve() if without else None)
        walk.run()
    else:
        raise InputError("{path} is neither a file nor a directory.", path=root)
    tree = walk.tree(root)
    if not tree.files and not tree.skipped:
        raise InputError("{path} holds no source files. Give the directory of a PyTorch project.", path=root)
    return tree


def _root_error(root: Path, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return InputError("{path} does not exist. Check the path.", path=root)
    return InputError("{path} cannot be read: {reason}.", path=root, reason=error.strerror or str(error))


def is_own_record(name: str) -> bool:
    """Whether a file name is one that ``npuport convert`` gives to its own records."""
    return _OWN_RECORD.fullmatch(name) is not None


@dataclass
class _Walk:
    base: Path
    without: Path | None
    files: list[SourceFile] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)

    def run(self) -> None:
        waiting = [""]
        while waiting:
            waiting.extend(self._directory(waiting.pop()))

    def _directory(self, prefix: str) -> Iterator[str]:
        """Take in one directory, and yield those below it."""
        try:
            with os.scandir(self.base / prefix) as listing:
                entries = list(listing)
        except OSError as error:
            if not prefix:
                raise _root_error(self.base, error) from error
            self._unreadable(prefix, error)
            return
        for entry in entries:
            path = prefix + entry.name
            try:
                if entry.is_symlink():
                    self._link(path)
                elif entry.is_dir():
                    if self._is_pruned(entry, prefix):
                        self.pruned.append(path + "/")
                    else:
                        self.directories.append(path)
                        yield path + "/"
                elif entry.is_file():
                    # A work tree of git has a file called .git; a copy of it would act on the original's repository.
                    if entry.name in _VERSION_CONTROL or (not prefix and is_own_record(entry.name)):
                        self.pruned.append(path)
                    else:
                        self.file(path, entry.stat().st_size)
                else:
                    self.skipped.append(Skipped(path, "a pipe, socket or device", unreadable=False))
            except OSError as error:
                self._unreadable(path, error)

    def _is_pruned(self, entry: os.DirEntry[str], prefix: str) -> bool:
        if entry.name in _PRUNED or entry.name.startswith(".npuport-"):
            return True
        directory = self.base / prefix / entry.name
        if self.without is not None and directory.resolve() == self.without:
            return True
        return any((directory / mark).exists() for mark in _VIRTUAL_ENVIRONMENT_MARKS)

    def _link(self, path: str) -> None:
        self.links.append(path)
        target = (self.base / path).resolve()
        if target.exists() and not target.is_relative_to(self.base.resolve()):
            self.skipped.append(Skipped(path, "a link to outside the tree; its target is not read", unreadable=False))

    def file(self, path: str, size: int) -> None:
        kind = kind_by_name(path)
        if kind is FileKind.BINARY:
            self.others.append(path)
            return
        try:
            with (self.base / path).open("rb") as stream:
                head = stream.read(_HEAD)
                if size > SIZE_LIMIT and b"\0" not in head:
                    reason = (
                        f"{size / 1e6:.1f} MB, over the limit of {SIZE_LIMIT / 1e6:.0f} MB for source; copied unread"
                    )
                    self.skipped.append(Skipped(path, reason, unreadable=False))
                    return
                if b"\0" in head:
                    self._binary(path, kind)
                    return
                data = head + stream.read()
        except OSError as error:
            self._unreadable(path, error)
            return
        try:
            self.files.append(decode(path, data, kind or kind_by_content(head)))
        except UndecodableError as error:
            self.skipped.append(Skipped(path, str(error), unreadable=True))

    def _binary(self, path: str, kind: FileKind | None) -> None:
        if kind in (None, FileKind.TEXT):
            self.others.append(path)
        else:
            self.skipped.append(Skipped(path, "holds null bytes: not a text file, or UTF-16", unreadable=True))

    def _unreadable(self, path: str, error: OSError) -> None:
        self.skipped.append(Skipped(path, (error.strerror or str(error)).lower(), unreadable=True))

    def tree(self, root: Path) -> Tree:
        return Tree(
            root,
            tuple(sorted(self.files, key=lambda file: file.path)),
            tuple(sorted(self.skipped, key=lambda one: one.path)),
            *(tuple(sorted(paths)) for paths in (self.others, self.links, self.directories, self.pruned)),
        )


class UndecodableError(ValueError):
    """The bytes of a file are not text in the encoding the file must have."""


def decode(path: str, data: bytes, kind: FileKind) -> SourceFile:
    """The text of a file, by Python's rules for Python files.

    Other files are UTF-8 or, failing that, read as Latin-1: it maps every byte to one character and back, and agrees
    with ASCII, which is all that npuport looks for.

    Raises:
        UndecodableError: when a Python file is not in the encoding that it declares, or UTF-8 if it declares none.
    """
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    if kind is FileKind.PYTHON:
        encoding = _declared_encoding(data)
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, error.start) + 1
            raise UndecodableError(
                f"line {line} is not {encoding}; declare the encoding or save the file as UTF-8"
            ) from None
        except (UnicodeError, LookupError) as error:
            raise UndecodableError(f"{encoding} is no encoding for source files ({error})") from None
    else:
        try:
            encoding, text = "utf-8", body.decode("utf-8")
        except UnicodeDecodeError:
            bom, encoding, text = False, "latin-1", data.decode("latin-1")
    source = SourceFile(path, kind, text, encoding, bom)
    if encoding not in ("utf-8", "latin-1") and source.encode(text) != data:
        raise UndecodableError(f"its encoding {encoding} does not survive being written back; save the file as UTF-8")
    return source


def _declared_encoding(data: bytes) -> str:
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        # detect_encoding reports both an unknown cookie and, without a cookie, two first lines that are not UTF-8.
        if "unknown encoding" in str(error) or "encoding problem" in str(error):
            raise UndecodableError(f"{error}; correct the coding line") from None
        return "utf-8"
    return "utf-8" if encoding == "utf-8-sig" else encoding
