"""Profiling the steps of a training without an edit of its code."""
