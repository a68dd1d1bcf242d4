"""Operators without a reference kernel: one clear error that names the operator, never zeros."""

from __future__ import annotations

from collections.abc import Callable
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


def refuse(operator: str) -> Callable[..., NoReturn]:
    """A kernel that raises NoReferenceError for `operator`."""

    def kernel(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise NoReferenceError(operator)

    return kernel
