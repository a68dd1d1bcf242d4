"""Defaults of the project. Import them from `project`, not from here."""

import os

DEFAULT_DEVICE = "cuda"
FALLBACK_DEVICE = "cpu"
DEVICE_PREFIX = "cuda:"

# DEVICE=cpu python train.py keeps a run off the GPU
DEVICE = os.environ.get("DEVICE", "cuda")

OPTIMIZER = {"lr": 1e-2, "weight_decay": 1e-4}

# the running average of the weights may live on another device than the weights
AVERAGING = {"device": "cuda", "decay": 0.98}
