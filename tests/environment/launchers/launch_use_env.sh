#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
GPUS=2
python -m torch.distributed.launch --nproc_per_node=$GPUS --master_port=29501 --use_env train.py --steps 2
