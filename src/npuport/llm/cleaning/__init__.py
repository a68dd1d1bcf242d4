"""Cleans texts for training: what is dropped is named with its reason, and nothing is dropped in silence."""
