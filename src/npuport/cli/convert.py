"""`npuport convert`: rewrite a source tree, or show how it would be rewritten."""

from __future__ import annotations

import enum
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npuport.cli.shared import (
    CLEAN,
    FINDINGS,
    MISUSE,
    findings_cache,
    likely_script,
    make_settings,
    name_skipped,
    progress,
    suited,
    talk,
)
from npuport.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuport.conversion.proofs import Prover
    from npuport.conversion.rounds import Conversion
    from npuport.conversion.tree import Written
    from npuport.findings import Claim, Verdict
    from npuport.rules.settings import Settings
    from npuport.source.files import Tree

_STDIN = Path("-")


class Target(str, enum.Enum):
    """What the code is rewritten to."""

    NPU = "npu"
    AGNOSTIC = "agnostic"
    IMPORT = "import"


class Apex(str, enum.Enum):
    """What becomes of NVIDIA's apex."""

    TORCH = "torch"
    ASCEND = "ascend"
    STAND_IN = "stand-in"


class Mode(enum.Enum):
    """Where the result goes."""

    COPY = "copy"
    IN_PLACE = "in place"
    DIFF = "diff"
    CHECK = "check"
    STDOUT = "stdout"


def convert(
    source: Annotated[
        Path,
        typer.Argument(metavar="SRC", help="A directory, a file, or - for Python code on stdin.", show_default=False),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="Write the converted tree here.")
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Convert SRC itself; npuport-undo.patch brings it back.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print a unified diff and write nothing.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Print which files would change and write nothing.")] = False,
    target: Annotated[
        Target | None,
        typer.Option(
            "--target",
            help="npu: explicit torch.npu code; agnostic: code that runs on CUDA, NPU and CPU; "
            "import: one import at each entry point. By default agnostic for libraries, npu for all else.",
            show_default=False,
        ),
    ] = None,
    unsafe_fixes: Annotated[
        bool,
        typer.Option(
            "--unsafe-fixes",
            help="Apply fixes that may change behaviour, too, and put fused operators in. Read the result.",
        ),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify/--no-verify",
            help="Put a fused operator in only where it is proved equal to the code in its place, by running both on "
            "the simulated NPU; or put it in unproved.",
        ),
    ] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Replace OUT as a whole even if npuport did not write it.")
    ] = False,
    torch_version: Annotated[
        str, typer.Option("--torch", metavar="V", help="The version of torch to port to.")
    ] = "2.13.0",
    chip: Annotated[str, typer.Option("--chip", metavar="C", help="The Ascend chip.")] = "Ascend910B3",
    apex: Annotated[
        Apex,
        typer.Option(
            "--apex",
            help="What becomes of NVIDIA's apex with --unsafe-fixes: torch.amp and torch's classes; Apex for Ascend; "
            "nothing, for npuport run has a stand-in.",
        ),
    ] = Apex.TORCH,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, metavar="N", help="Processes; one per processor by default.")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Check every file anew, and keep nothing for the next run.")
    ] = False,
) -> None:
    """Rewrite CUDA code for the NPU, with a record of every change and of all that is left.

    OUT gets a full copy of SRC without version control, caches and virtual environments; unchanged files stay
    byte for byte the same.

    Exit codes: 0 done, or nothing would change; 1 files would change (--diff, --check); 2 misuse, unreadable input, or
    a defect of npuport.
    """
    from npuport.conversion.rounds import convert_files
    from npuport.conversion.tree import check_output
    from npuport.source.files import read_tree

    mode = _mode(source, output, in_place, diff, check)
    settings = make_settings(target.value if target else "npu", torch_version, chip, apex.value)
    tree = _stdin_tree() if source == _STDIN else None
    if tree is None and mode is Mode.COPY and output is not None and source.is_dir():
        check_output(source, output, force)
    if tree is None:
        tree = read_tree(source, without=output)
    if target is None and source.is_dir():
        settings = suited(settings, tree)
    prove = _prover(settings.chip, not no_cache) if verify and unsafe_fixes else None
    with progress(len(tree.files), "converting") as advance:
        conversion = convert_files(
            tree.files, settings, unsafe_fixes, jobs, advance, None if no_cache else findings_cache(source), prove
        )
    if mode is Mode.COPY and output is not None:
        _write_copy(tree, conversion, settings, output, force)
    elif mode is Mode.IN_PLACE:
        _write_in_place(tree, conversion, settings)
    elif mode is Mode.STDOUT:
        _print_bytes(conversion.files[0].encoded())
    else:
        _show(conversion, mode)
    sys.stdout.flush()
    name_skipped(tree.skipped, conversion.failures)
    _name_unexplained(conversion)
    raise SystemExit(_exit_code(tree, conversion, mode))


def _prover(chip: str, keep: bool) -> Prover:
    """Proves claims on the simulated NPU; with ``keep``, what was proved before counts."""

    def prove(claims: Sequence[Claim]) -> Sequence[Verdict]:
        from npuport import proof
        from npuport.report.language import counted, translate

        talk(translate("proving {fixes} on the simulated NPU", fixes=counted(len(claims), "replacement")))
        return proof.prove(claims, chip, cache=proof.VerdictCache() if keep else None)

    return prove


def _mode(source: Path, output: Path | None, in_place: bool, diff: bool, check: bool) -> Mode:
    wanted = {Mode.COPY: output is not None, Mode.IN_PLACE: in_place, Mode.DIFF: diff, Mode.CHECK: check}
    modes = [mode for mode, chosen in wanted.items() if chosen]
    if source == _STDIN:
        if Mode.COPY in modes or Mode.IN_PLACE in modes:
            raise UserError("code from stdin goes to stdout. Leave out -o and --in-place.")
        modes = modes or [Mode.STDOUT]
    if len(modes) != 1:
        raise UserError("say where the result goes with exactly one of -o OUT, --in-place, --diff, --check.")
    return modes[0]


def _stdin_tree() -> Tree:
    from npuport.errors import UserError
    from npuport.source.files import FileKind, Tree, UndecodableError, decode

    try:
        file = decode("stdin.py", sys.stdin.buffer.read(), FileKind.PYTHON)
    except UndecodableError as error:
        raise UserError("stdin cannot be read: {reason}.", reason=error) from error
    return Tree(Path.cwd(), (file,), ())


def _write_copy(tree: Tree, conversion: Conversion, settings: Settings, output: Path, force: bool) -> None:
    from npuport.conversion.tree import OutputError, write_copy, write_file
    from npuport.report.language import translate

    if tree.root.is_dir():
        written = write_copy(tree, conversion, output, _records(tree, conversion, settings))
        _say_written(tree, conversion, written, output)
        script = likely_script(tree)
        if script:
            print(f"{translate('Next:')}   cd {output} && npuport run --sim -- python {script}")
        return
    if not conversion.files:
        return  # the one file could not be read, which is said by the caller
    file = conversion.files[0]
    place = output / file.source.path if output.is_dir() or str(output).endswith(os.sep) else output
    if place.exists() and not force:
        raise OutputError("{out} exists. Choose another place with -o, or replace it with --force.", out=place)
    write_file(place, file, tree.root)
    _say_counts(tree, conversion, str(place))


def _write_in_place(tree: Tree, conversion: Conversion, settings: Settings) -> None:
    from npuport.conversion.tree import write_in_place

    written = write_in_place(tree, conversion, _records(tree, conversion, settings))
    _say_written(tree, conversion, written, tree.root)


def _records(tree: Tree, conversion: Conversion, settings: Settings) -> dict[str, bytes]:
    from npuport.conversion.record import JSON, MARKDOWN, Record

    record = Record(tree.root.resolve().name, conversion, tree.skipped, settings)
    return {MARKDOWN: record.markdown(), JSON: record.json()}


def _say_written(tree: Tree, conversion: Conversion, written: Written, shown: Path) -> None:
    from npuport.conversion.record import MARKDOWN
    from npuport.report.language import translate

    recorded = tree.root.is_dir() and (written.undo is not None or shown != tree.root)
    _say_counts(tree, conversion, str(shown / MARKDOWN) if recorded else "")
    if written.undo is not None:
        print(translate("Undo:   git apply {patch}     or: patch -p1 < {patch}", patch=written.undo.name))
    for path in written.missing:
        talk(translate("{path}: could not be read, so it is not in the copy", path=path))


def _say_counts(tree: Tree, conversion: Conversion, record: str) -> None:
    """What was done, and what the checks found, in two lines."""
    from npuport.report.language import counted, translate

    changed = len(conversion.changed)
    unchanged = len(tree.files) + len(tree.others) + len(tree.skipped) - changed
    line = translate(
        "{edits} in {files}, {unchanged} unchanged, {left} left for you",
        edits=counted(conversion.edit_count, "edit"),
        files=counted(changed, "file"),
        unchanged=counted(unchanged, "file"),
        left=counted(len(conversion.left_to_do), "finding"),
    )
    print(f"{line}     {record}".rstrip())
    print(_verdict(conversion))
    if conversion.verdicts:
        print(_proofs(conversion.verdicts))


def _verdict(conversion: Conversion) -> str:
    from npuport.report.language import counted, translate

    if not conversion.failures and not conversion.unexplained:
        return translate(
            "Checked: every converted file still parses; no CUDA reference is unexplained; "
            "a second run would change nothing."
        )
    return translate(
        "Checked: every converted file still parses; {unexplained} UNEXPLAINED, a defect of npuport met on {failures}; "
        "both are named below.",
        unexplained=counted(len(conversion.unexplained), "CUDA reference"),
        failures=counted(len(conversion.failures), "file"),
    )


def _proofs(verdicts: Sequence[Verdict]) -> str:
    from npuport.findings import Outcome
    from npuport.report.language import translate

    proved = sum(verdict.outcome is Outcome.PROVED for verdict in verdicts)
    untried = next((verdict.reason for verdict in verdicts if verdict.outcome is Outcome.UNTRIED), "")
    line = translate(
        "Proved: {proved} of {all} kinds of replacement by a fused operator are equal to the code in their place; "
        "no other is made.",
        proved=proved,
        all=len(verdicts),
    )
    return f"{line} {translate('One could not run: {reason}.', reason=untried)}" if untried else line


def _name_unexplained(conversion: Conversion) -> None:
    from npuport.report.language import translate
    from npuport.report.text import printable

    for word in conversion.unexplained:
        where, what = printable(str(word)), printable(word.word)
        talk(
            translate(
                "{where}: {word} is left and no finding explains it. This is a defect of npuport.",
                where=where,
                word=what,
            )
        )


def _show(conversion: Conversion, mode: Mode) -> None:
    from npuport.report.language import counted, translate

    if mode is Mode.DIFF:
        from npuport.conversion.record import diff

        _print_diff(diff(conversion.changed))
    else:
        for file in conversion.changed:
            print(file.source.path)
    sys.stdout.flush()
    talk(
        translate(
            "{edits} in {files}; nothing was written",
            edits=counted(conversion.edit_count, "edit"),
            files=counted(len(conversion.changed), "file"),
        )
    )


def _print_diff(data: bytes) -> None:
    """A diff in its files' own bytes; coloured in a terminal only."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        _print_bytes(data)
        return
    from npuport.report.text import console, printable

    screen = console()
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in data.decode("utf-8", "replace").split("\n")[:-1]:
        heading = line.startswith(("--- ", "+++ "))
        screen.print(printable(line.rstrip("\r")), style="bold" if heading else colours.get(line[:1]))


def _print_bytes(data: bytes) -> None:
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is not None:
        buffer.write(data)
        buffer.flush()
    else:
        sys.stdout.write(data.decode("utf-8", "replace"))


def _exit_code(tree: Tree, conversion: Conversion, mode: Mode) -> int:
    if conversion.failures or conversion.unexplained or any(one.unreadable for one in tree.skipped):
        return MISUSE
    if mode in (Mode.DIFF, Mode.CHECK) and conversion.changed:
        return FINDINGS
    return CLEAN
