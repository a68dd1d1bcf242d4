"""Fused attention of training (op-plugin docs: npu_fusion_attention, with layouts, sparse modes, masks, sink):
softmax(mask(scale · (pse + q·kᵀ)))·v, without dropout (pse_type of npu_fusion_attention_v2: MindSpeed's
docs/zh/ops/fusion_attention.md).

The backward formula uses the row maxima, row sums and the result that the call was given, as the kernel does: what
the forward call did wrong is no error of the backward call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from npuport.findings import say
from npuport.precision.references.formulas import Partly, UncoveredError, formula, refuse

_LANES = 8  # how often each maximum and sum is repeated in the last dimension
_LARGE = 2147483647


@dataclass(frozen=True)
class _Options:
    """Arguments that do not depend on the sequence."""

    layout: str
    scale: float
    adds_later: bool  # pse is added to the scaled scores (pse_type 0)
    mask: Tensor | None
    pse: Tensor | None
    sink: Tensor | None
    mode: int
    before: int  # how many keys before the query's place are seen in a band
    after: int
    prefix: tuple[int, ...]
    queries_end: tuple[int, ...]  # of each sequence, for TND
    keys_end: tuple[int, ...]
    ropes: tuple[Tensor, Tensor] | None  # further parts of query and key, for TND: their products add to the scores
    by_token: bool  # maxima and sums of TND calls are laid out by token, not by head


@dataclass(frozen=True)
class _Sequence:
    """What attends to one another: [B, N, S, D] each, and what is added to and hidden from the scores."""

    query: Tensor
    key: Tensor
    value: Tensor
    pse: Tensor | None
    hidden: Tensor | None


@dataclass(frozen=True)
class _Rows:
    """Results of a forward pass: [B, N, Sq, D], and [B, N, Sq] twice. ``seen``: a key is not hidden."""

    output: Tensor
    largest: Tensor
    total: Tensor
    seen: Tensor


def _options(layout: str, given: dict[str, Any]) -> _Options:
    layout = layout.upper()
    refuse("keep_prob", given.get("keep_prob"), 1.0)
    refuse("padding_mask", given.get("padding_mask"))
    refuse("input_layout", layout, "BSH", "SBH", "BSND", "BNSD", "TND")
    pse = given.get("pse")
    if pse is not None:
        refuse("pse_type", given.get("pse_type"), 0, 1)
    mode = given.get("sparse_mode") or 0
    refuse("sparse_mode", mode, 0, 1, 2, 3, 4, 5, 6)
    return _Options(
        layout,
        given.get("scale_value", given.get("scale", 1.0)),
        given.get("pse_type") == 0,
        given.get("atten_mask"),
        pse,
        given.get("sink"),
        mode,
        given.get("pre_tockens", given.get("pre_tokens", _LARGE)),
        given.get("next_tockens", given.get("next_tokens", _LARGE)),
        _numbers(given.get("prefix")),
        _numbers(given.get("actual_seq_qlen")),
        _numbers(given.get("actual_seq_kvlen")),
        _ropes(layout, given.get("query_rope"), given.get("key_rope")),
        given.get("softmax_layout") == "TND",
    )


def _ropes(layout: str, query: Tensor | None, key: Tensor | None) -> tuple[Tensor, Tensor] | None:
    if query is None or key is None:
        return None
    refuse("input_layout", layout, "TND")
    return query, key


def _numbers(value: Tensor | Sequence[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(int(one) for one in (value.tolist() if isinstance(value, Tensor) else value))


def _by_head(tensor: Tensor, layout: str, width: int) -> Tensor:
    """[B, N, S, D] of a tensor whose heads are ``width`` wide."""
    if layout == "BNSD":
        return tensor
    if layout == "TND":
        return tensor.unsqueeze(0).permute(0, 2, 1, 3)
    if layout == "SBH":
        tensor = tensor.permute(1, 0, 2)
    heads = tensor if layout == "BSND" else tensor.unflatten(-1, (-1, width))
    return heads.permute(0, 2, 1, 3)


def _as_layout(tensor: Tensor, layout: str) -> Tensor:
    """The opposite of ``_by_head``."""
    if layout == "BNSD":
        return tensor
    if layout == "TND":
        return tensor.permute(0, 2, 1, 3).squeeze(0)
    by_place = tensor.permute(0, 2, 1, 3)
    if layout == "BSND":
        return by_place
    joined = by_place.flatten(-2)
    return joined if layout == "BSH" else joined.permute(1, 0, 2)


def _split(query: Tensor, key: Tensor, value: Tensor, heads: int, options: _Options) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value by head."""
    layout = options.layout
    if options.ropes is not None:
        query, key = (torch.cat(pair, -1) for pair in zip((query, key), options.ropes, strict=True))
    if layout not in ("BSH", "SBH"):
        return _by_head(query, layout, 0), _by_head(key, layout, 0), _by_head(value, layout, 0)
    width = query.size(-1) // heads
    key_heads = key.size(-1) // width
    return (
        _by_head(query, layout, width),
        _by_head(key, layout, width),
        _by_head(value, layout, value.size(-1) // key_heads),
    )


def _parts(query: Tensor, key: Tensor, options: _Options) -> list[tuple[slice, slice]]:
    """The places of queries and keys that attend to one another."""
    if options.layout != "TND":
        return [(slice(0, query.size(2)), slice(0, key.size(2)))]
    ends = options.queries_end, options.keys_end
    if not ends[0] or len(ends[0]) != len(ends[1]):
        raise UncoveredError(say("no reference formula for {argument}", argument="actual_seq_qlen"))
    starts = ((0, *one[:-1]) for one in ends)
    return [
        (slice(q, max(q, q_end)), slice(k, max(k, k_end)))
        for q, q_end, k, k_end in zip(*(pair for both in zip(starts, ends, strict=True) for pair in both), strict=True)
    ]


def _sequence(
    whole: tuple[Tensor, Tensor, Tensor], part: tuple[slice, slice], number: int, options: _Options
) -> _Sequence:
    query, key, value = whole[0][:, :, part[0]], whole[1][:, :, part[1]], whole[2][:, :, part[1]]
    queries, keys = query.size(2), key.size(2)
    pse = options.pse
    if pse is not None and (options.layout == "TND" or pse.size(-2) not in (1, queries) or pse.size(-1) != keys):
        raise UncoveredError(say("no reference formula for {argument}", argument=f"pse={list(pse.shape)}"))
    return _Sequence(query, key, value, pse, _hidden(options, queries, keys, number))


def _hidden(options: _Options, queries: int, keys: int, number: int) -> Tensor | None:
    """Which keys a query does not see, in a shape that broadcasts to [B, N, Sq, Skv]. Without a mask the mode has no
    effect."""
    mask, mode = options.mask, options.mode
    if mask is None:
        return None
    if mode in (0, 1, 5):
        return mask[..., :queries, :keys].bool()
    row, column = torch.arange(queries)[:, None], torch.arange(keys)
    if mode == 2:
        return column > row
    place = row + keys - queries  # the last query stands at the last key
    if mode == 3:
        return column > place
    if mode == 4:
        return (column > place + options.after) | (column < place - options.before)
    prefix = options.prefix[number : number + 1] if options.layout == "TND" else options.prefix
    return (column > place) & (column >= torch.tensor(prefix)[:, None, None, None])


def _repeated(shared: Tensor, heads: int) -> Tensor:
    """Heads of keys or values, one for each head of the query."""
    return shared.repeat_interleave(heads // shared.size(1), 1)


def _scores(one: _Sequence, options: _Options) -> Tensor:
    scores = one.query @ _repeated(one.key, one.query.size(1)).transpose(-1, -2)
    if one.pse is None:
        scores = options.scale * scores
    else:
        scores = options.scale * scores + one.pse if options.adds_later else options.scale * (scores + one.pse)
    return scores if one.hidden is None else torch.where(one.hidden, -torch.inf, scores)


def _attended(one: _Sequence, options: _Options) -> _Rows:
    scores = _scores(one, options)
    # A column more, so that a sequence without keys has a maximum too.
    column = scores.new_full((*scores.shape[:3], 1), -torch.inf)
    if options.sink is not None:
        column = options.sink[None, :, None, None].expand_as(column)
    largest = torch.cat((scores, column), -1).amax(-1)
    seen = (scores > -torch.inf).any(-1)
    largest = torch.where(torch.isinf(largest), 0.0, largest)
    powers = torch.exp(scores - largest[..., None])
    total = powers.sum(-1)
    if options.sink is not None:
        total = total + torch.exp(options.sink[None, :, None] - largest)
    shares = powers / torch.where(total == 0, 1.0, total)[..., None]
    return _Rows(shares @ _repeated(one.value, one.query.size(1)), largest, total, seen)


def _stored(rows: list[Tensor], options: _Options) -> Tensor:
    """Maxima or sums of all sequences, as the operator lays them out."""
    if options.layout != "TND":
        return rows[0][..., None].expand(*rows[0].shape, _LANES)
    if options.by_token:
        flat = torch.cat([one[0].transpose(0, 1) for one in rows])
    else:  # within a sequence by head, in the shape [T, N]
        flat = torch.cat([one[0].flatten() for one in rows]).unflatten(0, (-1, rows[0].size(1)))
    return flat[..., None].expand(*flat.shape, _LANES)


def _loaded(stored: Tensor, parts: list[tuple[slice, slice]], heads: int, options: _Options) -> list[Tensor]:
    """The opposite of ``_stored``: [B, N, Sq] of each sequence."""
    values = stored[..., 0]
    if options.layout != "TND":
        return [values]
    lengths = [rows.stop - rows.start for rows, _ in parts]
    if options.by_token:
        return [values[rows].transpose(0, 1)[None] for rows, _ in parts]
    pieces = values.flatten()[: heads * sum(lengths)].split([heads * length for length in lengths])
    return [piece.reshape(1, heads, -1) for piece in pieces]


_POSITIONAL = (
    "pse", "padding_mask", "atten_mask", "scale", "keep_prob", "pre_tockens", "next_tockens", "inner_precise", "prefix",
    "actual_seq_qlen", "actual_seq_kvlen", "sparse_mode", "gen_mask_parallel", "sync", "softmax_layout", "sink",
    "dropout_mask", "seed", "offset",
)  # fmt: skip


@formula("npu.npu_fusion_attention_v3")
def fusion_attention_v3(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, *more: Any, **named: Any
) -> tuple[Any, ...]:
    """As the others, and the two numbers of the dropout as tensors."""
    number = Partly(torch.zeros(1, dtype=torch.int64), torch.tensor([False]))
    return *fusion_attention(query, key, value, head_num, input_layout, *more, **named), number, number


@formula("npu.npu_fusion_attention", "npu.npu_fusion_attention_v2")
def fusion_attention(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, *more: Any, **named: Any
) -> tuple[Any, ...]:
    """(result, row maxima, row sums, an empty tensor); numbers that follow have no values to judge. What a row that
    sees no key gives is in no document."""
    options = _options(input_layout, dict(zip(_POSITIONAL, more, strict=False)) | named)
    whole = _split(query, key, value, head_num, options)
    parts = _parts(whole[0], whole[1], options)
    rows = [_attended(_sequence(whole, part, number, options), options) for number, part in enumerate(parts)]
    _require_all(whole[0], parts)
    seen = torch.cat([one.seen for one in rows], 2)[..., None].expand(*whole[0].shape[:3], whole[2].size(-1))
    output = _as_layout(torch.cat([one.output for one in rows], 2), options.layout)
    stored = _stored([one.seen for one in rows], options)
    return (
        Partly(output, _as_layout(seen, options.layout)),
        Partly(_stored([one.largest for one in rows], options), stored),
        Partly(_stored([one.total for one in rows], options), stored),
        query.new_empty(0),
    )


def _require_all(query: Tensor, parts: list[tuple[slice, slice]]) -> None:
    """Queries after the last sequence are not computed, and no document says what they give."""
    if parts[-1][0].stop != query.size(2):
        raise UncoveredError(say("no reference formula for {argument}", argument="actual_seq_qlen"))


@formula("npu.npu_fusion_attention_grad", "npu.npu_fusion_attention_grad_v3")
def fusion_attention_grad(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """The gradients of query, key, value, (pse, which the device does not compute) and sink."""
    return _backward(query, key, value, dy, head_num, input_layout, named)


@formula("npu.npu_fusion_attention_grad_v2")
def fusion_attention_grad_v2(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """The gradients of query, key, value, (pse), the two rope parts and sink."""
    dq, dk, dv, dpse, dsink = _backward(query, key, value, dy, head_num, input_layout, named)
    if named.get("query_rope") is None or dq is None or dk is None:
        return dq, dk, dv, dpse, None, None, dsink
    width = query.size(-1)
    return dq[..., :width], dk[..., :width], dv, dpse, dq[..., width:], dk[..., width:], dsink


def _backward(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, heads: int, layout: str, named: dict[str, Any]
) -> tuple[Tensor | None, ...]:
    options = _options(layout, named)
    if options.pse is not None:
        raise UncoveredError(say("no reference formula for {argument}", argument="pse=…"))
    whole = _split(query, key, value, heads, options)
    parts = _parts(whole[0], whole[1], options)
    _require_all(whole[0], parts)
    of_output = _by_head(dy, options.layout, whole[2].size(-1))
    output = _by_head(named["attention_in"], options.layout, whole[2].size(-1))
    saved = [_loaded(named[name], parts, heads, options) for name in ("softmax_max", "softmax_sum")]
    found = [torch.zeros_like(one) for one in whole]
    of_sink = None if options.sink is None else torch.zeros_like(options.sink)
    for number, part in enumerate(parts):
        one = _sequence(whole, part, number, options)
        largest, total = saved[0][number], saved[1][number]
        upper, result = of_output[:, :, part[0]], output[:, :, part[0]]
        shares = torch.exp(_scores(one, options) - largest[..., None]) / torch.where(total == 0, 1.0, total)[..., None]
        inner = (upper * result).sum(-1)
        pull = options.scale * shares * (upper @ _repeated(one.value, heads).transpose(-1, -2) - inner[..., None])
        found[0][:, :, part[0]] = pull @ _repeated(one.key, heads)
        found[1][:, :, part[1]] = _shared(pull.transpose(-1, -2) @ one.query, one.key.size(1))
        found[2][:, :, part[1]] = _shared(shares.transpose(-1, -2) @ upper, one.value.size(1))
        if of_sink is not None and options.sink is not None:
            of_sink -= (torch.exp(options.sink[None, :, None] - largest) / total * inner).sum((0, 2))
    dq, dk, dv = (_as_layout(one, options.layout) for one in found)
    return dq, dk, dv, None, of_sink


def _shared(gradient: Tensor, heads: int) -> Tensor:
    """The sum over the heads of the query that share a head."""
    return gradient.unflatten(1, (heads, -1)).sum(2)
