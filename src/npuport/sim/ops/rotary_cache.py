"""Normalised and rotated keys written into a cache (multi-head latent attention, for evaluation).

Source: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_kv_rmsnorm_rope_cache.md, the golden function of
test_npu_kv_rms_norm_rope_cache.py, op_plugin/ops/opapi/KvRmsNormRopeCacheNpuOpApi.cpp. Caches of int8 and in the format
FRACTAL_NZ have no reference.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.normalization import rms_statistics
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.rotary import deinterleave, rotate
from npuport.sim.ops.unavailable import NoReferenceError

_ROPE = 64  # the width of the rotated part; the other widths of the operator are fixed as well
_SEPARATE_VALUE = 128


@kernel("npu::npu_kv_rmsnorm_rope_cache")
def npu_kv_rmsnorm_rope_cache(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    k_cache: Tensor,
    ckv_cache: Tensor,
    *,
    k_rope_scale: Tensor | None = None,
    c_kv_scale: Tensor | None = None,
    k_rope_offset: Tensor | None = None,
    c_kv_offset: Tensor | None = None,
    v: Tensor | None = None,
    epsilon: float = 1e-5,
    cache_mode: str = "Norm",
    is_output_kv: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(k_cache, ckv_cache, written in place; rotated keys, normalised latents) for kv [B, 1, S, latent + rope].

    With `v` [B, 1, S, 128] the whole kv is normalised, its first 64 elements are rotated, and v goes into ckv_cache.
    """
    if any(t is not None for t in (k_rope_scale, c_kv_scale, k_rope_offset, c_kv_offset)) or "NZ" in cache_mode:
        raise NoReferenceError("npu::npu_kv_rmsnorm_rope_cache", f"quantised caches or cache_mode {cache_mode}")
    separate = v is not None and v.dim() == 4 and v.size(-1) == _SEPARATE_VALUE
    latent, turning = (kv, None) if separate else kv.split([gamma.size(0), kv.size(-1) - gamma.size(0)], dim=-1)
    normal = wide(latent) * rms_statistics(latent, gamma, epsilon) * wide(gamma)
    source = deinterleave(normal[..., :_ROPE] if turning is None else wide(turning))
    keys = source * wide(cos) + rotate(source, "half") * wide(sin)
    values = normal
    if separate:
        assert v is not None
        keys, values = torch.cat((keys, normal[..., _ROPE:]), dim=-1), wide(v)
    places = _places(index, kv, k_cache, cache_mode)
    for cache, rows in ((k_cache, keys), (ckv_cache, values)):
        flat = cache.view(-1, cache.size(-1))
        flat[places[places >= 0]] = rows.flatten(0, 2)[places >= 0].to(cache.dtype)
    return k_cache, ckv_cache, keys.to(kv.dtype), values.to(kv.dtype)


def _places(index: Tensor, kv: Tensor, cache: Tensor, cache_mode: str) -> Tensor:
    """The row of the flattened cache for each token, negative for tokens that are not kept."""
    batch, length, index = kv.size(0), kv.size(2), index.long()
    if cache_mode == "Norm":
        return (torch.arange(batch).unsqueeze(-1) * cache.size(2) + index.view(batch, length)).flatten()
    if cache_mode in ("PA", "PA_BNSD"):
        return index.flatten()
    if cache_mode == "PA_BLK_BNSD":
        block = cache.size(1)
        token = torch.arange(length)
        start = index.view(batch, -1)[:, token // block]
        return torch.where(start < 0, -1, start // block * block + token % block).flatten()
    raise RuntimeError(f"npu_kv_rmsnorm_rope_cache: unknown cache_mode {cache_mode!r}")
