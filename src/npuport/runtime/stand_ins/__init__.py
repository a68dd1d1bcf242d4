"""Importable stand-ins for CUDA libraries that an NPU has an equivalent for, under the libraries' own names.

A library that is installed is never hidden. ``NPUPORT_STAND_INS`` names those that are wanted, separated by commas,
instead of all; ``none`` wants none.
"""

from __future__ import annotations

import os

from npuport.runtime import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

VARIABLE = "NPUPORT_STAND_INS"
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
NAMES = frozenset({"amp_C", "apex", "flash_attn", "pynvml", "xformers"})


def wanted() -> frozenset[str]:
    """The stand-ins that may be imported."""
    chosen = os.environ.get(VARIABLE)
    return NAMES if chosen is None else NAMES & {name.strip() for name in chosen.split(",")}


class StandInFinder:
    """The last finder: asked where nobody else has the module."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: types.ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        package, *inner = fullname.split(".")
        if package not in wanted():
            return None
        if not inner:
            notes.note("stand-in", name=package)
        import importlib.util
        from pathlib import Path

        place = Path(_HERE, package, *inner)
        if place.is_dir():
            return importlib.util.spec_from_file_location(
                fullname, place / "__init__.py", submodule_search_locations=[os.fspath(place)]
            )
        file = place.with_suffix(".py")
        if file.is_file():
            return importlib.util.spec_from_file_location(fullname, file)
        if inner:
            raise ModuleNotFoundError(
                f"npuport's stand-in for {package} has no {fullname}: that part has no equivalent on an NPU yet",
                name=fullname,
            )
        return None
