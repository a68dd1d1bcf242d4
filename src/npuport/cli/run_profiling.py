"""`npuport run --profile`: every Python process of the run that trains profiles some of its steps."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from npuport.cli.shared import talk
from npuport.errors import UserError
from npuport.performance.collecting.request import DETAILS, Request


def ask_for_profiles(folder: Path, steps: str, level: int, details: str, ranks: str) -> None:
    """Have the Python processes of the run profile their steps."""
    from npuport.search_path import STARTUP, first

    if has_profiles(folder):
        raise UserError("{path} holds profiles already: choose another folder, or remove them.", path=folder)
    request = asked("--profile-", folder, steps, level, details, ranks)
    os.environ.update({**request.variables(), "PYTHONPATH": first(STARTUP, "PYTHONPATH")})


def asked(prefix: str, folder: Path, steps: str, level: int, details: str, ranks: str = "") -> Request:
    """What options ask for, whose names begin with ``prefix``.

    Raises:
        UserError: a value is none that an option takes.
    """
    begin, end = _range(f"{prefix}steps", steps)
    chosen = tuple(one for one in details.replace(" ", "").split(",") if one and one != "nothing")
    unknown = ", ".join(sorted(set(chosen) - set(DETAILS)))
    if unknown:
        option = f"{prefix}with"
        raise UserError("{option} takes {known} or nothing, not {given}", option=option, known=", ".join(DETAILS),
                        given=unknown)  # fmt: skip
    return Request(folder, begin, end, level, chosen, tuple(_ranks(f"{prefix}ranks", ranks)))


def say_what_next(folder: Path) -> None:
    """Name the next step, or that nothing was profiled."""
    from npuport.report.language import translate

    if has_profiles(folder):
        talk("npuport: " + translate("next: npuport perf analyze {folder}", folder=shlex.quote(str(folder))))
    else:
        talk(
            "npuport: "
            + translate("nothing was profiled: steps are counted by the optimizer's, and the run had none or too few")
        )


def has_profiles(folder: Path) -> bool:
    """Whether a folder holds what ``npuport run --profile`` writes."""
    return any(folder.glob("*_ascend_pt")) or any(folder.glob("rank*.pt.trace.json.gz"))


def _range(option: str, text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise UserError("{option} takes a number or a range, such as 10 or 10-12, not {text}", option=option, text=text)
    return int(match[1]), int(match[2] or match[1])


def _ranks(option: str, text: str) -> Sequence[int]:
    ranges = [_range(option, one.strip()) for one in text.split(",") if one.strip()]
    return [rank for begin, end in ranges for rank in range(begin, end + 1)]
