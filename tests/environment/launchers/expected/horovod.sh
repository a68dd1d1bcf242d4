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

horovodrun -np 4 python train.py
