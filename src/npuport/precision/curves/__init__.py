"""Training curves of two runs: read from whatever logs there are, and judged by published criteria."""
