#!/bin/bash
# One run per GPU, with a different seed each.
cd "$(dirname "$0")" || exit 1
mkdir -p runs/cuda
for gpu in 0 1; do
    CUDA_VISIBLE_DEVICES=$gpu DEVICE=cuda:0 python train.py --seed "$gpu" --log "runs/cuda/seed$gpu.jsonl" &
done
wait
echo "cuda runs are in runs/cuda"
