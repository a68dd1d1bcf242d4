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

export MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 WORLD_SIZE=2
for i in 0 1; do
  RANK=$i LOCAL_RANK=0 ASCEND_RT_VISIBLE_DEVICES=$i python train.py --steps 2 &
done
wait
