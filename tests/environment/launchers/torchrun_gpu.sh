#!/usr/bin/env bash
# Trains on every GPU of this machine.
torchrun --standalone --nproc_per_node=gpu train.py --steps 2 | cat
