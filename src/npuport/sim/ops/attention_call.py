"""One call of fused attention: its arguments checked, its tensors in the [B, N, S, D] layout, cut into sequences.

Argument checks and the shapes of results are those of op_plugin/ops/opapi/FlashAttentionKernelNpuOpApi.cpp and
FlashAttentionV2KernelNpuOpApi.cpp; the meaning of the arguments is documented in
docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md of the same repository.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from npuport.sim.ops import attention_bias as biases
from npuport.sim.ops import attention_masks as masks
from npuport.sim.ops import attention_maths as maths
from npuport.sim.ops.dropout import npu_dropout_gen_mask, unpack_bits
from npuport.sim.ops.randomness import device_generator, replaying, seed_for, state_for
from npuport.sim.ops.unavailable import NoReferenceError

LAYOUTS = ("BSH", "SBH", "BSND", "BNSD", "TND")
_NAME = "npu::npu_fusion_attention"


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


@dataclass(frozen=True)
class Piece:
    """What is attended together: the whole batch, or one sequence of a TND call."""

    index: int
    rows: slice
    columns: slice
    size: tuple[int, int, int, int]  # B, N, Sq, Skv

    @property
    def count(self) -> int:
        """How many probabilities the piece has."""
        batch, heads, queries, keys = self.size
        return batch * heads * queries * keys


class AttentionCall:
    """`query`, `key`, `value` are [B, N, S, D], with the rope parts (if given) behind the last dimension."""

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, heads: int, layout: str, arguments: dict[str, Any]
    ) -> None:
        self.layout = layout.upper()
        self.arguments = arguments
        self._check(query, key, value, heads, layout)
        self.query = split_heads(query, self.layout, heads)
        key_heads = key.size(-1) // self.query.size(-1) if self.layout in ("BSH", "SBH") else heads
        self.key = split_heads(key, self.layout, key_heads)
        self.value = split_heads(value, self.layout, key_heads)
        if self.query.size(1) != heads or heads % self.key.size(1):
            raise RuntimeError(
                f"npu_fusion_attention: head_num {heads} does not fit {self.query.size(1)} query heads and "
                f"{self.key.size(1)} key heads"
            )
        self.width = self.query.size(-1)  # without rope
        if arguments.get("query_rope") is not None:
            self._append_rope(heads)
        self.pse_type = arguments.get("pse_type", biases.OUTER_ADD_MUL)
        self.options = maths.Options(
            arguments["scale"], arguments["keep_prob"], bias_before_scale=self.pse_type == biases.OUTER_ADD_MUL
        )
        self.sparsity = masks.Sparsity(
            arguments["sparse_mode"],
            arguments["pre_tokens"],
            arguments["next_tokens"],
            tuple(arguments.get("prefix") or ()),
        )

    def _check(self, query: Tensor, key: Tensor, value: Tensor, heads: int, layout: str) -> None:
        given = self.arguments
        if heads <= 0:
            raise RuntimeError(f"head_num must > 0, but got {heads}")
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            if tensor.dim() not in (3, 4):
                raise RuntimeError(
                    f"The shapes of the input {name} should be 3 or 4 dimensional, but got {tensor.dim()}-dimensional"
                )
        if not 0 < given["keep_prob"] <= 1:
            raise RuntimeError(f"The keep_prob value must be in range of (0, 1], but got {given['keep_prob']}")
        if self.layout not in LAYOUTS:
            raise RuntimeError(
                f"The input_layout should be BSH/SBH/BNSD/BSND/TND(case-insensitive), but got {layout!r}"
            )
        mode, tnd = given["sparse_mode"], self.layout == "TND"
        if not 0 <= mode <= (masks.MODE_BAND_LEFT_UP if tnd else masks.MODE_PREFIX_COMPRESSED) or (
            tnd and mode == masks.MODE_PREFIX
        ):
            allowed = "[0,5) or (5,8]" if tnd else "[0,6]"
            raise RuntimeError(f"The sparse_mode value must be in range of {allowed}, but got {mode}")
        softmax_layout = given.get("softmax_layout") or ""
        if softmax_layout not in ("", "TND"):
            raise RuntimeError("only supported softmax_layout=TND")
        if softmax_layout and not tnd:
            raise RuntimeError("softmax_layout=TND only supported when input_layout_str=TND")
        if given.get("padding_mask") is not None:
            raise NoReferenceError(_NAME, "padding_mask, documented as unsupported")

    def _append_rope(self, heads: int) -> None:
        """Attend over [q, q_rope] and [k, k_rope]: scores add up to q·kᵀ + q_rope·k_ropeᵀ.

        Conditions: CANN's aclnnFlashAttentionVarLenScoreV3.
        """
        given = self.arguments
        query_rope, key_rope = given["query_rope"], given.get("key_rope")
        if key_rope is None or self.layout != "TND":
            raise RuntimeError("npu_fusion_attention_v2: query_rope needs key_rope and input_layout TND")
        if given["keep_prob"] != 1 or given.get("pse") is not None or given.get("atten_mask") is None:
            raise RuntimeError("npu_fusion_attention_v2: query_rope needs keep_prob 1, an atten_mask and no pse")
        self.query = torch.cat([self.query, split_heads(query_rope, self.layout, heads)], dim=-1)
        self.key = torch.cat([self.key, split_heads(key_rope, self.layout, heads)], dim=-1)

    @functools.cached_property
    def pieces(self) -> tuple[Piece, ...]:
        batch, heads = self.query.shape[:2]
        if self.layout != "TND":
            whole = slice(None)
            return (Piece(0, whole, whole, (batch, heads, self.query.size(2), self.key.size(2))),)
        queries = _ends(self.arguments.get("actual_seq_qlen"))
        keys = _ends(self.arguments.get("actual_seq_kvlen"))
        if not queries or len(queries) != len(keys):
            raise RuntimeError(
                "the size of actual_seq_qlen and actual_seq_kvlen must be the same and cannot be empty, "
                f"got {len(queries)} and {len(keys)}"
            )
        if queries[-1] > self.query.size(2) or keys[-1] > self.key.size(2):
            raise RuntimeError(
                f"npu_fusion_attention: cumulative lengths end at {queries[-1]} and {keys[-1]}, beyond the "
                f"{self.query.size(2)} queries and {self.key.size(2)} keys"
            )
        bounds = zip([0, *queries[:-1]], queries, [0, *keys[:-1]], keys, strict=True)
        return tuple(
            Piece(i, slice(q, q_end), slice(k, k_end), (1, heads, q_end - q, k_end - k))
            for i, (q, q_end, k, k_end) in enumerate(bounds)
        )

    @property
    def count(self) -> int:
        """How many probabilities there are: what the operator returns as numels."""
        return sum(piece.count for piece in self.pieces)

    def operands(self, piece: Piece) -> dict[str, Any]:
        """Arguments of `maths.attend` for one piece, but for dropout."""
        return {
            "query": self.query[:, :, piece.rows],
            "key": self.key[:, :, piece.columns],
            "value": self.value[:, :, piece.columns],
            "options": self.options,
            "hidden": self._hidden(piece),
            "bias": self._bias(piece),
            "sink": self.arguments.get("sink"),
        }

    def _hidden(self, piece: Piece) -> Tensor | None:
        mask, sparsity = self.arguments.get("atten_mask"), self.sparsity
        queries, keys = piece.size[2:]
        if self.layout == "TND":
            sparsity = masks.for_sequence(sparsity, piece.index, [p.size[2:] for p in self.pieces])
            if mask is not None and sparsity.mode in (masks.MODE_DEFAULT, masks.MODE_ALL):
                mask = mask[..., :queries, :keys]  # the mask has the size of the longest sequence
        return masks.hidden_positions(mask, queries, keys, sparsity)

    def _bias(self, piece: Piece) -> Tensor | None:
        pse: Tensor | None = self.arguments.get("pse")
        if pse is None:
            return None
        if self.pse_type in (biases.INNER_ALIBI, biases.INNER_ALIBI_SQRT):
            return self._alibi(piece, pse)
        if self.sparsity.mode in (masks.MODE_RIGHT_DOWN_BAND, masks.MODE_BAND_LEFT_UP):
            raise RuntimeError(f"npu_fusion_attention: sparse_mode {self.sparsity.mode} does not take pse")
        queries, keys = piece.size[2:]
        if self.layout != "TND" and pse.size(-2) in (1, queries):
            return pse
        causal = self.sparsity.mode in (masks.MODE_DEFAULT, masks.MODE_LEFT_UP, masks.MODE_RIGHT_DOWN)
        if pse.size(-2) != biases.COMPRESSED_ROWS or queries != keys or not causal or keys > pse.size(-1):
            raise RuntimeError(
                f"npu_fusion_attention: pse of shape {list(pse.shape)} fits neither [B or 1, N, Sq, Skv] nor "
                f"[B, N, 1, Skv] nor the last {biases.COMPRESSED_ROWS} rows for causal attention with Sq = Skv "
                f"(here {queries}, {keys})"
            )
        if self.layout == "TND" and pse.size(0) > 1:
            pse = pse[piece.index : piece.index + 1]
        return biases.expand_last_rows(pse, queries)[..., :keys]

    def _alibi(self, piece: Piece, slopes: Tensor) -> Tensor:
        q_start, kv_start = (next(iter(self.arguments.get(name) or ()), 0) for name in ("q_start_idx", "kv_start_idx"))
        queries, keys = piece.size[2:]
        mode = self.sparsity.mode
        if mode == masks.MODE_RIGHT_DOWN_BAND:
            raise RuntimeError("npu_fusion_attention_v2: pse_type 2 and 3 do not support sparse mode 7")
        if mode == masks.MODE_BAND_LEFT_UP and piece.index > 0:
            q_start = kv_start = 0
        first_of_cut = mode == masks.MODE_BAND_LEFT_UP and piece.index == 0
        if queries + q_start != keys + kv_start if first_of_cut else queries != keys:
            raise RuntimeError(
                f"npu_fusion_attention_v2: pse_type 2 and 3 need as many queries as keys, got {queries} and {keys}"
            )
        if self.layout == "TND" and slopes.dim() == 2:
            slopes = slopes[piece.index]
        return biases.alibi(slopes, queries, keys, q_start, kv_start, self.pse_type == biases.INNER_ALIBI_SQRT)

    def draw(self) -> tuple[Tensor | None, int, int]:
        """Dropout decisions of the forward pass, flat over all pieces (1 keeps; None without dropout), and the seed
        and offset that bring them back.
        """
        seed, offset = self.arguments.get("seed", 0), self.arguments.get("offset", 0)
        if self.options.keep_prob == 1:
            return None, seed, offset
        given = self.arguments.get("dropout_mask")
        if given is not None:
            return unpack_bits(given, torch.empty(self.count)), seed, offset
        with device_generator() as state:
            return self._drawn(), seed_for(state), 0

    def draw_again(self, seed: int, offset: int) -> Tensor | None:
        """The decisions behind a seed and an offset: of a forward pass, or of `npu::_npu_dropout_gen_mask`."""
        keep = self.options.keep_prob
        if keep == 1:
            return None
        state = state_for(seed)
        if state is None:
            mask = npu_dropout_gen_mask(torch.empty(0), [self.count], 1 - keep, seed, offset)
            return unpack_bits(mask, torch.empty(self.count))
        with replaying(state):
            return self._drawn()

    def _drawn(self) -> Tensor:
        keep = self.options.keep_prob
        return torch.cat([torch.empty(piece.size).bernoulli_(keep).flatten() for piece in self.pieces])

    def cut(self, survivors: Tensor | None) -> list[Tensor | None]:
        """`survivors` for each piece."""
        if survivors is None:
            return [None for _ in self.pieces]
        parts = survivors.flatten().split([piece.count for piece in self.pieces])
        return [part.view(piece.size) for part, piece in zip(parts, self.pieces, strict=True)]


def _ends(lengths: Any) -> list[int]:
    """Cumulative lengths without the trailing zeros of sequences that take no part."""
    ends: list[int] = [] if lengths is None else lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    while len(ends) > 1 and ends[-1] == 0 and any(ends):
        ends.pop()
    if any(later < earlier for earlier, later in itertools.pairwise(ends)):
        raise RuntimeError(f"npu_fusion_attention: cumulative lengths must not decrease, got {ends}")
    return ends
