# Form: a bias and GELU with tanh, numbers for the constants. Origin: Megatron-LM, fused_bias_gelu.py, without the script.
import torch


def bias_gelu(bias, y):
    x = bias + y
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))
