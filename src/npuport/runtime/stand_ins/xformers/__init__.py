"""``xformers`` on an NPU: ``xformers.ops.memory_efficient_attention`` and its masks."""

__version__ = "0.0.29"  # whose functions these are
