"""What `npuport precision convert-dump` does."""

from __future__ import annotations

from pathlib import Path

from npuport.cli.shared import talk


def convert_dump(recorded: Path, output: Path) -> None:
    """Write each recorded step in msprobe's layout."""
    from npuport.errors import UserError
    from npuport.precision.dumps import recorded_steps
    from npuport.precision.msprobe.writing import write_dump
    from npuport.precision.operators.calls import read_step

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError("{path} holds files already: choose another folder, or remove them.", path=output)
    files = [recorded] if recorded.is_file() else recorded_steps(recorded).values()
    for file in files:
        talk(f"{write_dump(read_step(file), output)}")
