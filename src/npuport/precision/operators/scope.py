"""Which calls of a run are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

PHASES = ("forward", "backward", "optimizer")


@dataclass(frozen=True)
class Scope:
    """The calls that are recorded; an empty part does not restrict.

    - ``modules``: patterns with ``*`` and ``?`` for the paths of modules; a module that matches counts with all inside
      of it.
    - ``operators``: patterns for names, such as "aten.mm" (with all its overloads) or "c10d.*".
    - ``phases``: "forward", "backward", "optimizer".
    """

    modules: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not (self.modules or self.operators or self.phases)

    def holds(self, operator: str, module: str, phase: str) -> bool:
        return (
            (not self.phases or phase in self.phases)
            and (not self.operators or _matches_operator(operator, self.operators))
            and (not self.modules or _matches_module(module, self.modules))
        )


def _matches_operator(operator: str, patterns: Sequence[str]) -> bool:
    names = operator, operator.rpartition(".")[0]
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _matches_module(module: str, patterns: Sequence[str]) -> bool:
    parts = module.split(".")
    above = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(fnmatchcase(path, pattern) for pattern in patterns for path in above)
