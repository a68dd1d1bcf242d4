"""Operators without a reference kernel: one clear error that names the operator, never zeros."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn


class NoReferenceError(NotImplementedError):
    """The simulated NPU has no reference for an operator, or for this use of it (`detail`)."""

    def __init__(self, operator: str, detail: str = "") -> None:
        self.operator = operator
        use = f" ({detail})" if detail else ""
        super().__init__(
            f"simulated NPU: no reference for {operator}{use}; a real NPU may run it. Next step: write this call with "
            "the plain PyTorch operators it stands for, or ask for a reference in an issue that names the operator."
        )


def refuse_uses(operator: str, arguments: Mapping[str, Any], known: Collection[str] = ()) -> None:
    """Raise NoReferenceError naming the arguments that are set (not None, 0, False or empty) and not `known`."""
    extra = sorted(name for name, value in arguments.items() if name not in known and _is_set(value))
    if extra:
        raise NoReferenceError(operator, ", ".join(extra))


def _is_set(value: Any) -> bool:
    return value is not None if hasattr(value, "dtype") else bool(value)


def refuse(operator: str) -> Callable[..., NoReturn]:
    """A kernel that raises NoReferenceError for `operator`."""

    def kernel(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise NoReferenceError(operator)

    return kernel
