"""The names of entries in a dump of msprobe.

An API call is ``Type.api.number.forward`` (or ``backward``), a module call ``Module.path.Class.forward.number``, the
gradients of a module's parameters ``Module.path.Class.parameters_grad``: mindstudio-probe 8.3.3 to 26.2.0 alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_API = re.compile(r"(?P<type>[A-Za-z_]\w*)\.(?P<api>.+)\.(?P<number>\d+)\.(?P<way>forward|backward)$")
_MODULE = re.compile(
    r"(?:Module|Cell)\.(?:(?P<path>.+)\.)?(?P<kind>[^.]+)\.(?P<way>forward|backward|parameters_grad)(?:\.(?P<number>\d+))?$"
)


@dataclass(frozen=True, slots=True)
class ApiName:
    """Such as Functional.linear.3.forward."""

    type: str
    api: str
    number: int
    way: str  # "forward" or "backward"

    @property
    def without_way(self) -> str:
        return f"{self.type}.{self.api}.{self.number}"


@dataclass(frozen=True, slots=True)
class ModuleName:
    """Such as Module.layers.0.mlp.Linear.forward.3."""

    path: str
    kind: str  # the name of the class
    way: str  # "forward", "backward" or "parameters_grad"
    number: int


def parsed(name: str) -> ApiName | ModuleName | None:
    """What a name says; None for names of another form, such as those of debug.json."""
    module = _MODULE.match(name)
    if module is not None:
        return ModuleName(module["path"] or "", module["kind"], module["way"], int(module["number"] or 0))
    api = _API.match(name)
    if api is not None:
        return ApiName(api["type"], api["api"], int(api["number"]), api["way"])
    return None
