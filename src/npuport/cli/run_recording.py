"""What `npuport run --dump` sets, so that every Python process of the run records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from npuport.errors import UserError


def record(folder: Path, what: str, steps: str | None, ranks: str, when: str, scope: Mapping[str, str]) -> None:
    """Have every Python process of the run record; ``scope`` has patterns that commas separate."""
    from npuport.cli.shared import talk
    from npuport.precision.operators.options import Options
    from npuport.precision.operators.scope import Scope
    from npuport.precision.operators.starting import OPTIONS
    from npuport.report.language import translate
    from npuport.search_path import STARTUP, first

    patterns = {name: tuple(one for one in text.split(",") if one) for name, text in scope.items()}
    if steps is None:
        steps = "" if when else "0"
    options = Options(folder.resolve(), what, steps, ranks, when, Scope(**patterns))
    if any(folder.glob("step*/rank*.pt")):
        raise UserError("{path} holds recorded steps already: choose another folder, or remove them.", path=folder)
    os.environ.update({OPTIONS: options.dumped(), "PYTHONPATH": first(STARTUP, "PYTHONPATH")})
    if what == "tensors":
        talk(
            "npuport: "
            + translate(
                "what the recorded steps compute is copied to host memory and to {path}: several times the memory of a "
                "step, which takes a few times as long; the size of the first one is said when it is written.",
                path=folder,
            )
        )
