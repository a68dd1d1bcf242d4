"""A CUDA job's shell script as one for NPUs: its launch commands, Slurm's resources, CANN's environment at its head."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from npuport.environment.launch.launchers import Context, launch_of
from npuport.findings import Edit, Sentence, say
from npuport.source.edit import apply
from npuport.source.shell import Assignment, Command, Script, Word, read_script

_SLURM = re.compile(r"^#SBATCH[ \t]+(?P<option>--?[\w-]+)(?:[= \t]+(?P<value>\S+))?", re.MULTILINE)
_HEAD = re.compile(
    r"\A(?:#![^\n]*\n)?(?:(?:[ \t]*(?:#(?!!)[^\n]*)?\n)*[ \t]*#SBATCH[^\n]*\n)?"
    r"(?:[ \t]*#(?!!)[^\n]*\n)*(?:set -[^\n]*\n)*"
)
_GPUS = {"--gres", "--gpus", "--gpus-per-node", "-G"}

CANN = """\
# CANN's environment, unless it is set already.
if [ -z "${ASCEND_HOME_PATH:-}" ]; then
  for cann in /usr/local/Ascend/cann /usr/local/Ascend/ascend-toolkit; do
    if [ -f "$cann/set_env.sh" ]; then
      # shellcheck disable=SC1091
      . "$cann/set_env.sh"
      break
    fi
  done
fi
"""
SEVERAL_MACHINES = """\
# Seconds to wait for the other machines to connect: 120 by default, and the first step may take longer.
export HCCL_CONNECT_TIMEOUT="${HCCL_CONNECT_TIMEOUT:-600}"
"""


@dataclass(frozen=True)
class Note:
    """Something that a person should know about a line of the script; line 0 for the script as a whole."""

    line: int
    text: Sentence


@dataclass(frozen=True)
class Converted:
    """The script for NPUs, and the notes, located in the text that was given."""

    text: str
    notes: tuple[Note, ...]
    launches: int


def convert_script(text: str) -> Converted:
    """Turn the launch commands of a shell script into what starts the same job on NPUs.

    Everything else stays as it is, byte for byte. Environment variables are not looked at: the rules for scripts
    convert them.
    """
    script = read_script(text)
    edits: list[Edit] = []
    notes: list[Note] = []
    nodes: list[int] = []
    context = _context(text)
    slurm_processes: int | None = None
    for command in script.commands:
        launch = launch_of(command, context)
        if launch is None:
            continue
        nodes.append(launch.nodes)
        notes += [Note(command.line, note) for note in launch.notes]
        slurm_processes = launch.per_node or slurm_processes
        if launch.before:
            before = "".join(f"{line}\n{_indent(text, command.statement)}" for line in launch.before)
            edits.append(Edit(command.statement, command.statement, before))
        edits += _edits(command, launch.words)
    edits += _of_slurm(text, slurm_processes)
    starts_a_job = bool(nodes) or starts_python(script)
    if starts_a_job and "set_env.sh" not in text:
        edits.append(_at_head(text, [CANN, *([SEVERAL_MACHINES] if _several(nodes, text) else [])]))
    if not starts_a_job:
        notes.append(Note(0, say("no command that starts a job was found: the script is unchanged")))
    return Converted(apply(text, sorted(edits)), tuple(notes), len(nodes))


def _context(text: str) -> Context:
    options = {match["option"]: match["value"] or "" for match in _SLURM.finditer(text)}
    nodes = options.get("--nodes", options.get("-N", ""))
    tasks = options.get("--ntasks-per-node", "")
    return Context(int(nodes) if nodes.isdigit() else None, int(tasks) if tasks.isdigit() else None)


def _of_slurm(text: str, processes: int | None) -> Iterator[Edit]:
    """GPUs become NPUs in the head of a Slurm script; torchrun starts the processes of a machine where Slurm did."""
    for match in _SLURM.finditer(text):
        value = match["value"] or ""
        count = re.search(r"(?:^|gpu(?::[\w-]+)?:)(\d+)$", value)
        if match["option"] in _GPUS and count is not None:
            yield Edit(match.start("option"), match.end(), f"--gres=npu:{count.group(1)}")
        elif match["option"] in {"--ntasks-per-node", "--ntasks", "-n"} and processes is not None:
            yield Edit(match.start("option"), match.end(), "--ntasks-per-node=1")


def starts_python(script: Script) -> bool:
    """Whether a script starts a Python program, by whatever launcher."""
    launchers = re.compile(r"(?:.*/)?(python[\d.]*|torchrun|deepspeed|accelerate|ray|lightning)$")
    return any(launchers.match(word.text) for command in script.commands for word in command.words[:4])


def _several(nodes: list[int], text: str) -> bool:
    """Whether the job may have more than one machine."""
    return any(count != 1 for count in nodes) and "HCCL_CONNECT_TIMEOUT" not in text


def _at_head(text: str, blocks: list[str]) -> Edit:
    """The blocks after the shebang, the comments at the beginning (Slurm's options are comments) and ``set -e``."""
    found = _HEAD.match(text)
    end = found.end() if found is not None else 0
    shebang = "" if text.startswith("#!") else "#!/usr/bin/env bash\n"
    after = "" if text[end : end + 1] == "\n" else "\n"
    if shebang and not text[:end]:
        return Edit(0, 0, shebang + "\n" + "\n".join(blocks) + after)
    return Edit(end, end, "\n" + "\n".join(blocks) + after)


def _indent(text: str, start: int) -> str:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line if not line.strip() else ""


def _edits(command: Command, words: Sequence[str]) -> Iterator[Edit]:
    """Edits that give a command other words; the layout of those that stay, with lines continued, stays too."""
    old: list[Assignment | Word] = sorted((*command.assignments, *command.words), key=lambda one: one.start)
    texts = [
        f"{one.name}={one.word.text if one.word else ''}" if isinstance(one, Assignment) else one.text for one in old
    ]
    for what, first, last, new_first, new_last in SequenceMatcher(None, texts, words, autojunk=False).get_opcodes():
        new = " ".join(words[new_first:new_last])
        if what == "replace":
            yield Edit(old[first].start, old[last - 1].end, new)
        elif what == "delete":  # with the space before
            yield Edit(old[first - 1].end if first else old[first].start, old[last - 1].end, "")
        elif what == "insert":
            place = old[first - 1].end if first else command.start
            yield Edit(place, place, f" {new}" if first else f"{new} ")
