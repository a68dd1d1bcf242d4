"""What is out of the ordinary in a batch, from its numbers, and from its text where a tokenizer is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from npuport.findings import Sentence, say
from npuport.precision.training_state.abnormal_text import abnormal
from npuport.precision.training_state.kept_batches import KeptBatch

_LABELS = re.compile(r"label|target|(?:^|\.)1$|(?:^|\.)y$")
_MASKS = re.compile(r"mask|position|type_ids|segment")
_IGNORED = (-100, -1)  # what losses leave out, by PyTorch's default and by habit
_LONG = 16  # tokens; shorter samples are no texts
_ONE_TOKEN = 0.6
_PERIODIC = 0.9
_PERIODS = 64
_SHOWN = 3  # samples named


@dataclass(frozen=True)
class Abnormal:
    """One thing about a tensor of a batch, and the samples that have it; none where it concerns the whole."""

    tensor: str
    text: Sentence
    samples: tuple[int, ...] = ()


def abnormal_in(batch: KeptBatch, decode: Callable[[list[int]], str] | None = None) -> list[Abnormal]:
    """What is wrong or strange in a batch; ``decode`` makes text of token ids."""
    found: list[Abnormal] = []
    for name, tensor in batch.tensors.items():
        if tensor.is_floating_point():
            found += _numbers(name, tensor)
        elif tensor.dtype != torch.bool and not _MASKS.search(name) and tensor.numel():
            if _LABELS.search(name):
                found += _labels(name, tensor, batch.classes)
            if tensor.dim() >= 2 and tensor.shape[-1] >= _LONG:
                found += _tokens(name, tensor.reshape(-1, tensor.shape[-1]), decode)
    return found


def _numbers(name: str, tensor: torch.Tensor) -> Iterator[Abnormal]:
    rows = _rows(tensor).float()
    bad = torch.isfinite(rows).logical_not()
    if bool(bad.any()):
        text = say("{number} values are not finite", number=int(bad.sum()))
        yield Abnormal(name, text, _places(bad.any(1)))
    if rows.shape[1] < _LONG:
        return
    flat = (rows.max(1).values == rows.min(1).values) & ~bad.any(1)
    if bool(flat.any()):
        yield Abnormal(name, say("constant: every value is the same"), _places(flat))
    sizes = rows.nan_to_num(0, 0, 0).square().mean(1).sqrt()
    usual = sizes.median()
    wild = (sizes > 30 * usual) & (usual > 0)
    if bool(wild.any()):
        factor = f"{float(sizes.max() / usual):.0f}"
        yield Abnormal(
            name, say("values {factor} times as large as in the other samples", factor=factor), _places(wild)
        )


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(tensor.shape[0], -1) if tensor.dim() > 1 else tensor.reshape(-1, 1)


def _places(flags: torch.Tensor) -> tuple[int, ...]:
    return tuple(int(at) for at in flags.nonzero().flatten())


def _labels(name: str, tensor: torch.Tensor, classes: int | None) -> Iterator[Abnormal]:
    rows = _rows(tensor)
    ignored = (rows == _IGNORED[0]) | (rows == _IGNORED[1])
    if rows.shape[1] > 1 and bool(ignored.all(1).any()):
        yield Abnormal(name, say("every label is ignored: no loss comes of it"), _places(ignored.all(1)))
    elif bool(ignored.all()):
        yield Abnormal(name, say("every label is ignored: no loss comes of it"))
    wrong = (rows < 0) & ~ignored
    if classes is not None:
        wrong |= rows >= classes
    if bool(wrong.any()):
        values = rows[wrong]
        text = say(
            "{number} labels out of range: {low} to {high}, where the last layer has {classes} outputs",
            number=int(wrong.sum()),
            low=int(values.min()),
            high=int(values.max()),
            classes=classes if classes is not None else "?",
        )
        yield Abnormal(name, text, _places(wrong.any(1)))


def _tokens(name: str, rows: torch.Tensor, decode: Callable[[list[int]], str] | None) -> Iterator[Abnormal]:
    told: dict[str, tuple[Sentence, list[int]]] = {}
    for number, row in enumerate(rows):
        ids = [int(one) for one in row if int(one) not in _IGNORED]
        for text in _of_tokens(ids, decode):
            told.setdefault(text.template, (text, []))[1].append(number)
    for text, samples in told.values():
        yield Abnormal(name, text, tuple(samples))
    if rows.shape[0] > 1:
        copies = rows.shape[0] - torch.unique(rows, dim=0).shape[0]
        if copies:
            yield Abnormal(name, say("{number} samples are copies of others in the batch", number=copies))


def _of_tokens(ids: list[int], decode: Callable[[list[int]], str] | None) -> Iterator[Sentence]:
    if len(ids) < _LONG:
        return
    body = _without_padding(ids)
    if len(body) < _LONG // 2:
        yield say("nearly all of it is padding (token {token})", token=ids[-1])
        return
    usual = max(set(body), key=body.count)
    share = body.count(usual) / len(body)
    if share > _ONE_TOKEN:
        yield say("token {token} is {share} of it", token=usual, share=f"{share:.0%}")
    else:
        period = _period(body)
        if period is not None:
            yield say("repeats itself every {period} tokens", period=period)
    if decode is not None:
        yield from abnormal(decode(body))


def _without_padding(ids: list[int]) -> list[int]:
    """The tokens without a stretch of one token at either end."""
    start, end = 0, len(ids)
    while end - start > 1 and ids[end - 1] == ids[end - 2]:
        end -= 1
    while end - start > 1 and ids[start] == ids[start + 1]:
        start += 1
    return ids[start:end] if end - start > 1 else ids[:1]


def _period(ids: list[int]) -> int | None:
    """The shortest period at which nearly all tokens come again; None where there is none."""
    for period in range(2, min(_PERIODS, len(ids) // 3) + 1):
        same = sum(one == other for one, other in zip(ids, ids[period:], strict=False))
        if same > _PERIODIC * (len(ids) - period):
            return period
    return None
