"""Checksums of tensors that a device computes itself, the same on every device.

Multilinear hashing (Lemire and Kaser, "Strongly universal string hashing is fast", 2014): each word of at most 32 bits
times a random 64-bit weight of its place, summed modulo 2^64. Two tensors that differ in one value or in the order of
two have the same checksum with a chance of about 2^-32, over the choice of weights.
"""

from __future__ import annotations

from functools import cache

import torch

_STRETCH = 8192  # words that have weights of their own; the sums of stretches are summed in the same way


def checksums_of(rows: torch.Tensor) -> torch.Tensor:
    """The checksums of the rows of a contiguous tensor of two dimensions, as int64 on its device."""
    if not rows.numel():
        return torch.zeros(rows.shape[:1], dtype=torch.int64, device=rows.device)
    words = _words(rows)
    while True:
        sums = _sums(words)
        if sums.shape[1] == 1:
            return sums[:, 0]
        words = sums.view(torch.int32)


def _words(values: torch.Tensor) -> torch.Tensor:
    """The bits as integers of at most 32 bits."""
    dtype = {1: torch.int8, 2: torch.int16}.get(values.element_size(), torch.int32)
    return values if values.dtype == dtype else values.view(dtype)


def _sums(words: torch.Tensor) -> torch.Tensor:
    """The sums of each stretch of words in each row."""
    weights = _weights(words.device)
    count, size = words.shape
    whole = size // _STRETCH * _STRETCH
    parts = [(words[:, :whole].reshape(count, -1, _STRETCH) * weights).sum(2)] if whole else []
    if whole < size:
        parts.append((words[:, whole:] * weights[: size - whole]).sum(1, keepdim=True))
    return torch.cat(parts, 1) if len(parts) > 1 else parts[0]


@cache
def _weights(device: torch.device) -> torch.Tensor:
    """Odd weights from a generator of their own: the same in every run and version."""
    weights, state = [], 0
    for _ in range(_STRETCH):  # splitmix64
        state = (state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        word = (word ^ (word >> 31)) | 1
        weights.append(word - 2**64 if word >= 2**63 else word)
    return torch.tensor(weights, dtype=torch.int64, device=device)
