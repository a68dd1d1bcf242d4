#!/bin/bash
mpirun -np 2 --allow-run-as-root --bind-to none -x PYTHONUNBUFFERED=1 python train.py --steps 2
