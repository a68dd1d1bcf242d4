# Look-alike: a product of complex numbers. Origin: spectral layers.
import torch


def complex_product(a, b):
    real = a.real * b.real - a.imag * b.imag
    imag = a.real * b.imag + a.imag * b.real
    return torch.complex(real, imag)
