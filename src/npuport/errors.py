"""Errors that a user can repair, worded so that the command line can say them in the user's language."""

from __future__ import annotations


class UserError(Exception):
    """Something outside npuport is wrong: a path, an option, a permission. The message names it and the next step.

    ``template`` is the English sentence with ``{placeholders}``; it is also the key under which a translation is found.
    """

    def __init__(self, template: str, **values: object) -> None:
        super().__init__(template.format(**values))
        self.template = template
        self.values = values

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _rebuild, (type(self), self.template, self.values)


def first_line(error: BaseException) -> str:
    """What an error of a library says, for a sentence of ours: its first line, or its class where it says nothing."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _rebuild(kind: type[UserError], template: str, values: dict[str, object]) -> UserError:
    return kind(template, **values)
