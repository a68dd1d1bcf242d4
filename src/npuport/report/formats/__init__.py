"""Findings in the formats of other tools. Each module renders; none writes a file."""
