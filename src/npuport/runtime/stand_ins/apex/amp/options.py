"""The levels of mixed precision and what may be changed of each. Source: Apex's document "apex.amp", opt_levels."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch


@dataclass
class Properties:
    """The options of a level, after the user's changes."""

    enabled: bool = False
    opt_level: str | None = None
    cast_model_type: torch.dtype | None = None
    patch_torch_functions: bool = False
    keep_batchnorm_fp32: bool | None = None
    master_weights: bool | None = None
    loss_scale: float | str = 1.0

    @property
    def options(self) -> dict[str, Any]:
        """All of them by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


_LEVELS = {
    "O0": Properties(True, "O0", torch.float32, False, None, False, 1.0),
    "O1": Properties(True, "O1", None, True, None, None, "dynamic"),
    "O2": Properties(True, "O2", torch.float16, False, True, True, "dynamic"),
    "O3": Properties(True, "O3", torch.float16, False, False, False, 1.0),
}


def choose(opt_level: str, **changes: Any) -> Properties:
    """The options of ``opt_level`` with those of ``changes`` that are not None.

    Raises:
        RuntimeError: for a level, a value or a combination that Apex refuses.
    """
    if opt_level not in _LEVELS:
        raise RuntimeError(
            f"Unexpected optimization level {opt_level}. Options are 'O0', 'O1', 'O2', 'O3'. "
            "Note that in `O0`, `O1`, etc., the prefix O is the letter O, not the number zero."
        )
    chosen = Properties(**_LEVELS[opt_level].options)
    for name, value in changes.items():
        if value is not None:
            setattr(chosen, name, _checked(opt_level, name, value))
    return chosen


def _checked(opt_level: str, name: str, value: Any) -> Any:
    if opt_level == "O1" and name in {"cast_model_type", "keep_batchnorm_fp32", "master_weights"}:
        if not (name == "cast_model_type" and value in (False, torch.float32)):
            raise RuntimeError(
                f"With opt_level O1, weights stay float32 and functions cast their inputs, so that {name} must be None:"
                " use opt_level O2 to cast the model"
            )
        return None
    if name == "patch_torch_functions" and value and opt_level != "O1":
        raise RuntimeError("patch_torch_functions=True is what opt_level O1 means")
    if name == "keep_batchnorm_fp32":
        if value not in (True, False, "True", "False"):
            raise RuntimeError(f"keep_batchnorm_fp32 must be a boolean or 'True' or 'False', not {value!r}")
        return value in (True, "True")
    if name == "loss_scale" and value != "dynamic":
        return float(value)
    return value
