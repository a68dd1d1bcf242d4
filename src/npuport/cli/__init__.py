"""The command line. Only this package prints or reads argv."""

from __future__ import annotations


def main() -> None:
    """Run `npuport`; ends the process with 0 (nothing to report), 1 (findings), 2 (misuse or unreadable input)."""
    import gc
    import sys

    from npuport.cli.shared import guard

    # Paths that are not UTF-8, and characters that the terminal lacks, are shown escaped rather than end the command.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with guard():
            from npuport.cli.app import app

            app(prog_name="npuport")
    finally:
        gc.freeze()  # Python would look through all of a large tree once more before it ends
