"""Memory, communication and choice of a parallel layout, by published formulas. Nothing here needs torch."""
