# Look-alike: a function called rotate_half that turns nothing. Origin: written for this table.
import torch


def rotate_half(x):
    return x.flip(-1)


def apply(q, cos, sin):
    return q * cos + rotate_half(q) * sin
