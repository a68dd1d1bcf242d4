"""What `npuport export atc` and `npuport export check-atc` do and say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.errors import UserError
from npuport.findings import Severity
from npuport.report.language import translate

if TYPE_CHECKING:
    from npuport.export.atc.building import Wish
    from npuport.export.atc.command import AtcCommand
    from npuport.export.atc.problems import Problem
    from npuport.export.onnx_graph import Graph


def build(model: Path, wish: Wish, write: Path | None) -> int:
    """Print the command, and write it where that is wanted; the exit code. Nothing is written of a wrong command."""
    from npuport.cli.shared import CLEAN, FINDINGS, talk, write_aside
    from npuport.export.atc.building import options_for
    from npuport.export.atc.checking import check_command
    from npuport.export.atc.command import AtcCommand, written
    from npuport.export.onnx_graph import read_graph

    graph = read_graph(model)
    if wish.insert_op_conf and not Path(wish.insert_op_conf).is_file():
        raise UserError("no such file: {path}.", path=wish.insert_op_conf)
    options = options_for(graph, wish)
    problems = check_command(AtcCommand(options), graph, Path())
    for line in _lines(problems, ""):
        talk(line)
    if _worst(problems):
        return FINDINGS
    text = written(options)
    if write is None:
        print(text)
    else:
        write_aside(write, f"#!/bin/bash\nset -e\n{text}\n".encode())
        print(translate("{path} holds the command. It was not run: ATC is part of CANN.", path=write))
    return CLEAN


def check(given: str, model: Path | None) -> int:
    """Check the commands in a file, or one that is given as text; the exit code."""
    from npuport.cli.shared import CLEAN, FINDINGS
    from npuport.export.atc.checking import check_command
    from npuport.export.atc.command import commands_in
    from npuport.export.onnx_graph import read_graph

    place = Path(given)
    is_file = "\n" not in given and len(given) < 4096 and place.is_file()
    if is_file:
        try:
            text = place.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UserError("{path} cannot be read: {reason}.", path=place, reason=error.strerror) from error
    else:
        text = given
    commands = commands_in(text, markdown=is_file and place.suffix.lower() in (".md", ".markdown"))
    if not commands:
        raise UserError(
            '{given} is neither a file with a call of atc nor such a call, as "atc --model=… --framework=5 …".',
            given=given if len(given) < 200 else given[:200] + "…",
        )
    folder = place.parent if is_file else Path()
    graph = read_graph(model) if model is not None else None
    worst = False
    for command in commands:
        problems = check_command(command, graph or _own_model(command, folder), folder)
        name = f"{given}:{command.line}" if is_file else "atc"
        print("\n".join(_lines(problems, f"{name}: ")) or f"{name}: " + translate("nothing to report"))
        worst = worst or _worst(problems)
    return FINDINGS if worst else CLEAN


def _own_model(command: AtcCommand, folder: Path) -> Graph | None:
    """The command's ONNX model where it is there and onnx is installed."""
    from importlib.util import find_spec

    from npuport.export.onnx_graph import read_graph

    path = folder / command.get("model")
    if path.suffix != ".onnx" or not path.is_file() or find_spec("onnx") is None:
        return None
    return read_graph(path)


def _worst(problems: Sequence[Problem]) -> bool:
    return any(one.severity is Severity.ERROR for one in problems)


def _lines(problems: Sequence[Problem], before: str) -> Iterator[str]:
    words = {
        Severity.ERROR: translate("error"),
        Severity.WARNING: translate("warning"),
        Severity.ADVICE: translate("advice"),
    }
    for one in problems:
        code = f" {one.code}" if one.code else ""
        sentence = translate(one.sentence.template, **one.sentence.values)
        basis = f"  [{one.basis}]" if one.basis is not None else ""
        yield f"{before}{words[one.severity]}{code}: {sentence}{basis}"
