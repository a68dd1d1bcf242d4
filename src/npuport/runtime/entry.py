"""The script itself: it is running already when it imports npuport, so it is run once more, converted."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any, NoReturn

from npuport.errors import UserError
from npuport.runtime import importer
from npuport.runtime.activation import SCRIPT, activate
from npuport.runtime.choice import wants_npu


def take_over() -> None:
    """Run the importing script converted in place of the rest of it; does nothing where no NPU is wanted."""
    if SCRIPT in os.environ and _main_name() == "__mp_main__":
        return  # npuport.runtime.spawned loads the script
    if not _wanted():
        return
    activate()
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if file and file.endswith(".py") and _is_starting(main):
        _run(Path(file).absolute(), main.__dict__)


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
    if _wanted():
        activate()
        _run(script, main.__dict__)
    exec(compile(script.read_bytes(), os.fspath(script), "exec"), main.__dict__)
    raise SystemExit(0)


def _wanted() -> bool:
    try:
        return wants_npu()
    except UserError as error:
        print(f"npuport: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _run(script: Path, namespace: dict[str, Any]) -> NoReturn:
    """Execute the converted script as the main module and end the process as the script ends.

    Converted code keeps its line numbers, so the user's own file explains every traceback; the frames between Python
    and the script are taken out of it.
    """
    os.environ[SCRIPT] = os.fspath(script)
    code = importer.converted_code(script, script.parent)
    sys.excepthook = _without_our_frames(sys.excepthook)
    exec(code, namespace)
    raise SystemExit(0)


def _is_starting(main: types.ModuleType) -> bool:
    """Whether the main script is at its import of npuport.auto, rather than somebody importing it much later."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals is not main.__dict__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "<module>"


def _main_name() -> str:
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "__mp_main__":
            return "__mp_main__"
        frame = frame.f_back
    return "__main__"


def _without_our_frames(hook: Any) -> Any:
    def excepthook(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        inner = trace
        while inner is not None and inner.tb_frame.f_code is not _run.__code__:
            inner = inner.tb_next
        if inner is not None and inner.tb_next is not None:
            trace = inner.tb_next
            error.__traceback__ = trace  # which Python prints, whatever it is given
        hook(kind, error, trace)

    return excepthook
