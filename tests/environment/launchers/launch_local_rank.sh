#!/bin/bash
set -e
python3 -u -m torch.distributed.launch \
    --nproc_per_node=2 \
    train.py \
    --steps 2
