"""Changes to modules that are in use, which can be taken back."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ABSENT = object()


class Patches:
    """Attributes that were replaced, and other changes, each with its way back."""

    def __init__(self) -> None:
        self._back: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a module or a class; an inherited one is hidden, not lost."""
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        self.do(lambda: delattr(owner, name) if before is _ABSENT else setattr(owner, name, before))

    def do(self, back: Callable[[], None]) -> None:
        """Remember how a change that was just made is taken back."""
        self._back.append(back)

    def take_back(self) -> None:
        """Take back every change, the last one first."""
        while self._back:
            self._back.pop()()
