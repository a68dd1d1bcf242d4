"""What this Python has, found without importing it."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def spec_of(name: str) -> ModuleSpec | None:
    """Where ``import name`` would find the package. As importlib.util has it, which takes longer to load."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return loaded.__spec__
    # Those before it may act on what they are asked for, as the simulation does; most packages lie on the path.
    for finder in (PathFinder, *sys.meta_path):
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, None) if find is not None else None
        if spec is not None:
            return spec
    return None


def torch_says(name: str) -> str | None:
    """A value of torch.version, such as ``cuda``; None for None, and without torch."""
    torch = spec_of("torch")
    if torch is None or torch.origin is None:
        return None
    try:
        with open(os.path.join(os.path.dirname(torch.origin), "version.py"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in lines:
        left, _, right = line.partition("=")
        if left.partition(":")[0].strip() == name and not right.startswith("="):
            value = right.strip().strip("'\"")
            return None if value == "None" else value
    return None
