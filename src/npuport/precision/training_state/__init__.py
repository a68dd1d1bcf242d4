"""Gradients, weights and optimizer states over the steps of a training: recorded, judged, compared."""
