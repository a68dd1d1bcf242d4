"""Proving that a fused operator computes what the code in its place computed, before it is put there.

A rule that offers such a fix makes a ``npuport.findings.Claim`` with it: the two sides as functions of the same inputs
(``npuport.rules.fusable.rewriting.replacement`` makes both from a match). ``prove(claims, chip, cache=…)`` runs all
claims in one child process on the simulated NPU and gives a ``Verdict`` for each. A conversion applies a fix with a
claim only after it was proved.

The words of an input's value
    ``tensor(*sizes)``: normal numbers of the dtype that is tried, with a gradient; ``tensor(2, D, scale=1e-3)`` small
    ones. ``mask(*sizes)``: a bool tensor, about a third True, never a whole row of the last dimension. ``whole(*sizes,
    high=9)``: int64. Everything else is Python over the names of the case, with ``torch`` and ``math``: ``eps``,
    ``2 * D``, ``torch.arange(S)``. Tensors are moved to the device; a floating one made with ``torch`` keeps its dtype.

The rule
    Each case runs in float32, float16 and bfloat16 (those that the chip has). The truth is the original, on the CPU, in
    float64, whose casts to a narrower floating dtype are left out. Let E(x) be the largest absolute error of x against
    the truth over a tensor, relative to the largest value of the truth. The replacement is equal if, for the result and
    for the gradient of each input, E(replacement) <= 2 E(original) + 4 eps + the claim's own deviation, with the eps of
    the dtype that is tried (2^-23, 2^-10, 2^-7); result and gradients have the same shapes and dtypes; and infinities
    and NaN stand in the same places as in the truth.
"""

from __future__ import annotations

from npuport.proof.kept import VerdictCache
from npuport.proof.proving import prove

__all__ = ["VerdictCache", "prove"]
