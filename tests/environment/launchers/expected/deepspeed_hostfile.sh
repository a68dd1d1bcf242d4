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

deepspeed --hostfile hosts.txt --num_gpus 8 train.py --deepspeed ds.json
