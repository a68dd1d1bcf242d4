"""What every command needs: exit codes, errors in one line, progress, and the words for skipped input."""

from __future__ import annotations

import errno
import math
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from npuport.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from npuport.rules.cache import FindingsCache
    from npuport.rules.settings import Settings
    from npuport.source.files import Skipped, Tree
    from npuport.source.parallel import Failure, Progress

CLEAN, FINDINGS, MISUSE = 0, 1, 2
INTERRUPTED, PIPE_CLOSED = 130, 141  # 128 + the signal's number, as shells report it

_LISTED = 20  # skipped files named on stderr; the JSON and the record name all
_PROGRESS_FROM = 100  # files; fewer are done before a bar could be read
_LONG_TO_READ = 10_000_000  # bytes
_REDRAWN_AFTER = 0.1  # seconds: to draw takes longer than the work between two steps may


@contextmanager
def guard() -> Iterator[None]:
    """Ends the process in the way a user expects whatever happens inside: one line, the right exit code."""
    try:
        yield
        sys.stdout.flush()
    except UserError as error:
        from npuport.report.language import translate_error

        talk(f"npuport: {translate_error(error)}")
        raise SystemExit(MISUSE) from None
    except KeyboardInterrupt:
        from npuport.report.language import translate

        talk("npuport: " + translate("interrupted"))
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # Python flushes stdout once more when it ends; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(PIPE_CLOSED) from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _report_full(error)
        else:
            _report_defect(error)
        raise SystemExit(MISUSE) from None


def _report_full(error: OSError) -> None:
    from npuport.report.language import translate

    if error.filename is None:  # it may be stdout, which Python flushes once more when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    where = error.filename or translate("output")
    talk("npuport: " + translate("{path} cannot be written: {reason}.", path=where, reason=error.strerror))


def _report_defect(error: Exception) -> None:
    from npuport.report.language import translate

    if os.environ.get("NPUPORT_DEBUG"):
        import traceback

        traceback.print_exc()
    talk(f"npuport: {type(error).__name__}: {error}")
    talk(translate("This is a defect of npuport. Run again with NPUPORT_DEBUG=1 and report it with the traceback."))


def talk(text: str) -> None:
    """One line for the person, on stderr."""
    print(text, file=sys.stderr)


@contextmanager
def progress(total: int, what: str) -> Iterator[Progress | None]:
    """A bar on stderr for long work in a terminal; None where nobody would see it."""
    if total < _PROGRESS_FROM or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # No thread of its own draws the bar: the workers are forked while it is shown.
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=total)
        drawn = time.monotonic()
        bar.refresh()

        def advance(done: int) -> None:
            nonlocal drawn
            now = time.monotonic()
            bar.update(task, advance=done, refresh=now - drawn >= _REDRAWN_AFTER)
            if now - drawn >= _REDRAWN_AFTER:
                drawn = now

        yield advance


@contextmanager
def waiting(what: str, size: int) -> Iterator[None]:
    """Something that moves on stderr while files of so many bytes are read, in a terminal and where that takes long.
    A thread draws it: nothing may be forked meanwhile."""
    if size < _LONG_TO_READ or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(what, total=None)
        yield


def make_settings(target: str, torch_version: str, chip: str, apex: str = "torch") -> Settings:
    """Settings from options; a value that cannot be is the user's to correct."""
    from npuport import facts
    from npuport.rules.settings import Settings

    if facts.chip(chip) is None:
        known = ", ".join(one.name for one in facts.all_chips())
        raise UserError("unknown chip {chip}. Known are {known}.", chip=chip, known=known)
    try:
        return Settings(target=target, torch_version=torch_version, chip=chip, apex=apex)
    except ValueError as error:
        raise UserError("{message}.", message=error) from error


def findings_cache(tree: Path) -> FindingsCache:
    """Where the findings of a tree are kept from run to run."""
    from npuport.rules.cache import FindingsCache, default_folder

    return FindingsCache(default_folder(), str(tree.resolve()))


def suited(settings: Settings, tree: Tree) -> Settings:
    """The settings with the target that suits the kind of project; says so where the tree declares a package."""
    from dataclasses import replace

    from npuport.report.language import translate
    from npuport.report.text import printable
    from npuport.source.project_kind import project_kind

    kind = project_kind(tree.files)
    declared = translate("{path} declares the package {name}", path=kind.declared_in, name=printable(kind.package))
    if kind.is_library:
        talk(translate("--target agnostic, for {why}; --target npu writes code for NPUs alone", why=declared))
        return replace(settings, target="agnostic")
    if kind.package:
        why = translate("{declared}, but {script} trains", declared=declared, script=printable(kind.script))
        talk(translate("--target npu, for {why}; --target agnostic writes code for GPU, NPU and CPU", why=why))
    return settings


def name_skipped(skipped: Sequence[Skipped], failures: Sequence[Failure]) -> None:
    """Name on stderr what was not read and what failed."""
    from npuport.report.language import translate
    from npuport.report.text import printable

    # What should have been read comes first.
    ordered = sorted(skipped, key=lambda one: (not one.unreadable, one.path))
    for one in ordered[:_LISTED]:
        reason = translate("not read: {reason}", reason=printable(one.reason))
        talk(f"{printable(one.path)}: {reason}")
    if len(ordered) > _LISTED:
        talk(translate("… and {number} more not read", number=len(ordered) - _LISTED))
    _name_failures(failures)


def _name_failures(failures: Sequence[Failure]) -> None:
    """Each kind of failure once, with the first file it was met on: one defect can fail on every file of a tree."""
    from npuport.report.language import counted, translate
    from npuport.report.text import printable

    kinds: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        kinds.setdefault((failure.rule, failure.message), []).append(failure)
    for (code, message), members in kinds.items():
        failure, rule = members[0], code or "npuport"
        talk(
            translate(
                "{path}: {rule} failed ({message}). This is a defect of npuport; please report it.",
                path=printable(failure.path),
                rule=rule,
                message=printable(message),
            )
        )
        if len(members) > 1:
            talk(translate("… and in the same way on {files} more", files=counted(len(members) - 1, "file")))
        if os.environ.get("NPUPORT_DEBUG") and failure.detail:
            talk(failure.detail)


def likely_script(tree: Tree) -> str:
    """The script at the top of the tree that trains, as far as names tell; "" when there is none."""
    top = [file for file in tree.files if "/" not in file.path and file.path.endswith(".py")]
    scripts = [
        file.path for file in top if file.path in ("train.py", "main.py") or re.search(r"__name__\s*==", file.text)
    ]
    words = ("train", "main", "run")
    ranked = [(next((rank for rank, word in enumerate(words) if word in path), len(words)), path) for path in scripts]
    return min(ranked, default=(0, ""))[1]


def print_json(document: Any) -> None:
    """Print a document as JSON. Numbers that are not finite, which JSON does not have, are null."""
    import json

    print(json.dumps(_finite(document), ensure_ascii=False, indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def write_aside(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: beside its place first.

    Raises:
        UserError: that is not possible.
    """
    import tempfile
    from pathlib import Path as Place

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        aside = Place(name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            mask = os.umask(0)
            os.umask(mask)
            aside.chmod(0o666 & ~mask)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError("{path} cannot be written: {reason}.", path=path, reason=error.strerror) from error


def codes(values: Sequence[str]) -> list[str]:
    """Options such as ``--select NP2,NP301 --select NP9`` as one list."""
    return [code.strip() for value in values for code in value.split(",") if code.strip()]
