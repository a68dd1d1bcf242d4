#!/bin/bash
NODE_RANK=${1:-0}
nohup python -m torch.distributed.run --nnodes=2 --node_rank="$NODE_RANK" --nproc_per_node=8 --master_addr=10.0.0.1 --master_port=60010 train.py > train.log 2>&1 &
