"""Making every Python process of a run compute the same bits again. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from npuport.after_import import after_import

SEED, NO_DROPOUT, STRICT = "NPUPORT_DETERMINISTIC", "NPUPORT_NO_DROPOUT", "NPUPORT_DETERMINISTIC_STRICT"
"""Variables: the seed; "1" where dropout is off; "1" where an operator without a deterministic form is an error."""

_DROPOUTS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)


def variables(seed: int, no_dropout: bool, strict: bool) -> dict[str, str]:
    """What the environment of the run needs, beside what the user has set already for the same purpose."""
    from npuport.facts import all_determinism_variables

    wanted = {one.name: one.value for one in all_determinism_variables()}
    wanted["PYTHONHASHSEED"] = str(seed % 2**32)
    kept = {name: os.environ[name] for name in ("CUBLAS_WORKSPACE_CONFIG", "HCCL_DETERMINISTIC") if _is_set(name)}
    return {**wanted, **kept, SEED: str(seed), NO_DROPOUT: "1" if no_dropout else "", STRICT: "1" if strict else ""}


def _is_set(name: str) -> bool:
    """Whether the user chose another deterministic form of a variable."""
    accepted = {"CUBLAS_WORKSPACE_CONFIG": (":16:8", ":4096:8"), "HCCL_DETERMINISTIC": ("true", "strict")}
    return os.environ.get(name, "").lower() in accepted[name]


def follow_imports() -> None:
    """Set everything when the modules that it concerns have been imported. Twice is the same as once."""
    import random

    random.seed(_seed())
    after_import("numpy", _set_numpy)
    after_import("torch", _set_torch)
    after_import("torch_npu", _set_torch_npu)


def _seed(environment: Mapping[str, str] = os.environ) -> int:
    return int(environment[SEED])


def _set_numpy() -> None:
    import numpy as np

    np.random.seed(_seed() % 2**32)


def _set_torch() -> None:
    import torch

    torch.manual_seed(_seed())
    torch.use_deterministic_algorithms(True, warn_only=not os.environ.get(STRICT))
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if os.environ.get(NO_DROPOUT):
        switch_dropout_off()


def _set_torch_npu() -> None:
    import torch

    # Imported after torch was seeded, the device's generators are not.
    if hasattr(torch, "npu"):
        torch.npu.manual_seed_all(_seed())


def switch_dropout_off() -> None:
    """Make what PyTorch calls dropout hand its input on, in training too.

    This covers torch.nn.functional's dropout functions, with all modules that call them, scaled_dot_product_attention
    and recurrent layers; not torch.dropout, fused attention with a keep_prob, nor random masks that a model makes by
    itself (stochastic depth).
    """
    from torch.nn import functional
    from torch.nn.modules.rnn import RNNBase

    for name in _DROPOUTS:
        setattr(functional, name, _hands_on(getattr(functional, name)))
    attention = _without_dropout(functional.scaled_dot_product_attention)
    setattr(functional, "scaled_dot_product_attention", attention)  # noqa: B010
    made = RNNBase.__init__

    def init(self: RNNBase, *arguments: object, **keywords: object) -> None:
        made(self, *arguments, **keywords)
        self.dropout = 0.0

    RNNBase.__init__ = init


def _hands_on(inner: Callable[..., object]) -> Callable[..., object]:
    import functools

    @functools.wraps(inner)
    def dropout(input: object, *_arguments: object, **_keywords: object) -> object:
        return input

    return dropout


def _without_dropout(inner: Callable[..., object]) -> Callable[..., object]:
    def scaled_dot_product_attention(
        query: object,
        key: object,
        value: object,
        attn_mask: object = None,
        dropout_p: float = 0.0,  # noqa: ARG001
        is_causal: bool = False,
        **keywords: object,
    ) -> object:
        return inner(query, key, value, attn_mask=attn_mask, is_causal=is_causal, **keywords)

    return scaled_dot_product_attention
