"""`npuport undo`: take a conversion in place back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def undo(
    path: Annotated[Path, typer.Argument(metavar="DIR", help="The directory that was converted in place.")] = Path(),
) -> None:
    """Give the files that `npuport convert --in-place` changed their old text again.

    All of them or none: a file that has changed since the conversion stops it.
    """
    from npuport.conversion.undo import undo as take_back
    from npuport.report.language import counted, translate

    undone = take_back(path)
    for name in undone.paths:
        print(name)
    print(translate("{files} as before the conversion", files=counted(len(undone.paths), "file")))
