"""The machine: what is installed, what does not fit, which versions go together, and how two machines differ.

Probes read the machine once into an `Environment` of plain values; checks are pure functions of it.
"""
