# Look-alike: a function of the project's own with the name of flash-attn's. Origin: written for this table.
from mine import flash_attn_func


def own_flash(q, k, v):
    return flash_attn_func(q, k, v, causal=True)
