"""Renderers. Each takes findings and tables and knows nothing of the stages they come from."""
