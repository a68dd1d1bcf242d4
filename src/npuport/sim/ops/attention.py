"""Fused attention operators: npu_fusion_attention (v1, v2, v3), their gradients, behind the dispatcher.

`scaled_dot_product` decides when `aten::scaled_dot_product_attention` comes here. Signatures: torch_npu 2.13.0. The
dropout mask is drawn as the CPU run of `scaled_dot_product_attention` draws it; the returned seed brings it back for
the backward operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from npuport.sim.ops import attention_maths as maths
from npuport.sim.ops.dropout import npu_dropout_gen_mask, unpack_bits
from npuport.sim.ops.randomness import device_generator, replaying, seed_for, state_for
from npuport.sim.ops.registration import StaysOnHost, kernel
from npuport.sim.ops.unavailable import NoReferenceError

# softmax_max and softmax_sum repeat each number (SOFTMAXMAX_LAST_DIMSHAPE of FlashAttentionKernelNpuOpApi.cpp).
_LANES = 8
_LAYOUTS = ("BSH", "SBH", "BSND", "BNSD", "TND")


def split_heads(tensor: Tensor, layout: str, heads: int) -> Tensor:
    """The tensor as [B, N, S, D]; a TND tensor counts as one sequence."""
    if layout == "BNSD":
        return tensor
    if layout == "BSND":
        return tensor.transpose(1, 2)
    if layout == "TND":
        return tensor.transpose(0, 1)[None]
    width = tensor.size(-1) // heads
    if layout == "BSH":
        return tensor.view(*tensor.shape[:2], heads, width).transpose(1, 2)
    return tensor.view(*tensor.shape[:2], heads, width).permute(1, 2, 0, 3)


def join_heads(tensor: Tensor, layout: str) -> Tensor:
    """Undo `split_heads`, contiguous."""
    if layout == "BNSD":
        return tensor.contiguous()
    if layout == "BSND":
        return tensor.transpose(1, 2).contiguous()
    if layout == "TND":
        return tensor[0].transpose(0, 1).contiguous()
    if layout == "BSH":
        return tensor.transpose(1, 2).flatten(2)
    return tensor.permute(2, 0, 1, 3).flatten(2)


class _Problem:
    """One call in the [B, N, S, D] layout, cut into the sequences that are attended separately (one, except for
    TND).
    """

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, heads: int, layout: str, arguments: dict[str, Any]
    ) -> None:
        self.layout = layout.upper()
        self.arguments = arguments
        if self.layout not in _LAYOUTS:
            raise RuntimeError(
                f"npu_fusion_attention: input_layout must be one of {', '.join(_LAYOUTS)}, got {layout!r}"
            )
        if not 0 < arguments["keep_prob"] <= 1:
            raise RuntimeError(f"The keep_prob value must be in range of (0, 1], but got {arguments['keep_prob']}")
        if heads <= 0:
            raise RuntimeError(f"head_num must > 0, but got {heads}")
        self.query = split_heads(query, self.layout, heads)
        key_heads = key.size(-1) // self.query.size(-1) if self.layout in ("BSH", "SBH") else heads
        self.key = split_heads(key, self.layout, key_heads)
        self.value = split_heads(value, self.layout, key_heads)
        if self.query.size(1) != heads or heads % self.key.size(1):
            raise RuntimeError(
                f"npu_fusion_attention: head_num {heads} does not fit {self.query.size(1)} query heads and "
                f"{self.key.size(1)} key heads"
            )
        self.options = maths.Options(
            scale=arguments["scale"],
            keep_prob=arguments["keep_prob"],
            sparse_mode=arguments["sparse_mode"],
            pre_tokens=arguments["pre_tokens"],
            next_tokens=arguments["next_tokens"],
            pse_before_scale=arguments.get("pse_type", 1) == 1,
            prefix=tuple(arguments.get("prefix") or ()),
        )
        self._refuse_what_no_document_settles()

    def _refuse_what_no_document_settles(self) -> None:
        given = self.arguments
        name = "npu::npu_fusion_attention"
        if given.get("query_rope") is not None or given.get("key_rope") is not None:
            raise NoReferenceError(name + "_v2", "query_rope and key_rope")
        if given.get("pse_type", 1) not in (0, 1):
            raise NoReferenceError(name + "_v2", f"pse_type {given['pse_type']}, which generates the bias inside")
        if given.get("padding_mask") is not None:
            raise NoReferenceError(name, "padding_mask, documented as unsupported")
        pse = given.get("pse")
        if pse is not None and (self.layout == "TND" or pse.size(-2) not in (1, self.query.size(2))):
            raise NoReferenceError(
                name, f"pse of shape {list(pse.shape)} with {self.layout} and {self.query.size(2)} queries"
            )

    def sequences(self) -> list[tuple[slice, slice]]:
        """Which queries attend to which keys."""
        if self.layout != "TND":
            return [(slice(None), slice(None))]
        queries, keys = (
            _as_list(self.arguments.get("actual_seq_qlen")),
            _as_list(self.arguments.get("actual_seq_kvlen")),
        )
        if not queries or len(queries) != len(keys):
            raise RuntimeError(
                "npu_fusion_attention: layout TND needs actual_seq_qlen and actual_seq_kvlen of the same length, "
                f"got {len(queries)} and {len(keys)}"
            )
        if queries[-1] > self.query.size(2) or keys[-1] > self.key.size(2):
            raise RuntimeError(
                f"npu_fusion_attention: cumulative lengths end at {queries[-1]} and {keys[-1]}, beyond the "
                f"{self.query.size(2)} queries and {self.key.size(2)} keys"
            )
        starts = zip([0, *queries[:-1]], queries, [0, *keys[:-1]], keys, strict=True)
        return [(slice(q, q_end), slice(k, k_end)) for q, q_end, k, k_end in starts]

    def operands(self, rows: slice, columns: slice) -> dict[str, Any]:
        """Arguments of `maths.attend` for one sequence, but for dropout."""
        query, key = self.query[:, :, rows], self.key[:, :, columns]
        mask = self.arguments.get("atten_mask")
        if (
            mask is not None
            and self.layout == "TND"
            and self.options.sparse_mode in (maths.MODE_DEFAULT, maths.MODE_ALL)
        ):
            mask = mask[: query.size(2), : key.size(2)]
        return {
            "query": query,
            "key": key,
            "value": self.value[:, :, columns],
            "options": self.options,
            "hidden": maths.hidden_positions(mask, query.size(2), key.size(2), self.options),
            "pse": self.arguments.get("pse"),
            "sink": self.arguments.get("sink"),
        }

    def sizes(self) -> list[tuple[int, int, int, int]]:
        """[B, N, Sq, Skv] of each sequence."""
        found = []
        for rows, columns in self.sequences():
            query, key = self.query[:, :, rows], self.key[:, :, columns]
            found.append((query.size(0), query.size(1), query.size(2), key.size(2)))
        return found

    def draw(self) -> tuple[Tensor | None, int, int]:
        """Dropout decisions of the forward pass, flat over all sequences (1 keeps; None without dropout), and the seed
        and offset that bring them back.
        """
        seed, offset = self.arguments.get("seed", 0), self.arguments.get("offset", 0)
        if self.options.keep_prob == 1:
            return None, seed, offset
        given = self.arguments.get("dropout_mask")
        if given is not None:
            return unpack_bits(given, torch.empty(self.count())), seed, offset
        with device_generator() as state:
            return self._drawn(), seed_for(state), 0

    def draw_again(self, seed: int, offset: int) -> Tensor | None:
        """The decisions behind a seed and an offset: of a forward pass, or of `npu::_npu_dropout_gen_mask`."""
        keep = self.options.keep_prob
        if keep == 1:
            return None
        state = state_for(seed)
        if state is None:
            mask = npu_dropout_gen_mask(torch.empty(0), [self.count()], 1 - keep, seed, offset)
            return unpack_bits(mask, torch.empty(self.count()))
        with replaying(state):
            return self._drawn()

    def _drawn(self) -> Tensor:
        keep = self.options.keep_prob
        return torch.cat([torch.empty(size).bernoulli_(keep).flatten() for size in self.sizes()])

    def cut(self, survivors: Tensor | None) -> list[Tensor | None]:
        """`survivors` for each sequence."""
        if survivors is None:
            return [None for _ in self.sizes()]
        parts = survivors.flatten().split([b * n * q * k for b, n, q, k in self.sizes()])
        return [part.view(size) for part, size in zip(parts, self.sizes(), strict=True)]

    def count(self) -> int:
        """How many probabilities there are: what the operator returns as numels."""
        return sum(b * n * q * k for b, n, q, k in self.sizes())


def _as_list(lengths: Any) -> list[int]:
    return [] if lengths is None else lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)


def _as_int(number: Any) -> int:
    return 0 if number is None else int(number)


def _forward(problem: _Problem) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int]:
    """(output, softmax_max, softmax_sum, the empty softmax_out, seed, offset)."""
    query = problem.query
    output = query.new_zeros(*query.shape[:3], problem.value.size(-1))
    row_max = torch.zeros(query.shape[:3])
    row_sum = torch.zeros(query.shape[:3])
    survivors, seed, offset = problem.draw()
    for (rows, columns), kept in zip(problem.sequences(), problem.cut(survivors), strict=True):
        found = maths.attend(**problem.operands(rows, columns), survivors=kept)
        output[:, :, rows], row_max[:, :, rows], row_sum[:, :, rows] = found.output, found.row_max, found.row_sum
    statistics = _statistics(problem, row_max), _statistics(problem, row_sum)
    return join_heads(output, problem.layout), *statistics, query.new_empty(0), seed, offset


def _statistics(problem: _Problem, values: Tensor) -> Tensor:
    """[B, N, S, 8] float32; for TND the shape is [T, N, 8] and the numbers lie in NTD order unless softmax_layout is
    "TND" (same page).
    """
    wide = values.unsqueeze(-1).repeat(1, 1, 1, _LANES)
    if problem.layout != "TND":
        return wide
    by_head = wide[0]
    if problem.arguments.get("softmax_layout") == "TND":
        return by_head.transpose(0, 1).contiguous()
    return by_head.reshape(by_head.size(1), by_head.size(0), _LANES)


def _backward(problem: _Problem, grad: Tensor, seed: int, offset: int) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dsink) in the layouts of the call."""
    survivors = problem.draw_again(seed, offset)
    heads = problem.query.size(1)
    output_grad = split_heads(grad, problem.layout, heads)
    query_grad, key_grad = torch.zeros_like(problem.query), torch.zeros_like(problem.key)
    value_grad = torch.zeros_like(problem.value)
    pse_grad: Tensor | None = None
    sink_grad: Tensor | None = None
    for (rows, columns), kept in zip(problem.sequences(), problem.cut(survivors), strict=True):
        found = maths.differentiate(output_grad[:, :, rows], **problem.operands(rows, columns), survivors=kept)
        query_grad[:, :, rows], key_grad[:, :, columns], value_grad[:, :, columns] = found.query, found.key, found.value
        pse_grad = found.pse
        if found.sink is not None:
            sink_grad = found.sink if sink_grad is None else sink_grad + found.sink
    query_grad, key_grad, value_grad = (join_heads(g, problem.layout) for g in (query_grad, key_grad, value_grad))
    return query_grad, key_grad, value_grad, pse_grad, sink_grad


_POSITIONAL = (
    "pse",
    "padding_mask",
    "atten_mask",
    "scale",
    "keep_prob",
    "pre_tokens",
    "next_tokens",
    "inner_precise",
    "prefix",
    "actual_seq_qlen",
    "actual_seq_kvlen",
    "sparse_mode",
    "gen_mask_parallel",
    "sync",
    "softmax_layout",
    "sink",
    "dropout_mask",
    "seed",
    "offset",
)
_RENAMED = {"pre_tockens": "pre_tokens", "next_tockens": "next_tokens", "scale_value": "scale"}
_DEFAULTS = {"scale": 1.0, "keep_prob": 1.0, "sparse_mode": 0, "pre_tokens": 2147483647, "next_tokens": 2147483647}


def _problem(
    query: Tensor, key: Tensor, value: Tensor, heads: int, layout: str, positional: Sequence[Any], named: dict[str, Any]
) -> _Problem:
    """The call in one spelling: versions 1 and 3 take positional arguments and say "tockens", version 2 and the
    gradients do not.
    """
    given = dict(zip(_POSITIONAL, positional, strict=False)) | {_RENAMED.get(n, n): v for n, v in named.items()}
    return _Problem(query, key, value, heads, layout, _DEFAULTS | given)


@kernel("npu::npu_fusion_attention", "npu::npu_fusion_attention_v2")
def npu_fusion_attention(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, *positional: Any, **named: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]:
    """(output, softmax_max, softmax_sum, reserved, seed, offset, numels); see `attention_maths` for the formula."""
    problem = _problem(query, key, value, head_num, input_layout, positional, named)
    return *_forward(problem), problem.count()


@kernel("npu::npu_fusion_attention_v3", mixed=True)
def npu_fusion_attention_v3(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, *positional: Any, **named: Any
) -> tuple[Any, ...]:
    """Version 3 takes actual sequence lengths as CPU tensors and returns seed and offset as CPU tensors."""
    problem = _problem(query, key, value, head_num, input_layout, positional, named)
    *tensors, seed, offset = _forward(problem)
    return *tensors, *(StaysOnHost(torch.tensor([number])) for number in (seed, offset))


@kernel("npu::npu_fusion_attention_grad")
def npu_fusion_attention_grad(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dsink)."""
    seed, offset = (_as_int(named.get(name)) for name in ("seed", "offset"))
    return _backward(_problem(query, key, value, head_num, input_layout, (), named), dy, seed, offset)


@kernel("npu::npu_fusion_attention_grad_v3", mixed=True)
def npu_fusion_attention_grad_v3(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dsink)."""
    return npu_fusion_attention_grad(query, key, value, dy, head_num, input_layout, **named)


@kernel("npu::npu_fusion_attention_grad_v2")
def npu_fusion_attention_grad_v2(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dq_rope, dk_rope, dsink), the order of derivatives.yaml; the rope parts have no reference."""
    *grads, dsink = npu_fusion_attention_grad(query, key, value, dy, head_num, input_layout, **named)
    return (*grads, None, None, dsink)
