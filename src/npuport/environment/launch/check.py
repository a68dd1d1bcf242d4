"""What is wrong with a launcher for NPUs: commands that start no NPU job, variables that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npuport.environment.launch.launchers import HCCL_PORTS, Context, launch_of
from npuport.environment.launch.script import Note, starts_python
from npuport.facts import variable
from npuport.findings import say
from npuport.source.shell import Script, read_script

_PORT = re.compile(r"(?:master[-_]port|MASTER_PORT)[= ]+[\"']?(\d+)")


def check_script(text: str) -> tuple[Note, ...]:
    """Notes on a launcher, in the order of its lines."""
    script = read_script(text)
    notes = [
        *_commands(script),
        *_variables(script),
        *_ports(text),
        *_environment(script),
    ]
    return tuple(sorted(notes, key=lambda note: note.line))


def _commands(script: Script) -> Iterator[Note]:
    for command in script.commands:
        launch = launch_of(command, Context())
        if launch is not None and launch.text.split() != script.text[command.start : command.end].split():
            yield Note(command.line, say("start it so: {command}", command=launch.text))
        names = {word.text for word in command.words}
        if "torchrun" in names and "RANK_TABLE_FILE" in script.variables:
            yield Note(
                command.line, say("torchrun needs no rank table: unset RANK_TABLE_FILE, or be sure that it is right")
            )
    background = any(command.in_loop for command in script.commands) and re.search(r"&[ \t]*\n", script.text)
    if background and not any(command.name == "wait" for command in script.commands):
        yield Note(
            0, say("processes are started in the background, and nothing waits for them: end the script with `wait`")
        )


def _variables(script: Script) -> Iterator[Note]:
    for assignment in script.assignments:
        line = script.text.count("\n", 0, assignment.start) + 1
        known = variable(assignment.name)
        if known is not None and known.status == "renamed" and known.counterpart:
            yield Note(
                line, say("{name} is not read: set {counterpart}", name=known.name, counterpart=known.counterpart)
            )
        elif known is not None and known.status == "no-counterpart":
            yield Note(line, say("{name} is read by nothing on an Ascend machine", name=known.name))
        if assignment.name == "ASCEND_RT_VISIBLE_DEVICES" and assignment.value is not None:
            yield from _visible_devices(assignment.value, line, script)


def _visible_devices(value: str, line: int, script: Script) -> Iterator[Note]:
    numbers = [int(part) for part in value.split(",") if part.strip().isdigit()]
    if numbers != sorted(set(numbers)):
        yield Note(
            line, say("ASCEND_RT_VISIBLE_DEVICES wants different numbers in ascending order: {value}", value=value)
        )
    processes = re.search(r"nproc[-_]per[-_]node[= ]+(\d+)", script.text)
    if processes is not None and numbers and int(processes.group(1)) > len(numbers):
        yield Note(
            line,
            say("{processes} processes on a machine, but {devices} devices are visible", processes=processes.group(1),
                devices=len(numbers)),
        )  # fmt: skip


def _ports(text: str) -> Iterator[Note]:
    for match in _PORT.finditer(text):
        if int(match.group(1)) in HCCL_PORTS:
            line = text.count("\n", 0, match.start()) + 1
            yield Note(
                line, say("port {port} is one that HCCL listens on by default: choose another", port=match.group(1))
            )


def _environment(script: Script) -> Iterator[Note]:
    if starts_python(script) and "set_env.sh" not in script.text and "ASCEND_HOME_PATH" not in script.text:
        yield Note(
            0, say("nothing sets CANN's environment: source its set_env.sh, unless the shell that starts this did")
        )
