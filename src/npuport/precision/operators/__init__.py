"""Operators of a training step: recorded as the dispatcher calls them, compared with another run, replayed alone."""
