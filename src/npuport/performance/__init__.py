"""Stage 4: where the time of a training step goes, what it costs, and which line to change.

``reading`` turns the results of profilers into one set of tables (``tables``), ``step_split`` divides each step into
parts that add up to it, and ``findings`` prices what costs time.
"""
