"""Writing a converted tree: beside the original or in its place, whole or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from npuport.conversion.record import JSON, SCHEMA, diff
from npuport.conversion.rounds import Conversion, ConvertedFile
from npuport.errors import UserError
from npuport.source.files import Tree, is_own_record

_VERSION_CONTROL = (".git", ".hg", ".svn", ".bzr")
_REGENERATED = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})


class OutputError(UserError):
    """The result cannot be written where it was asked for; nothing there has been changed."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written. ``missing`` are files that could not be read and are therefore not in the copy."""

    place: Path
    copied: int
    missing: tuple[str, ...] = ()
    undo: Path | None = None


def check_output(source: Path, out: Path, force: bool) -> None:
    """Refuse, before any work is done, an output that would destroy something.

    Raises:
        OutputError: when ``out`` is or holds ``source``, or holds files that npuport did not write.
    """
    real, real_out = source.resolve(), out.resolve()
    if real_out == real:
        raise OutputError("{out} is the project itself. Use --in-place to convert it where it is.", out=out)
    if real.is_relative_to(real_out):
        raise OutputError("{out} contains {source}. Choose a place outside it with -o.", out=out, source=source)
    file = next((place for place in out.parents if place.is_file()), None)
    if file is not None:
        raise OutputError("{out} is a file. Choose a directory with -o.", out=file)
    try:
        if not out.exists():
            return
        if not out.is_dir():
            raise OutputError("{out} is a file. Choose a directory with -o.", out=out)
        if not any(out.iterdir()):
            return
    except OSError as error:
        raise _cannot_write(out, error) from error
    if any((out / name).exists() for name in _VERSION_CONTROL):
        raise OutputError(
            "{out} is a repository, which npuport does not replace. Choose another place with -o.", out=out
        )
    if force:
        return
    written = _time_written(out)
    if written is None:
        raise OutputError(
            "{out} is not empty and not npuport's. Choose another place with -o, or replace it with --force.",
            out=out,
        )
    foreign = _first_newer(out, written)
    if foreign:
        raise OutputError(
            "{out} has changed since npuport wrote it ({path}). Choose another place, or replace it with --force.",
            out=out,
            path=foreign,
        )


def _time_written(out: Path) -> int | None:
    """When npuport finished writing ``out`` (ns); None when it is not npuport's."""
    try:
        with (out / JSON).open("rb") as stream:
            ours = f'"schema": "{SCHEMA}"'.encode() in stream.read(200)
            return os.fstat(stream.fileno()).st_ctime_ns if ours else None
    except OSError:
        return None


def _first_newer(out: Path, written: int) -> str:
    """A file added or changed after ``written``; the time of the inode's change cannot be set back by copying."""
    for folder, folders, names in os.walk(out):
        folders[:] = sorted(name for name in folders if name not in _REGENERATED)
        for name in sorted(names):
            if Path(folder) == out and is_own_record(name):
                continue
            if os.lstat(os.path.join(folder, name)).st_ctime_ns > written:  # noqa: PTH118 - os.walk gives strings
                return os.path.relpath(os.path.join(folder, name), out)  # noqa: PTH118
    return ""


def write_copy(tree: Tree, conversion: Conversion, out: Path, records: Mapping[str, bytes]) -> Written:
    """Write the whole tree to ``out``: converted files, all others byte for byte with modes and times, and ``records``.

    Version control, caches and virtual environments are not copied. ``out`` appears, or is replaced, in one rename.

    Raises:
        OutputError: when ``out`` cannot be written; nothing is left behind.
    """
    out = Path(os.path.abspath(out))  # noqa: PTH100 - resolve() would follow a link that is to be replaced
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".npuport-{out.name}-", dir=out.parent, ignore_cleanup_errors=True
        ) as aside:
            fresh = Path(aside, "new")
            fresh.mkdir()
            missing, copied = _fill(tree, conversion, fresh)
            for name, data in records.items():
                (fresh / name).write_bytes(data)
            for directory in sorted(tree.directories, reverse=True):  # deepest first: writing inside changes times
                shutil.copystat(tree.base / directory, fresh / directory)
            fresh.chmod(stat.S_IMODE(tree.base.stat().st_mode) | stat.S_IRWXU)
            _swap(fresh, out, Path(aside, "old"))
    except OSError as error:
        raise _cannot_write(out, error) from error
    return Written(out, copied, missing)


def _swap(fresh: Path, out: Path, old: Path) -> None:
    if out.exists():
        out.rename(old)
    try:
        fresh.rename(out)
    except BaseException:  # Ctrl-C, too
        if old.exists() and not out.exists():
            old.rename(out)
        raise


def _fill(tree: Tree, conversion: Conversion, fresh: Path) -> tuple[tuple[str, ...], int]:
    for directory in tree.directories:
        (fresh / directory).mkdir()
    for link in tree.links:
        (fresh / link).symlink_to((tree.base / link).readlink())
    changed = {file.source.path: file for file in conversion.changed}
    missing = []
    copied = 0
    read = [file.source.path for file in conversion.files]
    unread = [skipped.path for skipped in tree.skipped if (tree.base / skipped.path).is_file()]
    for path in sorted({*read, *tree.others, *unread} - set(tree.links)):
        if path in changed:
            (fresh / path).write_bytes(changed[path].encoded())
            shutil.copymode(tree.base / path, fresh / path)
            continue
        try:
            shutil.copy2(tree.base / path, fresh / path)
            copied += 1
        except OSError as error:
            if error.filename is None or Path(error.filename) != tree.base / path:
                raise  # not the source but the copy is the trouble
            missing.append(path)
    return tuple(missing), copied


def write_in_place(tree: Tree, conversion: Conversion, records: Mapping[str, bytes]) -> Written:
    """Replace the changed files of the tree, each atomically, and add ``records`` and a patch that undoes the change.

    The patch is npuport-undo.patch (npuport-undo-2.patch and so on after further conversions).

    Raises:
        OutputError: when a file cannot be replaced; files replaced before it have their old text again, as they have
            after Ctrl-C.
    """
    if not conversion.changed:
        return Written(tree.base, 0)
    whole = tree.root.is_dir()  # records of a single file would litter the directory it happens to be in
    undo = tree.base / _undo_name(len(undo_patches(tree.base)) + 1)
    contents = {undo: diff(conversion.changed, reverse=True)} if whole else {}
    contents |= {tree.base / file.source.path: file.encoded() for file in conversion.changed}
    contents |= {tree.base / name: data for name, data in records.items()} if whole else {}
    staged: dict[Path, Path] = {}
    replaced: dict[Path, bytes | None] = {}
    try:
        for target, data in contents.items():
            staged[target] = stage(target, data)
        for target, aside in staged.items():
            replaced[target] = target.read_bytes() if target.exists() else None
            aside.replace(target)
    except BaseException as error:  # Ctrl-C, too
        for aside in staged.values():
            aside.unlink(missing_ok=True)
        for target, old in replaced.items():
            _restore(target, old)
        if isinstance(error, OSError):
            raise _cannot_write(tree.root, error) from error
        raise
    return Written(tree.base, len(conversion.files) - len(conversion.changed), undo=undo if whole else None)


def write_file(out: Path, converted: ConvertedFile, mode: Path) -> None:
    """Write one converted file to ``out`` with the permissions of the file ``mode``.

    Raises:
        OutputError: when that is not possible.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside = stage(out, converted.encoded())
        shutil.copymode(mode, aside)
        aside.replace(out)
    except OSError as error:
        raise _cannot_write(out, error) from error


def stage(target: Path, data: bytes) -> Path:
    """``data`` in a new file next to ``target``, on the same file system and with the same permissions."""
    descriptor, name = tempfile.mkstemp(prefix=f".npuport-{target.name}-", dir=target.parent)
    aside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        if target.exists():
            shutil.copymode(target, aside)
        else:
            aside.chmod(0o666 & ~_umask())
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    return aside


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _restore(target: Path, old: bytes | None) -> None:
    """Give a file its old bytes again; None for a file that was not there."""
    if old is None:
        target.unlink(missing_ok=True)
    elif target.read_bytes() != old:
        stage(target, old).replace(target)


def undo_patches(base: Path) -> list[Path]:
    """The patches that undo conversions in place, the oldest first."""
    found: list[Path] = []
    while (patch := base / _undo_name(len(found) + 1)).exists():
        found.append(patch)
    return found


def _undo_name(number: int) -> str:
    return "npuport-undo.patch" if number == 1 else f"npuport-undo-{number}.patch"


def _cannot_write(place: Path, error: OSError) -> OutputError:
    path = error.filename or place
    return OutputError(
        "{path} cannot be written: {reason}. Choose another place with -o.",
        path=os.fsdecode(path) if isinstance(path, bytes) else path,
        reason=(error.strerror or str(error)).lower(),
    )
