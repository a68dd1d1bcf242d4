#!/bin/bash

# CANN's environment, unless it is set already.
if [ -z "${ASCEND_HOME_PATH:-}" ]; then
  for cann in /usr/local/Ascend/cann /usr/local/Ascend/ascend-toolkit; do
    if [ -f "$cann/set_env.sh" ]; then
      # shellcheck disable=SC1091
      . "$cann/set_env.sh"
      break
    fi
  done
fi

# Seconds to wait for the other machines to connect: 120 by default, and the first step may take longer.
export HCCL_CONNECT_TIMEOUT="${HCCL_CONNECT_TIMEOUT:-600}"

NODE_RANK=${1:-0}
nohup torchrun --nnodes=2 --node_rank="$NODE_RANK" --nproc_per_node=8 --master_addr=10.0.0.1 --master_port=60010 train.py > train.log 2>&1 &
