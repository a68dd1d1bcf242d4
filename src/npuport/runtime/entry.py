"""The script itself: it is running already when it imports npuport, so it is run once more, converted."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import NoReturn

from npuport.errors import UserError
from npuport.runtime import scripts
from npuport.runtime.activation import activate, is_active
from npuport.runtime.choice import wants_usable_npu, without_npu
from npuport.runtime.importer import is_own


def take_over() -> None:
    """Run the importing script converted in place of the rest of it; does nothing where no NPU is wanted."""
    if not _activated():
        return
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file and file.endswith(".py") and is_own(file) and not scripts.is_converted(main) and _is_starting(main):
        scripts.run_main(Path(file).absolute(), main.__dict__)
        raise SystemExit(0)


def run_command_line() -> NoReturn:
    """``python -m npuport.auto script.py …``: as ``python script.py …``, converted where an NPU is wanted."""
    if len(sys.argv) < 2:
        print("usage: python -m npuport.auto SCRIPT.py [ARGUMENTS]", file=sys.stderr)
        raise SystemExit(2)
    del sys.argv[0]
    script = Path(sys.argv[0]).absolute()
    if not script.is_file():
        print(f"npuport: there is no script {sys.argv[0]}", file=sys.stderr)
        raise SystemExit(2)
    main = types.ModuleType("__main__")
    main.__file__ = os.fspath(script)
    sys.modules["__main__"] = main
    sys.path[0] = os.fspath(script.parent)
    if _activated():
        scripts.run_main(script, main.__dict__)
    else:
        exec(compile(script.read_bytes(), os.fspath(script), "exec"), main.__dict__)
    raise SystemExit(0)


def _activated() -> bool:
    """Whether code is converted from now on: whoever started this process may have seen to it."""
    if is_active():
        return True
    try:
        wanted = wants_usable_npu()
        os.environ.update(without_npu())
    except UserError as error:
        print(f"npuport: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    if wanted:
        activate()
    return wanted


def _is_starting(main: types.ModuleType) -> bool:
    """Whether the main script is at its import of npuport.auto, rather than somebody importing it much later."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals is not main.__dict__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "<module>"
