"""The machine: what is installed, what does not fit, which versions go together, how two machines differ, and why a
job on it failed.

Probes read the machine once into an `Environment` of plain values; checks are pure functions of it.
"""
