"""Dumps of msprobe (mindstudio-probe): read, written, and compared in its own columns."""
