#!/bin/bash
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 WORLD_SIZE=2
for i in 0 1; do
  RANK=$i LOCAL_RANK=0 CUDA_VISIBLE_DEVICES=$i python train.py --steps 2 &
done
wait
