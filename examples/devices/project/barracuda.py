"""The thing we learn to predict: the speed of a fish. Nothing in this file is about graphics cards."""

import math


class Barracuda:
    CUDA = "Sphyraena barracuda"  # the species, for the reports

    def __init__(self, length_m, depth_m):
        self.length_m = length_m
        self.depth_m = depth_m

    def cuda(self):
        """Barracuda speed in m/s."""
        return 2.0 * math.sqrt(self.length_m) - 0.3 * math.sin(self.depth_m)
