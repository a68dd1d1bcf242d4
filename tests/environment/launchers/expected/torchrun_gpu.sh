#!/usr/bin/env bash
# Trains on every GPU of this machine.

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

torchrun --standalone --nproc_per_node=npu train.py --steps 2 | cat
