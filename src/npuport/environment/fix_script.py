"""What repairs a machine, as lines of shell to read and then to source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from npuport import __version__
from npuport.findings import Diagnosis

# Needs a name that only the reader knows, another machine's rights, or the host of a container.
_FOR_A_PERSON = re.compile(r"…|\b(?:ADDRESS|MASK|NETWORK)\b|^(?:sudo|docker|dmesg|lsmod|ss|grep) |^npuport ")


def fix_script(diagnoses: Sequence[Diagnosis]) -> str:
    """The commands of all diagnoses, each below what it repairs; what a person has to complete is a comment."""
    return "\n".join(_lines(diagnoses)) + "\n"


def _lines(diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
    yield "#!/usr/bin/env bash"
    yield f"# Written by npuport {__version__}. Read it, then source it in the shell that trains: . ./fix.sh"
    yield "# Lines with sudo, docker or a name that you have to fill in are comments."
    given: set[str] = set()
    for one in diagnoses:
        commands = [command for command in one.commands if command not in given]
        given.update(commands)
        if not commands:
            continue
        yield ""
        yield from (f"# {line}" for line in f"{one.code} {one.seen}\n{one.fix}".splitlines())
        for command in commands:
            if _FOR_A_PERSON.search(command):
                yield f"# {command}"
                continue
            if command.startswith("source "):
                yield "# shellcheck source=/dev/null"
            yield command
