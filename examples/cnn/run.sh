#!/usr/bin/env bash
# Train on the GPUs of this machine: ./run.sh [number of GPUs] [options of train.py]
set -euo pipefail
cd "$(dirname "$0")"

NGPU=${1:-2}
shift || true

export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-$(seq -s, 0 $((NGPU - 1)))}
export CUDA_DEVICE_ORDER=PCI_BUS_ID
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
export NCCL_IB_DISABLE=1
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-eth0}
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1
export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=index,name,memory.total --format=csv
fi

torchrun --standalone --nproc_per_node="$NGPU" train.py "$@"
