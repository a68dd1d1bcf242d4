"""`npuport launch`: a job's launcher for NPUs, from the CUDA one or from a description."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npuport.cli.shared import CLEAN, FINDINGS, talk, write_aside
from npuport.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuport.environment.launch.script import Note
    from npuport.source.files import SourceFile


def launch(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT | -- PROGRAM ARGS…",
            help="The shell script that starts the job on GPUs; or, with --devices, the program and its arguments.",
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT", help="Write the script here; with --devices, a folder."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what is wrong with a launcher for NPUs; change nothing.")
    ] = False,
    nodes: Annotated[int, typer.Option("--nodes", min=1, metavar="N", help="Machines.")] = 1,
    devices: Annotated[
        int | None, typer.Option("--devices", min=1, metavar="N", help="NPUs on each machine.", show_default=False)
    ] = None,
    master_address: Annotated[
        str, typer.Option("--master-addr", metavar="A", help="The address of the first machine.")
    ] = "127.0.0.1",
    master_port: Annotated[int, typer.Option("--master-port", metavar="P", help="A free port on it.")] = 29500,
    interface: Annotated[
        str, typer.Option("--interface", metavar="CARD", help="The network card between the machines, such as eth0.")
    ] = "",
    slurm: Annotated[bool, typer.Option("--slurm", help="Write a script for sbatch.")] = False,
    rank_table: Annotated[
        list[str] | None,
        typer.Option(
            "--rank-table",
            metavar="SERVER=HCCN_CONF",
            help="Write a rank table from a copy of each machine's /etc/hccn.conf. torchrun needs none.",
            show_default=False,
        ),
    ] = None,
    chip: Annotated[str, typer.Option("--chip", metavar="C", help="The Ascend chip, for --rank-table.")] = (
        "Ascend910B3"
    ),
) -> None:
    """Turn the launcher of a CUDA job into one for NPUs, or make one from numbers.

    torch.distributed.launch, mpirun and srun become torchrun; torchrun, deepspeed and accelerate stay, with what an NPU
    needs; loops over GPUs stay loops. Variables are converted as `npuport convert --unsafe-fixes` does. What a person
    should know is said on stderr. A job is started by torchrun, Slurm or Ray, never by npuport.

    Exit codes: 0 done; 1 --check found something; 2 misuse or unreadable input.
    """
    words = arguments or []
    if rank_table:
        _rank_table(rank_table, chip, output)
    elif devices is not None:
        from npuport.environment.launch.description import Job, scripts_of

        job = Job(nodes, devices, tuple(words), master_address, master_port, interface)
        _write_scripts(scripts_of(job, slurm), output)
    elif len(words) != 1:
        raise UserError("give one script, or --devices N and the program after --.")
    elif check:
        raise SystemExit(_check(Path(words[0])))
    else:
        _convert(Path(words[0]), output)


def _read(path: Path) -> SourceFile:
    from npuport.source.files import read_tree
    from npuport.source.kinds import FileKind

    files = read_tree(path).files
    if len(files) != 1 or files[0].kind is not FileKind.SHELL:
        raise UserError("{path} is no shell script.", path=path)
    return files[0]


def _convert(path: Path, output: Path | None) -> None:
    """The launch commands first, then what the rules for scripts convert: variables, tools, images."""
    from dataclasses import replace

    from npuport.cli.shared import make_settings
    from npuport.conversion.rounds import convert_files
    from npuport.environment.launch.script import convert_script
    from npuport.facts import DEFAULT_CHIP

    file = _read(path)
    converted = convert_script(file.text)
    settings = make_settings("npu", "2.13.0", DEFAULT_CHIP)
    conversion = convert_files([replace(file, text=converted.text)], settings, unsafe=True, jobs=1)
    text = conversion.files[0].text
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_aside(output, file.encode(text))
        output.chmod(path.stat().st_mode & 0o777)
    _say(path, converted.notes)


def _check(path: Path) -> int:
    from npuport.environment.launch.check import check_script

    notes = check_script(_read(path).text)
    _say(path, notes)
    return FINDINGS if notes else CLEAN


def _say(path: Path, notes: Sequence[Note]) -> None:
    from npuport.report.language import translate

    for note in notes:
        where = f"{path}:{note.line}" if note.line else str(path)
        talk(f"{where}: {translate(note.text.template, **note.text.values)}")


def _write_scripts(files: dict[str, str], output: Path | None) -> None:
    from npuport.report.language import translate

    if output is None:
        for name, text in files.items():
            print(f"# ==== {name}")
            print(text)
        return
    for name in files:
        if (output / name).exists():
            raise UserError("{path} exists; npuport does not replace it.", path=output / name)
    for name, text in files.items():
        write_aside(output / name, text.encode())
        if name != "env.sh":
            (output / name).chmod(0o755)
    talk(translate("written to {folder}: {names}", folder=output, names=", ".join(files)))


def _rank_table(pairs: Sequence[str], chip_name: str, output: Path | None) -> None:
    from npuport.environment.launch.rank_table import device_addresses, rank_table
    from npuport.facts import chip

    known = chip(chip_name)
    if known is None:
        raise UserError("unknown chip {chip}.", chip=chip_name)
    servers = {}
    for pair in pairs:
        server, equals, path = pair.partition("=")
        if not equals:
            raise UserError("--rank-table takes SERVER=HCCN_CONF, not {text}", text=pair)
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error
        servers[server] = device_addresses(text, path)
    table = json.dumps(rank_table(servers, known), indent=2) + "\n"
    if output is None:
        print(table, end="")
    else:
        write_aside(output, table.encode())
