"""Code in steps for which an NPU has one fused operator, found by what it computes and not by how it is spelled."""

from __future__ import annotations

from npuport.rules.base import Rule
from npuport.rules.fusable.attention import AttentionByHand
from npuport.rules.fusable.attention_flash import FlashAttentionCall
from npuport.rules.fusable.attention_xformers import XformersAttentionCall
from npuport.rules.fusable.exact_gelu import ExactGelu
from npuport.rules.fusable.gated import GatedUnitInSteps
from npuport.rules.fusable.gelu import GeluInSteps
from npuport.rules.fusable.normalization import ResidualAndNormInSteps, RmsNormInSteps
from npuport.rules.fusable.optimizers import FusedOptimizerOnNpu, OptimizerInSteps
from npuport.rules.fusable.rotary import RotaryInSteps
from npuport.rules.fusable.softmax import MaskedSoftmaxInSteps

RULES: tuple[type[Rule], ...] = (
    AttentionByHand,
    MaskedSoftmaxInSteps,
    RmsNormInSteps,
    RotaryInSteps,
    GatedUnitInSteps,
    ResidualAndNormInSteps,
    OptimizerInSteps,
    FusedOptimizerOnNpu,
    GeluInSteps,
    ExactGelu,
    FlashAttentionCall,
    XformersAttentionCall,
)
