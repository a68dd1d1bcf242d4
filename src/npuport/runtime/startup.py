"""The migration in a Python process that a run starts, before its first line. Imports no torch."""

from __future__ import annotations

import os
import sys

from npuport.errors import UserError
from npuport.runtime import activation, choice, notes, scripts, variables


def install() -> None:
    """Convert what this process runs, its main script included; does nothing where no NPU is wanted."""
    try:
        if not choice.wants_npu():
            return
    except UserError as error:
        print(f"npuport: {error}", file=sys.stderr)
        return
    notes.note("process", command=sys.orig_argv)
    for line in variables.hand_on(os.environ):
        print(f"npuport: {line}", file=sys.stderr)
        notes.note("variable", text=line)
    activation.activate()
    scripts.expect_main(sys.argv[0])
