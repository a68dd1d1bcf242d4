"""Precision debugging: whether the numbers of two runs agree, and what breaks them."""
