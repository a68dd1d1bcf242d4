"""What a model returns as a flat row of named tensors: the outputs of an ONNX graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch


class Flat(torch.nn.Module):
    """A model whose inputs are positional and whose output is a tuple of tensors.

    ``keywords`` are the names under which the model takes its inputs; None where it takes them by position.
    """

    def __init__(self, model: torch.nn.Module, keywords: Sequence[str] | None) -> None:
        super().__init__()
        self.model = model
        self.keywords = keywords

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The tensors of what the model returns, in order."""
        return tuple(tensor for _, tensor in outputs_of(self.returned(tensors)))

    def returned(self, tensors: Sequence[torch.Tensor]) -> Any:
        """What the model itself returns."""
        if self.keywords is None:
            return self.model(*tensors)
        return self.model(**dict(zip(self.keywords, tensors, strict=True)))


def outputs_of(returned: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in what a model returned, named by keys and positions; a lone tensor is "output"."""
    if isinstance(returned, torch.Tensor):
        yield name or "output", returned
    elif isinstance(returned, Mapping):
        for key, value in returned.items():
            yield from outputs_of(value, f"{name}_{key}" if name else str(key))
    elif isinstance(returned, Sequence) and not isinstance(returned, str):
        for index, value in enumerate(returned):
            yield from outputs_of(value, f"{name or 'output'}_{index}")
