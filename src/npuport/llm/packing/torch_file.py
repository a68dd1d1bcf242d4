"""Samples as one file of tensors, for torch.load."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from npuport.errors import UserError
from npuport.llm.packing.samples import Samples

_FIELDS = ("input_ids", "labels", "position_ids", "sequence_ids", "shift_labels")


def write(batches: Iterable[Samples], path: Path) -> None:
    """Tensors [samples, length] of int64, and ``actual_seq_qlen`` and ``records`` as lists of one list a sample.

    Raises:
        UserError: torch is not installed.
    """
    torch = _torch()
    every = list(batches)
    content: dict[str, Any] = {}
    for field in _FIELDS:
        values = [getattr(samples, field) for samples in every]
        if values[0] is not None:
            content[field] = torch.from_numpy(np.concatenate(values).astype(np.int64))
    for name, field in (("actual_seq_qlen", "ends"), ("records", "records")):
        content[name] = [row.tolist() for samples in every for row in _split(getattr(samples, field), samples)]
    torch.save(content, path)


def _split(values: Any, samples: Samples) -> list[Any]:
    return np.split(values, samples.ends_offsets[1:-1])


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The samples of a file, each as lists by field."""
    content = _torch().load(path)
    for sample in range(len(content["input_ids"])):
        yield {
            name: values[sample] if isinstance(values, list) else values[sample].tolist()
            for name, values in content.items()
        }


def _torch() -> Any:
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # only a file is at hand: no NPU is needed, nor CANN
    try:
        import torch
    except ImportError as error:
        raise UserError("files of the format pt take the package torch: install it.") from error
    return torch
