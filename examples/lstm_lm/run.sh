#!/bin/sh
# LSTM and GRU side by side, each on its own GPU.
cd "$(dirname "$0")" || exit 1
CUDA_VISIBLE_DEVICES=0 CUDA_LAUNCH_BLOCKING=0 python train.py --model LSTM --save lstm.pt > lstm.out 2>&1 &
CUDA_VISIBLE_DEVICES=1 CUDA_LAUNCH_BLOCKING=0 python train.py --model GRU --save gru.pt > gru.out 2>&1 &
wait
tail -n 2 lstm.out gru.out
