"""Mixes texts of several sources by weights: the same seed gives the same mixture, whatever computes it."""
