"""Import modules one after another in this process, and write how each import ended. Started by convert_packages.py.

    python tools/import_walk.py FOLDER RESULTS [--stand-in NAME ...] [--absent NAME ...] [--torch] < MODULES

FOLDER is searched first. RESULTS gets one line of JSON for each module: its name, the error ("" for none), its names.
A process that dies at a module leaves that module's line out, and can be started again with the modules behind it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import signal
import sys
import types
from collections.abc import Sequence
from pathlib import Path

SECONDS = 120  # for one module; some scripts among the modules start work when they are imported


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that would have to be compiled, such as ``mmcv._ext``: every name in them is a class without members."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name in self.names else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: type(name, (), {})  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def define_missing_operators() -> None:
    """torchvision's wheels for CUDA define no operators beside a torch without CUDA, yet import this one's name."""
    import torch

    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _LIBRARIES.append(library)


_LIBRARIES: list[object] = []


def allow_older_dataclasses() -> None:
    """Since Python 3.11 a dataclass that compares by value may be no default; fairseq's were written before."""
    import dataclasses

    actions = dataclasses._hash_action  # type: ignore[attr-defined]
    actions[(False, True, False, False)] = None  # keep the hash that every object has


def outcome(name: str) -> dict[str, object]:
    """How importing ``name`` ends; whatever it raises, SystemExit of a script included, is its outcome."""
    signal.alarm(SECONDS)
    try:
        module = importlib.import_module(name)
        names, error = sorted(vars(module)), ""
    except BaseException as problem:
        names, error = [], f"{type(problem).__name__}: {problem}"
    finally:
        signal.alarm(0)
    return {"module": name, "error": error, "names": names}


def _too_long(_signal: int, _frame: object) -> None:
    raise TimeoutError(f"not imported after {SECONDS} s")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--stand-in", nargs="*", default=(), metavar="NAME")
    parser.add_argument("--absent", nargs="*", default=(), metavar="NAME", help="modules that count as not installed")
    parser.add_argument(
        "--torch", action="store_true", help="import torch first, and help what is too old or incomplete"
    )
    options = parser.parse_args(argv)
    modules = sys.stdin.read().split()
    sys.path[0] = str(options.folder)
    sys.argv = ["import_walk"]  # scripts among the modules read the command line
    for name in options.absent:
        sys.modules[name] = None  # type: ignore[assignment]  # the import system's own way to say so
    sys.meta_path.insert(0, StandIns(options.stand_in))
    if options.torch:
        define_missing_operators()
        allow_older_dataclasses()
    signal.signal(signal.SIGALRM, _too_long)
    with options.results.open("a", encoding="utf-8") as stream:
        for name in modules:
            print(json.dumps(outcome(name)), file=stream, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
