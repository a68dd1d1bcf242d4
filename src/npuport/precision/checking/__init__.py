"""Every recorded call judged alone: its result against what its own inputs give in float64."""
